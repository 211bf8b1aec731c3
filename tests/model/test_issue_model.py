"""The issue model of a multiprocessor, by hand, on sequences whose cycles are known."""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grader.base import UsageError, gpus
from grader.base.records import KernelInfo
from grader.model.accesses import SharedAccess, side_by_side
from grader.model.banks import Conflict, worst
from grader.model.bound import bound
from grader.model.calibration import FITTED, calibration
from grader.model.issue_model import SteadyState, Why, run_loop
from grader.model.loop_steps import LoopStep, Pipe
from grader.model.records import (
    NO_TRAFFIC,
    Bound,
    HostCopies,
    KernelCounts,
    OpcodeCount,
    Traffic,
)
from grader.study import course_cards
from ptxsim.plan import Size
from tests.support.bench import engine
from tests.support.explained import built, counts, loops, rung
from tests.support.files import table, values
from tests.support.places import ALICE, FIXTURES
from tests.support.product import flops, work

H200 = gpus.MULTIPROCESSORS[90]
TURING = gpus.MULTIPROCESSORS[75]
FFMA = LoopStep(unit=Pipe.FP32, stall=1)
USE = LoopStep(unit=Pipe.FP32, stall=1, waits=(0,))
BAR = LoopStep(unit=Pipe.BARRIER, stall=1)
LATENCY = 22


def lds(board: int, **changes: Any) -> LoopStep:
    given = {"unit": Pipe.SHARED, "stall": 1, "sets": board, "work": 1.0, "latency": LATENCY}
    return LoopStep(**(given | changes))


def run(
    *steps: LoopStep, warps: int = 1, blocks: int = 1, latency: int = 200, **kw: Any
) -> SteadyState:
    found = run_loop(
        steps, warps=warps, blocks=blocks, sm=kw.get("sm", H200), latency=latency, sector_cycles=0.5
    )
    assert found is not None
    assert found.issued + sum(found.idle) == pytest.approx(1, abs=0.02)
    return found


def test_ffma_alone_fill_every_slot() -> None:
    each = run(*[FFMA] * 100, warps=4)

    assert each.cycles == pytest.approx(100, abs=1) and each.issued == pytest.approx(1, abs=0.01)
    # 16 lanes for each scheduler: every second cycle.
    half = run(*[FFMA] * 100, warps=4, sm=TURING)
    assert half.cycles == pytest.approx(200, abs=1)
    assert half.idle[Why.PIPE] == pytest.approx(0.5, abs=0.02)
    # Eight warps on four schedulers.
    assert run(*[FFMA] * 100, warps=8).cycles == pytest.approx(200, abs=1)


def test_a_lone_chain_of_a_load_and_its_use() -> None:
    """Load at 0, use at 22, the next load five cycles later for its stall count."""
    use = LoopStep(unit=Pipe.FP32, stall=5, waits=(0,))
    each = run(lds(0), use)

    assert each.cycles == pytest.approx(LATENCY + 5, rel=0.01)
    assert each.issued == pytest.approx(2 / 27, abs=0.01)
    assert each.idle[Why.SHARED] == pytest.approx(21 / 27, abs=0.01)
    assert each.idle[Why.STALL] == pytest.approx(4 / 27, abs=0.01)
    # What is loaded is not asked for within a round: nobody waits.
    assert run(lds(0), *[FFMA] * 30).cycles == pytest.approx(31, abs=0.5)


def test_two_warps_of_a_scheduler_hide_each_others_latency() -> None:
    """Blocks of one warp each; the fifth shares a scheduler with the first."""
    work = [FFMA] * 24
    alone = run(lds(0), LoopStep(unit=Pipe.FP32, stall=1, waits=(0,)), *work)
    both = run(lds(0), LoopStep(unit=Pipe.FP32, stall=1, waits=(0,)), *work, warps=1, blocks=8)

    assert alone.cycles == pytest.approx(LATENCY + 25, rel=0.01)
    assert alone.idle[Why.SHARED] == pytest.approx(21 / 47, abs=0.01)
    # 26 instructions of each of two warps, with the loads of one under the work of the other.
    assert both.cycles == pytest.approx(52, abs=1)
    assert both.issued > 0.97 and both.waited[Why.SHARED] > 0.2


