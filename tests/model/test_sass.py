"""Machine code read back: nvdisasm's listing → instructions, loops, mixes, on real builds."""

import json
import sys
from functools import cache
from pathlib import Path

import pytest

from grader.base.errors import MachineError
from grader.build.sass import find_tensor_cores, parse
from grader.cli.entry import main
from grader.model.main_loop import main_loop_code, summarise
from grader.model.records import KernelSass, SassLoop
from grader.run.gpu.messages import Watching
from grader.run.probe import gpu_names
from grader.study import profiler
from grader.study.comparison import compare, total
from ptxsim.plan import Plan, Size
from tests.support.catalogues import assert_chinese
from tests.support.commands import hand_in
from tests.support.explained import counts, functions, rung
from tests.support.files import beside, values
from tests.support.places import ALICE, FIXTURES
from tests.support.product import GEMM_REF

LISTING = beside(__file__, "listing.sass")


@cache
def kernels(folder: Path, arch: str) -> tuple[KernelSass, ...]:
    return tuple(summarise(function) for function in functions(folder, arch))


def loop_of(folder: Path, arch: str = "sm_80") -> SassLoop:
    loops = [kernel.loop for kernel in kernels(folder, arch) if kernel.loop]
    return max(loops, key=lambda loop: loop.ffma)


def count(loop: SassLoop, kind: str) -> int:
    return sum(entry.count for entry in loop.mix if entry.kind.startswith(kind))


def test_a_listing_becomes_instructions() -> None:
    (function,) = parse(LISTING)
    load, first, _, branch, _ = function.instructions

    assert (function.name, function.arch) == ("k", "sm_80")
    assert (load.file, load.line, load.ptx_line) == ("part.cuh", 3, 40)
    assert (first.file, first.line, first.ptx_line) == (None, None, 40)
    assert load.control is not None and load.control.stall == 1
    assert first.control is not None and first.control.waits == (2,) and first.control.stall == 2
    assert branch.guard == "@P0" and branch.target == ".L_x_1"
    assert [block.successors for block in function.blocks] == [(1,), (1, 2), ()]
    assert main_loop_code(function) == function.instructions[1:4]
    assert parse("\t.target\tsm_90\n") == ()


def test_ffma_of_two_cycles_wait_for_three_registers_of_one_bank_that_no_reuse_covers() -> None:
    (function,) = parse(LISTING)
    loop = summarise(function).loop

    # R4, R6, R10 are all even; of R12, R6, R14 the second is in the reuse cache.
    assert loop is not None
    assert loop.bank_conflicts == 1
    uncovered = LISTING.replace("R6.reuse", "R6")
    again = summarise(parse(uncovered)[0]).loop
    assert again is not None and again.bank_conflicts == 2


def ffma(*operands: str) -> str:
    return (
        f"        /*0010*/             FFMA {', '.join(operands)} ;  /* 0x0000000604087223 */\n"
        "                                                           /* 0x004fe4000000000a */\n"
    )


# Operands of a loop's FFMA, and the cycles they wait each time round, in which the branch is a
# cycle of rest. An H200 took as long for such patterns
# (`python -m benchmarks.calibration.register_banks`).
STREAMS = {
    "three reads of two banks": ("R8 R4 R6 R9, R9 R4 R7 R9", 3),
    "two of one bank, the banks by turns": ("R8 R4 R8 R8, R9 R5 R9 R9", 0),
    "two of one bank, always the same": ("R8 R4 R8 R8, R8 R4 R8 R8", 7),
    "the factor that stays is kept": ("R8 R4.reuse R6 R9, R8 R4.reuse R7 R10", 0),
}


@pytest.mark.parametrize("stream, cycles", STREAMS.values(), ids=STREAMS)
def test_ffma_of_one_cycle_wait_when_a_bank_lags_behind(stream: str, cycles: int) -> None:
    begin, end = LISTING.index("        /*0010*/"), LISTING.index("        /*0030*/")
    body = "".join(ffma(*each.split()) for each in stream.split(", ")) * 4
    listing = (LISTING[:begin] + body + LISTING[end:]).replace("sm_80", "sm_90")

    loop = summarise(parse(listing)[0]).loop

    assert loop is not None and loop.ffma == 8
    assert loop.bank_conflicts == cycles


