"""A warp's path through one iteration of a kernel's main loop, with the loops inside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from grader.performance.conservation import flows
from grader.performance.sass import Function, Instruction, Loop, loop_code, main_loop

_LONGEST = 8000  # instructions of one round; a loop over tiles of C is far longer


def round_trip(
    function: Function, runs: Sequence[float]
) -> tuple[Loop, tuple[Instruction, ...]] | None:
    """The loop along K, and one iteration of it.

    It is the innermost loop with a barrier that encloses the loop with the most FFMA. If there is
    none, or its iteration is too long for one step along K, it is the loop with the most FFMA.
    ``runs``:     executions of every block. None without a loop that computes.
    """
    inner = main_loop(function)
    if inner is None:
        return None
    around = sorted(
        (loop for loop in function.loops if set(inner.blocks) <= set(loop.blocks)),
        key=lambda loop: len(loop.blocks),
    )
    with_barrier = [
        loop for loop in around if any(item.base == "BAR" for item in loop_code(function, loop))
    ]
    for loop in (*with_barrier[:1], inner):
        path = _path(function, loop, runs)
        if path:
            return loop, tuple(path)
    return None


def _path(function: Function, loop: Loop, runs: Sequence[float]) -> list[Instruction]:
    """One round; [] when it is too long. Every branch is taken as often as its share says."""
    flow = flows(function, runs)
    owed: defaultdict[tuple[int, int], float] = defaultdict(float)
    found: list[Instruction] = []
    at = loop.head
    while len(found) <= _LONGEST:
        found += function.of_block(at)
        edges = [(at, after) for after in function.blocks[at].successors if after in loop.blocks]
        total = sum(flow[edge] for edge in edges)
        if not edges:
            return found
        for edge in edges:
            owed[edge] += flow[edge] / total if total else 1 / len(edges)
        taken = max(edges, key=lambda edge: owed[edge])
        owed[taken] -= 1
        at = taken[1]
        if at == loop.head:
            return found
    return []
