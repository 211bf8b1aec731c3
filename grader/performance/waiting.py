"""How long the main loop takes if its warps wait for each other, for memory and for registers.

This is the issue model's time for one iteration, times the iterations and the waves of resident
blocks. All caches are cold in the first wave of the first launch; later waves find all their data
in the L2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grader.hardware.gpus import Gpu
from grader.model import Record, Waiting
from grader.performance.issue_model import SteadyState, Why, run_loop
from grader.performance.loop_steps import MainLoop

# Sectors: DRAM gives 64 bytes at a time (H200, benchmarks/calibration/latencies_h200.py).
_FETCHED = 2


class Wave(Record):
    """The blocks that the busiest multiprocessor holds at a time."""

    blocks: int
    warps: int  # of each block
    times: float  # such waves one after the other, in all launches of the kind


def waited(loop: MainLoop, wave: Wave, gpu: Gpu, *, cold: bool) -> tuple[float, Waiting] | None:
    """Seconds, and how they divide. ``cold``: no launch came before.

    None when an iteration of the loop is too long for the issue model.
    """
    sm, shape = gpu.multiprocessor, (wave.warps, wave.blocks)
    steps = loop.on(gpu)
    later = run_loop(steps, *shape, sm, latency=sm.l2_latency)
    first = run_loop(steps, *shape, sm, latency=sm.dram_latency) if cold else later
    if later is None or first is None:
        return None
    if first.cycles < later.cycles:
        first = later  # longer latencies led to a better order by chance
    share = min(1.0, 1 / wave.times) * _from_dram(loop)
    said = _mixed([(share, first), (1 - share, later)])
    return said.cycles * loop.rounds * wave.times / (gpu.clock_mhz * 1e6), said


def _from_dram(loop: MainLoop) -> float:
    """The share of the iterations in which data comes from DRAM when the caches are cold."""
    per_line = (step.sectors / step.work for step in loop.steps if step.sectors and step.work)
    return min(1.0, max(per_line, default=0.0) / _FETCHED)


def _mixed(parts: Sequence[tuple[float, SteadyState]]) -> Waiting:
    """``parts``: shares of the waves, each with its result of the issue model."""

    def mean(of: Callable[[SteadyState], float]) -> float:
        return sum(share * of(one) for share, one in parts)

    return Waiting(
        cycles=mean(lambda one: one.cycles),
        issued=mean(lambda one: one.issued),
        stalls=mean(lambda one: one.idle[Why.STALL]),
        fp32=mean(lambda one: one.idle[Why.PIPE]),
        banks=mean(lambda one: one.idle[Why.BANKS]),
        shared_loads=mean(lambda one: one.idle[Why.SHARED]),
        global_loads=mean(lambda one: one.idle[Why.GLOBAL]),
        barriers=mean(lambda one: one.idle[Why.BARRIER]),
        warp_global_loads=mean(lambda one: one.waited[Why.GLOBAL]),
        warp_barriers=mean(lambda one: one.waited[Why.BARRIER]),
    )
