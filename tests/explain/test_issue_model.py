"""The issue model of a multiprocessor, by hand, on sequences whose cycles are known."""

from __future__ import annotations

from typing import Any

import pytest

from grader.base import gpus
from grader.explain.accesses import SharedAccess, side_by_side
from grader.explain.banks import Conflict, worst
from grader.explain.issue_model import SteadyState, Why, run_loop
from grader.explain.loop_steps import LoopStep, Pipe
from tests.support.bench import engine
from tests.support.files import values

H200 = gpus.MULTIPROCESSORS[90]
TURING = gpus.MULTIPROCESSORS[75]
FFMA = LoopStep(unit=Pipe.FP32, stall=1)
USE = LoopStep(unit=Pipe.FP32, stall=1, waits=(0,))
BAR = LoopStep(unit=Pipe.BARRIER, stall=1)
LATENCY = 22


def lds(board: int, **changes: Any) -> LoopStep:
    given = {
        "unit": Pipe.SHARED,
        "stall": 1,
        "sets": board,
        "work": 1.0,
        "latency": LATENCY,
    }
    return LoopStep(**(given | changes))


def run(
    *steps: LoopStep, warps: int = 1, blocks: int = 1, latency: int = 200, **kw: Any
) -> SteadyState:
    found = run_loop(steps, warps=warps, blocks=blocks, sm=kw.get("sm", H200), latency=latency)
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
    assert run_loop((FFMA,) * 100_000, warps=64, blocks=1, sm=H200, latency=200) is None


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
