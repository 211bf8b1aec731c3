"""``python -m tests.support.cheat_table > docs/cheats.md``: the corpus as a page.

The judgements of other harnesses come from reading their public code at the commits named in the
page; nobody ran them. ``FAMILIES`` holds one judgement per kind of cheat.
"""

from __future__ import annotations

import sys
from enum import Enum

from grader.model import Record
from tests.support.corpus import Cheat, cheats


class Judged(str, Enum):
    """What a harness does about a kind of cheat, judging by the code that was read."""

    FOOLED = "fooled"  # the code does nothing against it
    STOPPED = "stopped"
    PART = "in part"  # the notes say which
    UNKNOWN = "not known"  # the code that was read does not decide it


class Family(Record):
    title: str
    names: str  # of the cheats
    kernelbot: Judged
    kernelbench: Judged
    tensara: Judged
    lab: Judged
    why: str  # what in their code the judgement rests on


F, S, P, U = Judged.FOOLED, Judged.STOPPED, Judged.PART, Judged.UNKNOWN

FAMILIES = (
    Family(
        title="Timers and surroundings",
        names="redefines_clocks redefines_timers resets_the_device asks_whether_it_is_timed "
        "slow_at_first preloads_itself",
        kernelbot=F,
        kernelbench=F,
        tensara=F,
        lab=F,
        why="All four load the submission's host code into the process that records the events. "
        "KernelBot can first search for patterns (KernelGuard); its rules were not read.",
    ),
    Family(
        title="A library does the work",
        names="dlopen_cublas dlopen_driver finds_cublas_in_the_process hides_cutlass_in_its_kernel",
        kernelbot=U,
        kernelbench=U,
        tensara=F,
        lab=F,
        why="Tensara's runner calls whatever the shared object calls; the lab links cuBLAS itself. "
        "KernelBot and KernelBench search the source for patterns; which ones was not read.",
    ),
    Family(
        title="Results kept from one call to the next",
        names="cache_by_checksum cache_by_pointer cache_by_shape cached_result skips_when_right "
        "static_host_cache workspace_from_last_time keeps_results_in_its_workspace "
        "multiplies_last_times_a set_up_launches_the_product set_up_differs_when_large "
        "lazy_in_every_third_call lazy_in_every_third_launch",
        kernelbot=F,
        kernelbench=F,
        tensara=F,
        lab=F,
        why="All four time many calls on the same inputs, so a kept result stays correct.",
    ),
    Family(
        title="Right when watched, wrong when timed",
        names="right_now_and_then right_when_watched wrong_only_when_cold",
        kernelbot=F,
        kernelbench=F,
        tensara=F,
        lab=F,
        why="KernelBench, Tensara and the lab do not look at the outputs of timed calls. KernelBot "
        "compares each output in leaderboard mode, but its `if not good` comes after the loop: "
        "only the last of fifty outputs decides.",
    ),
    Family(
        title="Work that the timed stream does not see",
        names="graph_of_its_own launches_from_the_device overlaps_by_attribute "
        "scales_before_it_is_done second_stream stops_the_clock_early",
        kernelbot=F,
        kernelbench=F,
        tensara=F,
        lab=U,
        why="Events cover one stream and no others; KernelBench's own comment says so.",
    ),
    Family(
        title="The L2 from last time",
        names="persisting_l2",
        kernelbot=U,
        kernelbench=F,
        tensara=F,
        lab=U,
        why="KernelBench overwrites the L2 before each call, but persisting lines stay (the line "
        "against them is commented out); Tensara's runner does not flush.",
    ),
    Family(
        title="Less precision, tensor cores",
        names="bf16_storage fp16_sum mma_bf16 mma_fp16 tensor_cores_only_when_large "
        "tensor_cores_behind_a_pointer tf32_rounding tf32_three_times",
        kernelbot=U,
        kernelbench=P,
        tensara=P,
        lab=F,
        why="KernelBench (1e-4 for FP32) and Tensara (rtol 1e-4, atol 1e-3) reject rounded inputs; "
        "neither looks for tensor cores, so three TF32 products pass. The lab's tolerance is "
        "0.01·K. KernelBot's depends on the problem.",
    ),
    Family(
        title="Other numbers than the product",
        names="assumes_constants assumes_rank_one assumes_zero_input corner_and_copy "
        "drops_the_last_term fewer_terms nan_everywhere zeros",
        kernelbot=U,
        kernelbench=P,
        tensara=P,
        lab=P,
        why="KernelBench and Tensara compare every element of random products with torch.allclose, "
        "which rejects NaN; whether it detects one missing term of 8192 was not computed. The "
        "lab's tolerance of ±82 at K = 8192 accepts a missing term but rejects zeros. KernelBot's "
        "comparison depends on the problem.",
    ),
    Family(
        title="Memory that is not C",
        names="finds_leftovers_in_its_workspace hides_in_a overwrites_the_reference "
        "puts_canaries_back reads_beyond_a reads_reference "
        "reads_what_cublas_left_in_shared_memory writes_before_a "
        "writes_beside_its_neighbour writes_beyond_c writes_far_beyond_c "
        "zeroes_the_inputs",
        kernelbot=P,
        kernelbench=P,
        tensara=P,
        lab=U,
        why="KernelBot passes copies when it tests, but not when it times. KernelBench's correct "
        "answer is on the GPU while the submission runs; Tensara's is on the host by then. "
        "None has canaries or checks the inputs afterwards.",
    ),
    Family(
        title="Forged answers",
        names="constructor_exits destructor_forges forged_plan forged_refusal prints_a_result "
        "writes_into_the_results writes_its_own_memory writes_the_result_file "
        "writes_to_every_descriptor",
        kernelbot=P,
        kernelbench=F,
        tensara=F,
        lab=F,
        why="KernelBot's result pipe is closed to the process that loads the submission, but that "
        "process reports the times. In the others the submission shares the process that "
        "reports.",
    ),
    Family(
        title="Processes, signals, other people's files",
        names="aborts asks_whether_files_exist catches_signals connects edits_the_grader exits "
        "fork_bomb jumps_out kills_its_parent leaves_a_thread leaves_notes_for_the_next_size "
        "never_ends opens_devices "
        "ptraces_the_recorder reads_classmate reads_command_lines signals_every_way traps "
        "writes_its_parents_memory",
        kernelbot=U,
        kernelbench=F,
        tensara=P,
        lab=U,
        why="KernelBench runs a submission in its own process. Tensara has a process and a time "
        "limit for each. The protection by the hosts' containers was not read, nor KernelBot's.",
    ),
    Family(
        title="Through the compiler",
        names="assembler_bomb constexpr_bomb embeds_a_secret embeds_its_own_build "
        "giant_array giant_host_array includes_a_classmate includes_a_secret "
        "includes_itself lto_options macro_bomb options_that_write "
        "pragma_flags probes_for_files sections_that_speak template_bomb",
        kernelbot=U,
        kernelbench=F,
        tensara=P,
        lab=U,
        why="KernelBench compiles without its own sandbox or limits. Tensara calls nvcc without a "
        "time limit, and shows its messages to the student.",
    ),
    Family(
        title="Floods and forged displays",
        names="allocates_without_end empty_lines fills_every_folder fills_the_disk "
        "floods_stdout floods_the_log forged_entry_error forged_kill "
        "forged_line_numbers forged_missing_header forged_nvcc_fatal "
        "forged_register_count injects_ptx launches_a_million printf_flood "
        "regex_bomb_diagnostics hoards_memory_in_files takes_all_memory terminal_and_html",
        kernelbot=U,
        kernelbench=U,
        tensara=U,
        lab=U,
        why="Not read.",
    ),
    Family(
        title="Inputs that are predicted or recognised",
        names="just_above_the_least_time predicts_the_next_inputs recognises_repeated_inputs",
        kernelbot=U,
        kernelbench=U,
        tensara=U,
        lab=U,
        why="Not read.",
    ),
    Family(
        title="Work where no time is taken",
        names="fast_when_verified searches_in_a_small_size searches_in_the_warm_up "
        "slow_when_verified",
        kernelbot=U,
        kernelbench=U,
        tensara=U,
        lab=U,
        why="Not read.",
    ),
    Family(
        title="Times that disagree",
        names="fast_in_every_third_repetition fast_in_the_first_run "
        "hides_two_speeds_in_jitter slow_in_every_fifth_repetition",
        kernelbot=U,
        kernelbench=U,
        tensara=U,
        lab=U,
        why="Not read.",
    ),
    Family(
        title="Forged plans",
        names="forged_address_of_the_reference forged_encoding forged_giant_names "
        "forged_kernel forged_long_plan forged_many_launches forged_overlap "
        "forged_pointer_slot forged_range_that_wraps forged_short_parameters "
        "forged_symbol_offset forged_symbol_size forged_symbol_twice",
        kernelbot=U,
        kernelbench=U,
        tensara=U,
        lab=U,
        why="Not read.",
    ),
    Family(
        title="PTX that two readers read in two ways",
        names="ptx_behind_a_section ptx_behind_loc ptx_borrowed_label "
        "ptx_carriage_return ptx_comment_in_a_string ptx_forged_files "
        "ptx_label_twice ptx_preprocessor_line ptx_register_by_another_name "
        "ptx_small_family ptx_string_of_lines ptx_symbol_twice "
        "ptx_thousands_of_branches",
        kernelbot=U,
        kernelbench=U,
        tensara=U,
        lab=U,
        why="Not read.",
    ),
    Family(
        title="Hostile PTX and formats",
        names="branches_on_constants gigantic_dynamic_shared huge_local_array "
        "null_behind_shared predicate_as_register prints_every_format "
        "recurses_forever shifts_by_anything wraps_local_address "
        "wraps_shared_address",
        kernelbot=U,
        kernelbench=U,
        tensara=U,
        lab=U,
        why="Not read.",
    ),
    Family(
        title="Limits on work, spent waiting",
        names="gives_its_time_away naps_all_the_time raises_its_own_limits "
        "reads_the_compilers_output sends_sigkill_to_itself sleeps_instead "
        "sleeps_while_it_is_loaded "
        "stops_itself",
        kernelbot=U,
        kernelbench=U,
        tensara=U,
        lab=U,
        why="Not read.",
    ),
    Family(
        title="The grader's process and environment",
        names="reads_host_addresses takes_all_the_simulators_memory tells_its_environment",
        kernelbot=U,
        kernelbench=U,
        tensara=U,
        lab=U,
        why="Not read.",
    ),
)