@pytest.mark.sampled
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90"])
def test_the_main_loop_of_an_8x8_kernel_on_every_architecture(arch: str) -> None:
    loop = loop_of(ALICE, arch)

    assert loop.ffma == 512 and loop.accumulators == 64 and loop.unroll == 8
    assert count(loop, "LDS.128") == 32 and count(loop, "LDS") == 32
    assert count(loop, "STS") == 8 and count(loop, "BAR") == 2
    assert sum(entry.count for entry in loop.mix) == loop.instructions
    # Turing and A100 have 16 FP32 lanes for each scheduler, the others 32.
    least = 2 if arch in ("sm_75", "sm_80") else 1
    assert loop.stall_cycles is not None and loop.stall_cycles >= least * loop.ffma
    kernel = next(k for k in kernels(ALICE, arch) if k.loop == loop)
    assert kernel.arch == arch and not kernel.tensor


@pytest.mark.sampled
@pytest.mark.parametrize(("idea", "sums", "loads", "width"), values(__file__, "ideas.txt"))
def test_the_ladder_shows_its_ideas(idea: str, sums: int, loads: str, width: float) -> None:
    """Elements for each thread, and loads for each FFMA."""
    loop = loop_of(rung(idea), "sm_90")

    assert loop.accumulators == sums
    assert count(loop, loads) / loop.ffma == pytest.approx(width, rel=0.13)


@pytest.mark.sampled
def test_a_sum_that_is_moved_or_added_to_stays_one_sum() -> None:
    """ptxas gives sums of the split-K rung other registers halfway; the other fixture adds a
    product of its own to one of its four sums."""
    loop = loop_of(rung("split_k"), "sm_80")
    code = [main_loop_code(function) for function in functions(rung("split_k"), "sm_80")]

    assert any(item.kind == "move" for items in code for item in items)
    assert loop.ffma == 2048 and loop.accumulators == 64 and loop.unroll == 32
    assert loop_of(FIXTURES / "correct" / "switch_statement").accumulators == 4


def test_every_line_of_the_loop_is_the_students() -> None:
    loop = loop_of(ALICE)
    text = (ALICE / "sgemm.cu").read_text().splitlines()
    busiest = max(loop.lines, key=lambda line: line.ffma)

    assert busiest.ffma == 512
    assert "acc[" in text[busiest.line - 1] and "+=" in text[busiest.line - 1]


def test_spills_and_local_arrays_are_seen() -> None:
    found = kernels(FIXTURES / "correct" / "local_array", "sm_80")
    assert any(kernel.local_loads and kernel.local_stores for kernel in found)


def test_tensor_cores_are_seen_in_the_machine_code() -> None:
    (note,) = find_tensor_cores(functions(FIXTURES / "broken" / "tf32_mma", "sm_80"))
    text = (FIXTURES / "broken" / "tf32_mma" / "sgemm.cu").read_text().splitlines()

    assert note.kind == "tensor-core" and note.file == "sgemm.cu" and note.line is not None
    assert "HMMA" in str(note.message)
    assert "// BUG" in text[note.line - 1]
    assert not find_tensor_cores(functions(ALICE, "sm_80"))


