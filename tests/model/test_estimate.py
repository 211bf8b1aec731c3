"""What the estimate adds to the bound: DRAM by launches and loops, and what runs together."""

import msgspec
import pytest

from grader.base import KernelInfo, gpus
from grader.judge.program import prepare
from grader.labs.lab import find_lab, load_lab
from grader.labs.submission import load_submission
from grader.model import Bound, KernelCounts
from grader.model.bound import bound
from grader.model.records import NO_TRAFFIC, Traffic
from grader.problems import Work
from grader.study.explaining import explain_program
from ptxsim.plan import Size
from tests.support.bench import bench
from tests.support.places import ROOT

CARD = gpus.named("H200")
KERNEL = KernelInfo(name="k", registers=32, shared_bytes=0, spill_bytes=0)
N = 1 << 28
ALL = 4 * N  # bytes of an operand
READS = Traffic(requests=N // 32, cost=N // 8, lines=N // 32, bytes=ALL)
KINDS = ("global_loads", "global_stores", "global_copies")
KINDS += ("shared_loads", "shared_stores", "shared_copies")


def work(lab: str, size: Size) -> Work:
    return load_lab(find_lab(lab)).problem.at(size)


def scan(**changes: object) -> Bound:
    """Every element read and written once, by blocks of 256 threads, as a scan's kernel may."""
    counts = KernelCounts(
        name="k",
        grid=(N // 1024, 1, 1),
        block=(256, 1, 1),
        shared_bytes=0,
        times=1,
        complete=True,
        instructions=N // 16,
        floats=0,
        flops=0,
        warp_cycles=100.0,
        mix=(),
        loaded=(ALL, 0),
        **{name: READS if name in KINDS[:2] else NO_TRAFFIC for name in KINDS},
    )
    counts = msgspec.structs.replace(counts, **changes)
    found = bound([counts], {"k": KERNEL}, work("scan", Size.of(n=N)), CARD)
    assert found is not None
    return found


def dram(found: Bound) -> float:
    return next(each.speed for each in found.limits if each.resource == "DRAM")


def test_each_launch_brings_what_no_l2_holds() -> None:
    twice = {name: msgspec.structs.replace(READS, bytes=2 * ALL, cost=N // 4) for name in KINDS[:2]}
    again = scan(times=2, loaded=(2 * ALL, 0), **twice)
    assert dram(again) == pytest.approx(dram(scan()) / 2)


def test_a_second_loop_reads_again_what_the_resident_blocks_do_not_keep() -> None:
    loops = scan(loaded=(ALL, ALL, 0))
    assert dram(loops) == pytest.approx(dram(scan()))  # blocks of 4 KiB: the L2 keeps them
    long = scan(grid=(2048, 1, 1), loaded=(ALL, ALL, 0))
    assert dram(long) == pytest.approx(dram(scan()) * 2 / 3)
    # What one loop loads several times is near.
    assert dram(scan(grid=(2048, 1, 1), loaded=(3 * ALL, 0))) == pytest.approx(dram(scan()))


def test_few_warps_wait_for_dram() -> None:
    few = {"grid": (132, 1, 1), "block": (32, 1, 1), "warp_cycles": 1e6, "far_cycles": 2e7}
    assert scan(**few).resource == "latency"
    assert scan(**few).speed < 0.2 * scan(**few | {"far_cycles": 0.0}).speed
    assert scan(**few).most == scan(**few | {"far_cycles": 0.0}).most  # a bound assumes the L1


def test_small_blocks_start_one_after_the_other() -> None:
    small, large = scan(grid=(N // 32, 1, 1), block=(32, 1, 1)), scan()
    assert small.resource == "latency" and large.resource == "DRAM"
    cycles = N / 32 / CARD.multiprocessors * 136.364
    assert small.speed < 2 * ALL / (cycles / (CARD.clock_mhz * 1e6)) / 1e9


def test_sectors_stored_in_part_take_the_l2() -> None:
    speeds = {each.resource: each.speed for each in scan(scattered=7 * N // 8).limits}
    whole = {each.resource: each.speed for each in scan().limits}
    assert speeds["L2"] < 0.1 * whole["L2"]


def test_what_runs_in_phases_takes_more_than_its_longest_part() -> None:
    """Where operations count, the longest part is all."""
    busy = scan(instructions=N)
    longest = min(each.speed for each in busy.limits)
    assert 0.55 * longest < busy.speed < 0.9 * longest


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("lab", "rung", "measured"),
    # GB/s of an H200, 2026-11-29: the shipped ladders.
    [("histogram", "01_global", 3.89), ("histogram-ints", "01_global", 141.0)],
)
def test_atomics_of_many_words_in_few_slices_take_turns(
    lab: str, rung: str, measured: float
) -> None:
    """Keys are drawn as the lab draws them: made-up numbers would be no bins."""
    context = msgspec.structs.replace(bench(), lab=load_lab(find_lab(lab)))
    handed = load_submission(ROOT / "reference" / lab / rung, f"{lab.partition('-')[0]}.cu")
    why = explain_program(prepare(handed, [Size.of(n=N)], context, "sm_90"), CARD)
    (found,) = why.bounds
    assert found.resource == "atomics"
    assert found.interval[0] <= measured <= found.interval[1]