HEAD = """\
# Cheats

These submissions try to fool the grader or to break it. Each is a folder under `tests/cheats/`.
Its first comment says what it tries, what stops it, and which verdict it must get.
`tests/whole/test_cheats.py` grades all of them in the simulator (CI), in bubblewrap and in
Landlock's sandbox; `tests/whole/test_gpu.py` grades them on a GPU. After each cheat the test checks
that no other file has changed, no process is left, and no secret appears in any output that a
student can read. `tests/whole/test_cheats.py` also creates
folders that are cheats themselves (links that lead outside, pipes, names meant for a shell).

`python -m tests.support.cheat_table > docs/cheats.md` writes this page. The last columns give the
verdicts that the tests require. "AC" does not mean success: such a cheat still does the honest
work, and the test checks "no gain": its score is at most 1.05 times that of the same work without
the cheat.

| Tries | Stopped by | CPU | GPU |
|---|---|---|---|
"""
OTHERS = """
## Who else would be fooled

These judgements come from reading public code, not from running it. "Fooled" means that the code
does nothing against the cheat; "not known" means that the code that was read does not decide it.
These harnesses serve other purposes than a graded course.

- KernelBot: gpu-mode/reference-kernels 3b46739, `problems/nvidia/eval_better_bench.py`;
  gpu-mode/kernelbot 7f9137a, `src/libkernelbot/kernelguard.py`
- KernelBench: ScalingIntelligence/KernelBench 0d12226, `src/kernelbench/eval.py`; 0de4ce8,
  `src/kernelbench/timing.py`
- Tensara: tensara/tensara 00c0afd, `engine/runner.py` and `engine/utils.py`; tensara/problems
  32d3287, `problems/matrix-multiplication/def.py`
- The lab: ZJUSCT/HPC101 4cd497c, `docs/lab/Lab3-Cuda`

| Kind | KernelBot | KernelBench | Tensara | the lab's harness | this grader |
|---|---|---|---|---|---|
"""