def test_grade_sass_prints_what_it_saw(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sass", str(ALICE), "--arch", "sm_80", "--listing"]) == 0
    shown = capsys.readouterr().out
    assert "512 of them FFMA" in " ".join(shown.split())
    assert "acc[" in shown and "LDS.128" in shown
    assert main(["sass", str(ALICE), "--arch", "sm_80", "--language", "zh"]) == 0
    shown = "".join(capsys.readouterr())
    assert "数据搬移" in shown and "每次迭代各累加" in shown
    assert_chinese(shown)

    assert main(["sass", str(ALICE), "--arch", "sm_80", "--json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)
    assert kernel["loop"]["ffma"] == 512


def test_an_architecture_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["sass", str(ALICE), "--arch", "ampere"])

    assert refused.value.code == 2
    assert "sm_90" in capsys.readouterr().err


@pytest.mark.sampled
def test_a_long_listing_is_read_whole(tmp_path: Path) -> None:
    """Two megabytes and more: a dozen instances of a kernel."""
    head = "__global__ void __launch_bounds__(THREADS)"
    source = (ALICE / "sgemm.cu").read_text()
    assert head in source and "sgemm<<<" in source
    source = source.replace(head, f"template <int COPY>\n{head}").replace("sgemm<<<", "sgemm<0><<<")
    instance = (
        "template __global__ void sgemm<{}>(const float*, const float*, float*, int, int, int);"
    )
    source += "\n".join(instance.format(copy) for copy in range(1, 12)) + "\n"

    found = functions(hand_in(tmp_path / "many", source), "sm_80")

    assert len(found) == 12
    assert all(summarise(function).loop for function in found)


PLAN = Plan(size=Size.of(m=1, n=1, k=1), allocations=(), operations=())
JOB = Watching(problem=GEMM_REF, cubin="/some/cubin", plan=PLAN)


def fake_ncu(folder: Path, script: str) -> None:
    path = folder / "ncu"
    path.write_text(f"#!{sys.executable}\n{script}")
    path.chmod(0o755)


def test_ncus_table_is_read_and_summed() -> None:
    seen = profiler.read(beside(__file__, "ncu.txt.in", name="_Z1k", instructions="4,096"))

    assert [each.kernel for each in seen] == ["_Z1k", "_Z1k"]
    assert seen[1].metrics == {"smsp__inst_executed.sum": 4096, "gpu__time_duration.sum": 2000.5}
    assert total(seen)["gpu__time_duration.sum"] == 3000.5


def test_our_counts_stand_beside_ncus() -> None:
    (kernel,) = counts(ALICE, "sm_90", 256)
    compared = compare(kernel, {"smsp__inst_executed.sum": kernel.instructions / 1.01})

    assert str(compared[0].quantity) == "instructions"
    assert compared[0].apart == pytest.approx(0.01)
    assert compared[1].theirs is None and compared[1].apart is None
    assert compared[1].ours == 256**3


def test_ncu_is_run_with_the_plan_and_only_with_metrics_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "arguments"
    table = beside(__file__, "ncu.txt.in", name="_Z1k", instructions="7")
    fake_ncu(tmp_path, beside(__file__, "ncu.py.in", log=repr(str(log)), table=repr(table)))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    seen = profiler.profile([JOB], ["_Z1k"], seconds=30)

    given = log.read_text().split("\n")
    assert seen[0].metrics["smsp__inst_executed.sum"] == 7
    assert given[given.index("--metrics") + 1] == "smsp__inst_executed.sum"
    assert given[given.index("--kernel-name") + 1] == "regex:^(_Z1k)$"
    assert given[given.index("--clock-control") + 1] == "none"
    assert (Path(given[0]) / "grader").is_dir(), "-m would find modules in a student's folder"
    assert given[given.index("--profile-from-start") + 1] == "no", "the set-up is not profiled"


@pytest.mark.parametrize(("script", "words"), values(__file__, "no_ncu.txt"))
def test_why_ncu_gives_nothing_is_said_in_one_line(
    script: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_ncu(tmp_path, script)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    with pytest.raises(MachineError, match=words):
        profiler.profile([JOB], ["k"], seconds=30)


@pytest.mark.skipif(bool(gpu_names()), reason="there is a GPU")
def test_without_a_gpu_one_line_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(ALICE)]) == 3
    assert "no NVIDIA GPU here" in capsys.readouterr().err


def test_without_ncu_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(profiler, "_PLACES", ())

    with pytest.raises(MachineError, match="no ncu on PATH: install Nsight Compute"):
        profiler.find_ncu()
