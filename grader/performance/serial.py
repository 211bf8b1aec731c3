"""The time of a lone warp: stall counts and scoreboards of the machine code.

A scheduler can hide this time behind other warps, so it bounds a kernel only if few warps share a
scheduler. Latencies are the lowest that anybody reported, so the time is never too long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grader.performance.sass import Function, Instruction

# Cycles from issue to result. Shared memory and the L1: the least that microbenchmarks of Volta to
# Hopper report. A load that does not hit the L1 takes far longer; that is left out on purpose.
LATENCY = {"LDS": 22, "LDSM": 22, "LDG": 32, "LD": 32, "LDL": 32, "LDC": 8, "S2R": 8}
OTHER_LATENCY = 6  # what else sets a scoreboard
_NO_CONTROL = 1  # a stall count that cannot be read


def block_cycles(code: Sequence[Instruction], *, again: bool) -> float:
    """Cycles of one pass through a basic block. ``again``: the block is a loop by itself, so a pass
    may wait for results of the pass before; the second pass is measured."""
    now, ready = 0.0, dict[int, float]()
    if again:
        now = _pass(code, ready, now)
    return _pass(code, ready, now) - now


def _pass(code: Sequence[Instruction], ready: dict[int, float], now: float) -> float:
    for item in code:
        control = item.control
        if control is None:
            now += _NO_CONTROL
            continue
        now = max([now, *(ready.get(board, 0.0) for board in control.waits)])
        if control.write_barrier is not None:
            board, done = control.write_barrier, now + LATENCY.get(item.base, OTHER_LATENCY)
            ready[board] = max(ready.get(board, 0.0), done)
        now += max(control.stall, 1)
    return now


def warp_cycles(function: Function, runs: Mapping[int, float] | Sequence[float]) -> float:
    """Cycles of all passes that ``runs`` (executions of every block) holds."""
    alone = {loop.head for loop in function.loops if loop.blocks == (loop.head,)}
    return sum(
        runs[index] * block_cycles(function.of_block(index), again=index in alone)
        for index in range(len(function.blocks))
        if runs[index]
    )