def test_a_barrier_waits_for_the_slowest_warp_and_takes_time_itself() -> None:
    """12 cycles and 2 for each warp, as measured; a barrier of its own for each block."""
    for warps in (1, 4, 8):
        assert run(BAR, warps=warps).cycles == pytest.approx(12 + 2 * warps, abs=1)
    busy = run(*[FFMA] * 50, BAR, warps=8)
    # Two warps on each scheduler: one has to wait until the other has issued.
    assert busy.cycles == pytest.approx(100 + 2 + 12 + 2 * 2, abs=4)
    assert busy.idle[Why.BARRIER] == pytest.approx(0.13, abs=0.03)
    # Another block computes meanwhile.
    two = run(*[FFMA] * 50, BAR, warps=8, blocks=2)
    assert two.cycles == pytest.approx(204, abs=4) and two.waited[Why.BARRIER] > 0.2


def test_shared_memory_serves_a_wavefront_in_each_cycle() -> None:
    assert run(*[lds(0)] * 8, USE, warps=16).cycles == pytest.approx(128, abs=2)
    assert run(*[lds(0, work=4.0)] * 8, USE, warps=16).cycles == pytest.approx(512, abs=8)
    # One scheduler alone gets its turn every fourth cycle.
    assert run(*[lds(0)] * 64, USE).cycles == pytest.approx(64 * 4 + LATENCY - 3, abs=3)


@pytest.mark.parametrize(("pattern", "each"), values(__file__, "register_banks.txt"))
def test_register_banks(pattern: list[tuple[int, int]], each: float) -> None:
    """Cycles of an FFMA, as a microbenchmark with these operands showed on an H200."""
    code = [LoopStep(unit=Pipe.FP32, stall=1, reads=reads) for reads in pattern] * 16
    found = run(*code, warps=4)

    assert found.cycles / len(code) == pytest.approx(each, rel=0.03)
    assert found.idle[Why.BANKS] == pytest.approx(1 - 1 / each, abs=0.03)


def test_global_loads_wait_for_lines_sectors_and_the_way() -> None:
    near = LoopStep(unit=Pipe.LINES, stall=1, sets=0, work=1.0, latency=32)
    far = LoopStep(unit=Pipe.LINES, stall=1, sets=0, work=16.0, sectors=16.0, latency=32)

    assert run(near, USE).cycles == pytest.approx(32 + 1, rel=0.01)
    assert run(far, USE, latency=200).cycles == pytest.approx(16 - 1 + 200 + 1, rel=0.01)
    assert run(far, USE, latency=200).idle[Why.GLOBAL] > 0.9


def test_copies_are_waited_for_by_groups() -> None:
    """Two groups in flight hide what one does not."""
    copy = LoopStep(unit=Pipe.LINES, stall=1, work=1.0, sectors=2.0, copies=True)
    fence = LoopStep(unit=Pipe.NONE, stall=1, sets=0, fence=True)
    work = [FFMA] * 100

    def cycles(left: int) -> float:
        drain = LoopStep(unit=Pipe.NONE, stall=1, drains=(0, left))
        return run(copy, fence, drain, *work, latency=250).cycles

    assert cycles(0) == pytest.approx(250 + 102, abs=3)
    # The copy of one round is asked for a round later: they go by in twos of 250 + 2 and a bit.
    assert cycles(1) == pytest.approx((250 + 102) / 2, abs=52)
    assert cycles(3) == pytest.approx(103, abs=1)