def page() -> str:
    """The whole page. Raises KeyError if a cheat has no family, or more than one."""
    corpus = {cheat.folder.name: cheat for cheat in cheats()}
    rows: list[str] = []
    for family in FAMILIES:
        rows.append(f"| **{family.title}** | | | |")
        rows += [_row(corpus.pop(name)) for name in sorted(family.names.split())]
    if corpus:
        raise KeyError(f"no family: {', '.join(corpus)}")
    others = [
        f"| {f.title} | {f.kernelbot.value} | {f.kernelbench.value} | {f.tensara.value} "
        f"| {f.lab.value} | stopped |"
        for f in FAMILIES
    ]
    notes = [f"- *{family.title}.* {family.why}" for family in FAMILIES]
    lines = [*others, "", *notes]
    return HEAD + "\n".join(rows) + "\n" + OTHERS + "\n".join(lines) + "\n"


def _row(cheat: Cheat) -> str:
    name = cheat.folder.name
    needs = " (needs bubblewrap or Landlock)" if cheat.needs_sandbox else ""
    if cheat.in_landlock:
        verdict = cheat.in_landlock.verdict.value
        needs = f" (needs bubblewrap; in Landlock's sandbox it comes to {verdict})"
    gpu = cheat.gpu.verdict.value + (", no gain" if cheat.gpu.no_gain else "")
    link = f"[{name}](../tests/cheats/{name}/sgemm.cu)"
    stopped = cheat.stopped_by.rstrip(".").replace("|", "\\|")
    tries = cheat.tries.replace("|", "\\|")
    return f"| {link}: {tries} | {stopped}{needs} | {cheat.cpu.verdict.value} | {gpu} |"


if __name__ == "__main__":
    sys.stdout.write(page())
