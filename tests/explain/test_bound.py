"""The bound model: by hand, on records made for it; and against rungs timed on an H200."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from grader.base import NO_TRAFFIC, gpus
from grader.base.explanation import Bound, KernelCounts, Traffic
from grader.base.records import KernelInfo
from grader.explain.bound import bound
from ptxsim.records import Size
from tests.support.explained import built, counts, loops, rung
from tests.support.files import table
from tests.support.places import ALICE, FIXTURES
from tests.support.product import flops, work

SIZE = Size.of(m=8192, n=8192, k=8192)
H200 = next(card for card in gpus.known() if card.name == "H200")
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
    found = bound([kernel], {}, work(SIZE), H200)
    assert found is not None
    return found.speed, found.resource


def test_nothing_but_ffma_reaches_the_peak() -> None:
    speed, resource = limit(a_kernel())

    assert speed == pytest.approx(H200.fp32_tflops, rel=1e-6)
    assert resource in ("FP32", "issue")  # four schedulers feed 128 lanes


def test_each_resource_bounds() -> None:
    ffma = flops(SIZE) // 64
    peak = limit(a_kernel())[0]
    waves = Traffic(requests=ffma, cost=ffma, lines=0, bytes=0)

    assert limit(a_kernel(instructions=2 * ffma)) == (pytest.approx(peak / 2), "issue")
    assert limit(a_kernel(shared_loads=waves)) == (pytest.approx(peak / 4), "shared memory")
    lines = Traffic(requests=ffma, cost=ffma, lines=2 * ffma, bytes=0)
    assert limit(a_kernel(global_loads=lines)) == (pytest.approx(peak / 8), "L1")
    # One block more than full waves: one multiprocessor runs 11 where 10.01 would do.
    assert limit(a_kernel(grid=(1321, 1, 1)))[0] == pytest.approx(peak * 1321 / 132 / 11)
    # A single warp at a time on each multiprocessor: its own time decides.
    one = KernelInfo(name="k", registers=32, shared_bytes=200 * 1024, spill_bytes=0)
    slow = bound([a_kernel(warp_cycles=1e9)], {"k": one}, work(SIZE), H200)
    assert slow is not None and slow.resource == "latency"
    assert slow.speed == pytest.approx(flops(SIZE) / (10e9 / 1.98e9) / 1e12)


def test_a_kernel_that_does_not_fit_has_no_bound() -> None:
    huge = KernelInfo(name="k", registers=32, shared_bytes=300 * 1024, spill_bytes=0)

    assert bound([a_kernel()], {"k": huge}, work(SIZE), H200) is None


@cache
def bound_of(name: str) -> Bound:
    folder = NO_RUNGS.get(name) or rung(name)
    kernels = {kernel.name: kernel for kernel in built(folder, "sm_90").kernels}
    of = (folder, "sm_90", 8192, 1.0, 1)
    found = bound(counts(*of), kernels, work(SIZE), H200, loops(*of))
    assert found is not None
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("name", MEASURED)
def test_what_was_measured_stays_under_the_bound_and_near_the_estimate(name: str) -> None:
    found = bound_of(name)

    assert found.most is not None and found.speed <= found.most.speed
    assert MEASURED[name] <= found.most.speed
    assert 0.75 <= MEASURED[name] / found.speed <= 1.05


def test_all_launches_count_and_a_pass_takes_the_time_of_its_memory() -> None:
    """A pass that reads and writes 4 GB takes 8/4800 s on an H200."""
    moved = Traffic(requests=1, cost=1, lines=1, bytes=4_000_000_000)
    copies = a_kernel(flops=0, floats=0, instructions=1, global_loads=moved, global_stores=moved)
    alone, both = (
        bound(counts, {}, work(SIZE), H200) for counts in ([a_kernel()], [copies, a_kernel()])
    )

    assert alone is not None and both is not None and both.most is not None
    seconds = [flops(SIZE) / speed / 1e12 for speed in (alone.speed, both.speed)]
    assert seconds[1] - seconds[0] == pytest.approx(8 / 4800)
    assert both.most.speed == pytest.approx(alone.speed, rel=1e-3)  # it may all be in the L2


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