def test_a_round_that_is_too_long_is_left_out() -> None:
    assert (
        run_loop((FFMA,) * 100_000, warps=64, blocks=1, sm=H200, latency=200, sector_cycles=0.5)
        is None
    )


# --- remedies against bank conflicts


def access(*words: int, width: int = 4, **changes: object) -> SharedAccess:
    """A load in the main loop whose lanes read these words."""
    given: dict[str, object] = {
        **{"opcode": "LDS", "file": "sgemm.cu", "line": 10, "row": 1, "in_loop": True},
        **{"requests": 1.0, "wavefronts": 8.0, "ideal": 1.0, "width": width, "array": 0},
        "lanes": words,
    }
    return SharedAccess(**(given | changes))  # type: ignore[arg-type]


def blamed(*accesses: SharedAccess, unroll: int = 1) -> Conflict:
    found = worst(accesses, unroll, engine())
    assert found is not None
    return found


def advised(*accesses: SharedAccess, unroll: int = 1) -> str:
    remedy = blamed(*accesses, unroll=unroll).remedy
    return str(remedy.words) if remedy else ""


def test_a_column_of_a_square_tile_is_padded_by_one() -> None:
    column = access(*(32 * lane for lane in range(32)), wavefronts=32.0)

    assert advised(column) == "pad each row of the tile by 1"
    found = blamed(column)
    assert found.remedy is not None and found.remedy.kept == 0
    assert found.lanes == (0, 1) and found.apart == 32


def test_rows_that_are_read_as_float4_are_padded_by_four() -> None:
    """By one, the float4 of the second access would not be aligned."""
    scattered = access(*(64 * (lane % 8) for lane in range(32)), opcode="STS")
    vectors = access(*(lane % 8 * 4 for lane in range(32)), width=16, wavefronts=4.0, ideal=4.0)

    words = advised(scattered, vectors, unroll=4)
    assert words == "pad each row of the tile by 4, which keeps float4 aligned"


def test_a_remedy_must_help_for_the_rows_that_there_may_be() -> None:
    """A thread reads 8 rows of 9 words: no padding helps, neighbouring threads on neighbouring rows
    do."""
    rows = [access(*(72 * (lane % 16) + 9 * i for lane in range(32))) for i in range(8)]

    assert advised(*rows) == "let neighbouring threads take neighbouring rows of the tile"


def test_padding_is_not_advised_within_a_row() -> None:
    """Eight neighbouring values for each of 16 threads, read as two float4: the usual 8×8 tile."""
    places = [lane % 16 * 8 for lane in range(32)]
    first = access(*places, width=16, wavefronts=4.0, ideal=2.0)
    second = access(*(place + 4 for place in places), width=16, wavefronts=4.0, ideal=2.0)

    words = advised(first, second)
    assert words.startswith("padding rows does not help")
    assert "neighbouring groups of 4 values" in words and "64 values apart" in words


