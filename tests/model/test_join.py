"""What the machine code executes, inferred from the simulator's counts of the PTX, against what
the products must cost, against figures reckoned by hand and against Nsight Compute's."""

import time
from pathlib import Path

import msgspec
import pytest

from benchmarks import counters_h200
from grader.base.errors import Rejected
from grader.build.sass import BasicBlock, Loop, SassFunction
from grader.build.toolchain import find_toolchain
from grader.model.blocks import conserve
from grader.model.join import factors, unfounded, unshared
from grader.model.records import KernelCounts
from grader.model.waits import with_one_look
from grader.study.comparison import Compared, compare, total
from ptxsim.plan import Size
from tests.support.explained import built, counts, functions, rung, samples
from tests.support.files import values
from tests.support.places import ALICE, FIXTURES, ROOT
from tests.support.product import work

N = 512
DATA = ROOT / "tests" / "model" / "data"
NCU = counters_h200.load(DATA / "h200_counters.json")
COPIES = counters_h200.load(DATA / "h200_copies.json")


def of_kind(kernel: KernelCounts, kind: str) -> int:
    return sum(entry.count for entry in kernel.mix if entry.kind.startswith(kind))


@pytest.mark.sampled
@pytest.mark.parametrize(
    "folder",
    [
        ALICE,
        *map(rung, ("naive", "coalesced", "tile32", "unrolled", "strided_2x2", "register_4x4")),
        *map(rung, ("float4", "transposed", "double_buffer", "multistage")),
        FIXTURES / "correct" / "warp_shuffle",
        FIXTURES / "correct" / "noinline_function",
    ],
    ids=lambda path: path.name,
)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_ffma_add_up_to_the_product(folder: Path, arch: str) -> None:
    """However ptxas unrolled and copied: M·N·K fused multiply-adds."""
    kernels = counts(folder, arch, N)

    done = sum(of_kind(kernel, "FFMA") for kernel in kernels)
    assert 32 * done == pytest.approx(N**3, rel=0.002)
    assert sum(kernel.flops for kernel in kernels) >= 2 * N**3  # some add on top of it


def test_blocks_that_differ_are_all_counted_when_asked() -> None:
    """Split-K: the last part of K may be shorter than the others."""
    kernels = counts(rung("split_k"), "sm_80", 256, blocks=10_000)

    assert 32 * sum(of_kind(each, "FFMA") for each in kernels) == pytest.approx(256**3, rel=0.002)


def test_a_naive_kernel_loads_twice_for_each_ffma() -> None:
    (kernel,) = counts(rung("naive"), "sm_80", N)

    assert kernel.complete and kernel.grid == (32, 32, 1)
    assert kernel.global_loads.requests == 2 * N**3 // 32
    # Two rows of 16 threads: A from 16 rows of K floats each, B from two.
    assert kernel.global_loads.cost == 9 * kernel.global_loads.requests
    assert of_kind(kernel, "LDG") == kernel.global_loads.requests
    assert kernel.global_stores.requests == N * N // 32
    assert not kernel.shared_loads.requests


@pytest.mark.sampled
def test_bank_conflicts_are_counted_at_the_machines_width() -> None:
    (conflicts,) = counts(rung("tile32_conflicts"), "sm_80", N)
    (without,) = counts(rung("tile32"), "sm_80", N)
    assert conflicts.shared_loads.cost == 16.5 * conflicts.shared_loads.requests
    assert without.shared_loads.cost == without.shared_loads.requests == 2 * N**3 // 32


def test_loads_that_ptxas_merged_are_counted_once() -> None:
    """128 ``ld.shared`` of 8 elements each along K become 32 LDS.128."""
    (kernel,) = counts(ALICE, "sm_90", N)

    tiles = N // 8 * (N // 128) ** 2 * 8  # warps × steps
    assert kernel.shared_loads.requests == of_kind(kernel, "LDS.128") == 32 * tiles
    assert of_kind(kernel, "LDS") == 32 * tiles
    assert of_kind(kernel, "STS") == 8 * tiles
    assert of_kind(kernel, "BAR") == 2 * tiles


def test_a_large_product_is_counted_on_one_block() -> None:
    (kernel,) = counts(rung("double_buffer"), "sm_90", 8192, 5.0)

    assert kernel.flops == pytest.approx(2 * 8192**3, rel=0.01)
    assert 32 * of_kind(kernel, "FFMA") == pytest.approx(8192**3, rel=0.001)