def test_nothing_is_advised_that_does_not_help() -> None:
    """28 words apart, 4 more bring all lanes into one bank; float4 forbids one more."""
    column = access(*(28 * lane for lane in range(32)))
    vectors = access(*(4 * lane for lane in range(32)), width=16, wavefronts=4.0, ideal=4.0)

    assert "by 1" in advised(access(*(16 * lane for lane in range(32)), wavefronts=16.0))
    assert blamed(column, vectors).remedy is None
    scalars = access(*(lane % 4 * 127 + lane // 4 * 8 for lane in range(32)))
    assert "float4" not in advised(scalars)  # there is none that 4 would keep aligned


def test_the_line_with_the_most_extra_wavefronts_is_blamed() -> None:
    free = access(*range(32), line=5, requests=1e6, wavefronts=1.0)
    rare = access(*(32 * lane for lane in range(32)), line=6, wavefronts=32.0)
    often = access(*(2 * lane for lane in range(32)), line=7, wavefronts=2.0, requests=100.0)
    found = blamed(free, rare, often)

    assert (found.at.line, found.at.file) == (7, "sgemm.cu")
    assert found.share == pytest.approx(100 / 131)
    assert worst((free,), 1, engine()) is None


def test_what_lies_side_by_side() -> None:
    strided = [access(*(lane % 16 + 16 * i for lane in range(32))) for i in range(8)]
    owned = [access(*(lane % 16 * 8 + i for lane in range(32))) for i in range(8)]
    k_major = [access(*(lane % 16 * 64 + 8 * i for lane in range(32))) for i in range(8)]

    assert side_by_side(strided) and side_by_side(owned)
    assert not side_by_side(k_major)


# --- bounds


SIZE = Size.of(m=8192, n=8192, k=8192)
CARD = next(card for card in gpus.known() if card.name == "H200")
MEASURED = {name: float(speed) for name, speed in table(__file__, "measured.txt")}
NO_RUNGS = {
    "alice": ALICE,
    "cp_async_ptx": FIXTURES / "correct" / "cp_async_ptx",
    "cp_async_intrinsic": FIXTURES / "correct" / "cp_async_intrinsic",
}


TRAFFIC = (
    *("global_loads", "global_stores", "global_copies"),
    *("shared_loads", "shared_stores", "shared_copies"),
)


def a_kernel(**changes: object) -> KernelCounts:
    """M·N·K FFMA and nothing else, in ten full waves of an H200."""
    ffma = flops(SIZE) // 64
    kernel = KernelCounts(
        name="k",
        grid=(1320, 1, 1),
        block=(256, 1, 1),
        shared_bytes=0,
        times=1,
        complete=True,
        instructions=ffma,
        floats=ffma,
        flops=flops(SIZE),
        warp_cycles=0.0,
        mix=(),
        **dict.fromkeys(TRAFFIC, NO_TRAFFIC),
    )
    return msgspec.structs.replace(kernel, **changes)


def limit(kernel: KernelCounts) -> tuple[float, str]:
    found = bound([kernel], {}, work(SIZE), CARD)
    assert found is not None and found.most is not None and found.speed < found.most.speed
    return found.most.speed, found.most.resource


def test_nothing_but_ffma_reaches_the_peak() -> None:
    speed, resource = limit(a_kernel())

    assert speed == pytest.approx(CARD.fp32_tflops, rel=1e-6)
    assert resource in ("FP32", "issue")  # four schedulers feed 128 lanes


def test_each_resource_bounds() -> None:
    ffma = flops(SIZE) // 64
    peak = limit(a_kernel())[0]
    waves = Traffic(requests=ffma, cost=ffma, lines=0, bytes=0)

    assert limit(a_kernel(instructions=2 * ffma)) == (pytest.approx(peak / 2), "issue")
    assert limit(a_kernel(shared_loads=waves)) == (pytest.approx(peak / 4), "shared memory")
    lines = Traffic(requests=ffma, cost=ffma, lines=2 * ffma, bytes=0)
    assert limit(a_kernel(global_loads=lines)) == (pytest.approx(peak / 8 / 0.99), "L1")
    # One block more than full waves: one multiprocessor runs 11 where 10.01 would do.
    assert limit(a_kernel(grid=(1321, 1, 1)))[0] == pytest.approx(peak * 1321 / 132 / 11)
    # A single warp at a time on each multiprocessor: its own time decides.
    one = KernelInfo(name="k", registers=32, shared_bytes=200 * 1024, spill_bytes=0)
    slow = bound([a_kernel(warp_cycles=1e9)], {"k": one}, work(SIZE), CARD)
    assert slow is not None and slow.most is not None and slow.resource == "latency"
    assert slow.most.speed == pytest.approx(flops(SIZE) / (10e9 / 1.98e9) / 1e12)


def test_a_kernel_that_does_not_fit_has_no_bound() -> None:
    huge = KernelInfo(name="k", registers=32, shared_bytes=300 * 1024, spill_bytes=0)

    assert bound([a_kernel()], {"k": huge}, work(SIZE), CARD) is None


@cache
def bound_of(name: str) -> Bound:
    folder = NO_RUNGS.get(name) or rung(name)
    kernels = {kernel.name: kernel for kernel in built(folder, "sm_90").info.kernels}
    of = (folder, "sm_90", 8192)
    found = bound(counts(*of, blocks=1), kernels, work(SIZE), CARD, loops(*of, blocks=1))
    assert found is not None
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("name", MEASURED)
def test_what_was_measured_stays_under_the_bound_and_near_the_estimate(name: str) -> None:
    found = bound_of(name)

    assert found.most is not None and found.speed <= found.most.speed
    assert found.expected[0] <= MEASURED[name] <= found.most.speed
    assert 0.8 <= MEASURED[name] / found.speed <= 1.15


def test_all_launches_count_and_a_pass_takes_the_time_of_its_memory() -> None:
    """A pass that reads and writes 4 GB takes 8/4800 s on an H200."""
    moved = Traffic(requests=1, cost=1, lines=1, bytes=4_000_000_000)
    copies = a_kernel(flops=0, floats=0, instructions=1, global_loads=moved, global_stores=moved)
    alone, both = (
        bound(counts, {}, work(SIZE), CARD) for counts in ([a_kernel()], [copies, a_kernel()])
    )

    assert alone is not None and both is not None and both.most is not None
    seconds = [flops(SIZE) / speed / 1e12 for speed in (alone.speed, both.speed)]
    starts = FITTED.block_cycles / 1.98e9, FITTED.launch_us * 1e-6
    assert seconds[1] - seconds[0] == pytest.approx(
        8 / 4800 * FITTED.slower["DRAM"] + starts[1], abs=10 * starts[0]
    )
    assert alone.most is not None  # it may all be in the L2
    assert both.most.speed == pytest.approx(alone.most.speed, rel=1e-3)


ALONE = KernelInfo(name="k", registers=32, shared_bytes=0, spill_bytes=0)


def seconds(kernel: KernelCounts, info: KernelInfo = ALONE, **more: Any) -> float:
    """What is expected of a kernel of no main loop."""
    found = bound([kernel], {"k": info}, work(SIZE), CARD, **more)
    assert found is not None
    return flops(SIZE) / found.speed / 1e12


def test_units_of_few_lanes_take_their_time() -> None:
    """In each of them as many instructions as there are FFMA."""
    ffma = flops(SIZE) // 64
    peak = limit(a_kernel())[0]
    for unit, lanes in (("FP64", 64), ("integers", 64), ("special functions", 16)):
        kernel = a_kernel(units=(OpcodeCount(kind=unit, count=ffma),))
        assert limit(kernel) == (pytest.approx(peak * lanes / 128), unit)
    shuffles = a_kernel(units=(OpcodeCount(kind="shuffles", count=ffma),))
    assert limit(shuffles) == (pytest.approx(peak / 4), "shared memory")


def test_local_memory_takes_lines_of_the_l1_and_what_it_cannot_hold_more() -> None:
    ffma = flops(SIZE) // 64
    kernel = a_kernel(local_lines=ffma)
    fits, misses = (msgspec.structs.replace(ALONE, local_bytes=each) for each in (8, 1024))

    assert limit(kernel) == (pytest.approx(limit(a_kernel())[0] / 4 / 0.99), "L1")
    assert seconds(kernel, misses) > 2 * seconds(kernel, fits)


def test_copies_of_the_host_take_the_time_of_their_bytes() -> None:
    gigabyte = HostCopies(calls=1, bytes=10**9)
    added = seconds(a_kernel(), copies=gigabyte) - seconds(a_kernel())

    assert added == pytest.approx(
        1e9 / 4.8e12 * FITTED.slower["DRAM"] + FITTED.launch_us * 1e-6, rel=1e-6
    )


def test_a_launch_takes_as_long_as_its_heaviest_block() -> None:
    """A tenth of all work on one of 132 multiprocessors."""
    assert limit(a_kernel(heaviest=0.1))[0] == pytest.approx(limit(a_kernel())[0] / 13.2)


def test_changes_of_one_word_follow_each_other() -> None:
    """Of one that is no output, too."""
    kernel = a_kernel(hottest=1e9)

    assert seconds(kernel) == pytest.approx(1e9 * FITTED.atomic_cycles / 1.98e9, rel=0.01)


def test_blocks_that_meet_wait_for_each_other() -> None:
    (counted,) = counts(FIXTURES / "correct" / "cooperative_grid_sync", "sm_90", 256)
    met = a_kernel(meetings=100.0)
    trips = 3 * 250 * FITTED.l2_loaded + 1056 * FITTED.atomic_cycles  # 8 blocks are resident

    assert counted.meetings == pytest.approx(4, rel=0.15)  # it is scaled by its operations
    waves = 10 / 8
    assert seconds(met) - seconds(a_kernel()) == pytest.approx(
        100 * waves * trips / 1.98e9, rel=0.05
    )


def test_a_loop_inside_the_main_loop_goes_round_as_often_as_it_does() -> None:
    """tile32 adds 32 products for each tile, one in each round of a loop that is not unrolled."""
    (loop,) = loops(rung("tile32"), "sm_90", 1024, blocks=1)

    assert loop is not None and loop.rounds == pytest.approx(1024 / 32)
    assert sum(step.unit is Pipe.FP32 for step in loop.steps) == 32


@pytest.mark.sampled
def test_what_the_issue_model_waits_for() -> None:
    """A tile that is used as soon as it comes; the same one round ahead; FFMA in no good order."""
    exposed, prefetched = bound_of("transposed").waiting, bound_of("register_prefetch").waiting
    buffered = bound_of("double_buffer").waiting

    assert exposed is not None and prefetched is not None and buffered is not None
    assert exposed.warp_global_loads > 0.05 > prefetched.warp_global_loads
    assert exposed.issued < prefetched.issued - 0.03
    assert bound_of("double_buffer").resource == "waiting"
    assert buffered.banks > 0.1 > buffered.stalls + buffered.global_loads
    shares = (buffered.issued, buffered.banks, buffered.stalls, buffered.fp32)
    loads = buffered.shared_loads + buffered.global_loads
    assert 0.98 < sum(shares) + loads + buffered.barriers < 1.02


def test_a_course_s_figures_of_its_card_change_the_constants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = msgspec.structs.replace(
        FITTED.card, gpu="NVIDIA A100-PCIE-40GB", launch_us=2 * FITTED.card.launch_us
    )
    (tmp_path / "first" / "calibration").mkdir(parents=True)
    (tmp_path / "first" / "calibration" / "a100.json").write_bytes(msgspec.json.encode(card))
    a100 = gpus.find("NVIDIA A100-PCIE-40GB")
    assert a100 is not None
    assert not calibration(a100).measured
    monkeypatch.setenv("SGEMM_GRADER_PREPARED", str(tmp_path / "first"))
    found = calibration(a100, course_cards())
    assert found.measured
    assert found.launch_us == pytest.approx(2 * FITTED.launch_us)
    assert found.slower == FITTED.slower
    wrong = msgspec.to_builtins(card) | {"l2_bytes": -1.0}
    (tmp_path / "other" / "calibration").mkdir(parents=True)
    (tmp_path / "other" / "calibration" / "a100.json").write_bytes(msgspec.json.encode(wrong))
    monkeypatch.setenv("SGEMM_GRADER_PREPARED", str(tmp_path / "other"))
    with pytest.raises(UsageError, match=r"a100\.json: .*`l2_bytes` must be a positive number"):
        course_cards()