def test_a_block_that_takes_too_long_is_scaled_up() -> None:
    """Rung 3 does all of the product in one block."""
    (kernel,) = counts(rung("one_block"), "sm_80", 4096, 0.3)

    assert not kernel.complete
    assert kernel.flops == 2 * 4096**3
    assert 32 * of_kind(kernel, "FFMA") == pytest.approx(4096**3, rel=0.02)


@pytest.mark.parametrize(("stops", "operations", "scaled", "why"), values(__file__, "grounds.txt"))
def test_what_samples_are_a_ground_for(
    stops: tuple[str | None, ...], operations: float, scaled: tuple[float, ...], why: str
) -> None:
    (whole,) = samples(rung("naive"), "sm_80", N)
    found = [msgspec.structs.replace(whole, kernel="k", stopped=stop) for stop in stops]
    task = work(Size.of(m=N, n=N, k=N))
    once = task.operations / whole.flops
    task = msgspec.structs.replace(task, operations=round(operations * task.operations))
    by = factors(found, task)

    assert by == pytest.approx([once * factor for factor in scaled])
    assert str(unfounded(found, by, task) or "") == why


@pytest.mark.sampled
@pytest.mark.parametrize(
    "blocks",
    [pytest.param(blocks, marks=pytest.mark.nightly) for blocks in (1, 2, 4)],
)
def test_uneven_blocks_do_the_tasks_operations_together(blocks: int) -> None:
    """Of the rung's 792 blocks at 3072 the last 264 share 48 tiles."""
    found, task = (
        samples(rung("dispatch"), "sm_90", 3072, blocks=blocks),
        work(Size.of(m=3072, n=3072, k=3072)),
    )

    assert any(each.uneven for each in found)
    by = factors(found, task)
    executed = sum(each.flops * times for each, times in zip(found, by, strict=True))
    assert executed == pytest.approx(task.operations, rel=0.01)
    assert not all(each.complete for each in counts(rung("dispatch"), "sm_90", 3072, blocks=blocks))


def test_what_leads_to_a_loop_that_never_runs_does_not_run_either() -> None:
    """0 → 1 → 2 (a loop) → 3, or from 0 to 3 at once: as 1's lines are also those of 0."""
    instruction = functions(ALICE, "sm_80")[0].instructions[0]
    ways = ((1, 3), (2,), (2, 3), ())
    function = SassFunction(
        name="k",
        arch="sm_80",
        entry=True,
        instructions=(instruction,) * 4,
        blocks=tuple(BasicBlock(start=i, end=i + 1, successors=way) for i, way in enumerate(ways)),
        loops=(Loop(head=2, blocks=(2,)),),
    )

    assert conserve(function, [10, None, None, None], [10, 10, 0, 10]) == [10, 0, 0, 10]


def loop_of(*code: tuple[str, str]) -> SassFunction:
    """0 → 1, a loop of these instructions → 2."""
    first = functions(ALICE, "sm_80")[0].instructions[0]
    items = tuple(
        msgspec.structs.replace(first, opcode=opcode, operands=tuple(operands.split()))
        for opcode, operands in (("MOV", "R0 R1"), *code, ("EXIT", ""))
    )
    bounds = ((0, 1, (1,)), (1, len(items) - 1, (1, 2)), (len(items) - 1, len(items), ()))
    return SassFunction(
        name="k",
        arch="sm_80",
        entry=True,
        instructions=items,
        blocks=tuple(BasicBlock(start=a, end=b, successors=to) for a, b, to in bounds),
        loops=(Loop(head=1, blocks=(1,)),),
    )


def test_a_wait_counts_as_one_look() -> None:
    """Whatever else such a loop does is work, and counts as often as it runs."""
    look, back = ("LDG.E.STRONG.GPU", "R5 [R2.64]"), ("BRA", "L")
    test = ("ISETP.NE.AND", "P0 PT R5 RZ PT")

    assert with_one_look(loop_of(look, test, back), [8, 1000, 8]) == [8, 8, 8]
    for other in (
        ("LDG.E", "R6 [R8.64]"),
        ("FFMA", "R6 R6 R5 R6"),
        ("STS", "[R7] R5"),
        ("IMAD.WIDE", "R2 R5 R6 R2"),  # it looks elsewhere the next time
    ):
        assert with_one_look(loop_of(look, other, test, back), [8, 1000, 8])[1] == 1000


def test_blocks_that_take_their_work_from_a_counter_tell_nothing_of_others() -> None:
    """Unless all were counted, or operations show how much was done."""
    (one,) = samples(ALICE, "sm_80", 1024)
    task = work(Size.of(m=1024, n=1024, k=1024))
    nothing = msgspec.structs.replace(task, operations=0)
    taking = loop_of(("ATOMG.E.INC.STRONG.GPU", "PT R5 [R2.64] R6"), ("BRA", "L"))
    changing = loop_of(("ATOMG.E.CAS.STRONG.GPU", "PT R5 [R2.64] R6 R7"), ("BRA", "L"))

    assert "from a counter" in str(unshared([(taking, one)], nothing))
    assert unshared([(taking, one)], task) is unshared([(changing, one)], nothing) is None
    whole = msgspec.structs.replace(one, blocks=one.all_blocks)
    assert unshared([(taking, whole)], nothing) is None


def test_a_persistent_block_is_cut_short_in_time() -> None:
    built(FIXTURES / "correct" / "work_queue", "sm_80")
    started = time.monotonic()
    (kernel,) = counts(FIXTURES / "correct" / "work_queue", "sm_80", 8192, 0.5)

    assert not kernel.complete
    assert time.monotonic() - started < 10  # a second on an idle machine


# --- against Nsight Compute on an H200


def profiled(folder: Path, seen: counters_h200.Raw, *lab: str) -> counters_h200.Profiled:
    """What ncu saw of a folder; skips where its text or nvcc is another one by now."""
    name = str(folder.relative_to(ROOT))
    theirs = next(each for each in seen.profiled if each.folder == name)
    if f"nvcc {find_toolchain().cuda_version}," not in seen.machine:
        pytest.skip("another nvcc than the one whose code was measured")
    if not counters_h200.unchanged(theirs, *lab):
        pytest.skip("ncu watched another text of it: python -m benchmarks.counters_h200 --raw")
    return theirs


def beside_ncu(folder: Path, seen: counters_h200.Raw = NCU) -> list[tuple[Compared, ...]]:
    """Of each kind of launch, in the plan's order."""
    theirs, kernels = profiled(folder, seen), counts(folder, seen.arch, seen.size)
    return [
        compare(ours, total([launch]))
        for ours, launch in zip(kernels, theirs.launches, strict=True)
    ]


@pytest.mark.parametrize(
    "folder",
    [ALICE, *map(rung, ("tile32", "float4", "multistage", "packed_bulk"))],
    ids=lambda path: path.name,
)
def test_counts_are_those_of_the_hardware(folder: Path) -> None:
    for pairs in beside_ncu(folder):
        for each in pairs:
            assert each.theirs is not None, each
            assert each.ours == pytest.approx(each.theirs, rel=0.02), each


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("folder", "seen", "patterns"),
    [
        (counters_h200.WIDE, NCU, 26),
        (counters_h200.LANES, NCU, 28),
        (counters_h200.COPIES, COPIES, 26),
    ],
    ids=["wide", "lanes", "copies"],
)
def test_wavefronts_of_every_pattern_are_those_of_the_hardware(
    folder: Path, seen: counters_h200.Raw, patterns: int
) -> None:
    """Wide loads whose lanes share addresses in pairs take fewer passes than others; a copy takes
    one for each line it reads, and where some lanes bring nothing, as many as zeros alone would."""
    found = beside_ncu(folder, seen)

    assert len(found) == patterns
    for pairs in found:
        by_name = {str(each.quantity): each for each in pairs}
        for name in counters_h200.WAVES:
            assert by_name[name].ours == by_name[name].theirs, pairs


def test_instructions_that_do_nothing_are_counted() -> None:
    """ptxas ends the loop of rung 5 on tensor cores with a NOP."""
    seen = counters_h200.load(DATA / "h200_hgemm_copies.json")
    theirs = profiled(rung("cp_async", "hgemm"), seen, seen.lab)
    found = counters_h200.counted(ROOT / theirs.folder, seen.arch, seen.size, seen.lab)

    assert not isinstance(found, Rejected)
    pairs = compare(found[0][0], total(theirs.launches))
    instructions = next(each for each in pairs if str(each.quantity) == "instructions")
    assert instructions.ours == instructions.theirs
