"""Derives unknown block counts from known ones: as many warps enter a block as leave it."""

from __future__ import annotations

from collections.abc import Sequence

from grader.performance.sass import Function

Edge = tuple[int, int]
# Code may continue elsewhere than at a successor. ptxas also leaves loops by a CALL for good.
_LEAVING = ("EXIT", "CALL", "RET", "BRX", "BRXU", "JMX", "KILL")


def conserve(
    function: Function, known: Sequence[float | None], guesses: Sequence[float]
) -> list[float]:
    """Executions of every block. Where the flow does not determine a block, its guess applies,
    limited by the flow into it.

    Warps that diverge at a branch count on both sides; outflow without inflow counts as zero.
    """
    counts = list(known)
    edges: dict[Edge, float] = {}
    into, out, leaves = _graph(function)
    if counts and counts[0] is None:
        counts[0] = guesses[0]
    for index, block in enumerate(function.blocks):
        if block.successors == (index,) and block.end == block.start + 1:
            counts[index] = 0.0  # a branch to itself, with which ptxas ends every function
    through = [
        _gates(loop.blocks, into, out)
        for loop in function.loops
        if 0 not in loop.blocks and not any(leaves[b] for b in loop.blocks)
    ]
    while True:
        progress = _propagate(counts, edges, into, out, leaves)
        for gates in through:
            progress |= _balance(gates, edges)
        if progress:
            continue
        left = next((i for i, times in enumerate(counts) if times is None), None)
        if left is None:
            return [times if times is not None else 0.0 for times in counts]
        most = sum(edges.get(edge, counts[edge[0]] or guesses[edge[0]]) for edge in into[left])
        if len(out[left]) == 1 and not leaves[left]:  # nor more often than what must follow
            behind = counts[out[left][0][1]]
            most = min(most, guesses[out[left][0][1]] if behind is None else behind)
        counts[left] = min(guesses[left], most)


def flows(function: Function, counts: Sequence[float]) -> dict[Edge, float]:
    """How often every edge is taken when the executions of all blocks are known. An edge that these
    do not determine gets a share in proportion to the block behind it."""
    edges: dict[Edge, float] = {}
    into, out, leaves = _graph(function)
    known: list[float | None] = list(counts)
    while _propagate(known, edges, into, out, leaves):
        pass
    for index, side in enumerate(out):
        missing = [edge for edge in side if edge not in edges]
        rest = max(counts[index] - sum(edges.get(edge, 0.0) for edge in side), 0.0)
        behind = sum(counts[edge[1]] for edge in missing)
        for edge in missing:
            edges[edge] = rest * counts[edge[1]] / behind if behind else 0.0
    return edges


def _graph(function: Function) -> tuple[list[list[Edge]], list[list[Edge]], list[bool]]:
    """Edges into and out of every block, and whether warps may leave it by none of them."""
    into: list[list[Edge]] = [[] for _ in function.blocks]
    out: list[list[Edge]] = [[] for _ in function.blocks]
    for index, block in enumerate(function.blocks):
        for successor in block.successors:
            out[index].append((index, successor))
            into[successor].append((index, successor))
    leaves = [
        any(item.base in _LEAVING for item in function.of_block(index)) for index in range(len(out))
    ]
    return into, out, leaves


def _gates(
    blocks: Sequence[int], into: Sequence[Sequence[Edge]], out: Sequence[Sequence[Edge]]
) -> tuple[list[Edge], list[Edge]]:
    """The edges that enter a loop, and those that leave it: equally many warps pass each kind."""
    inside = set(blocks)
    entries = [edge for b in blocks for edge in into[b] if edge[0] not in inside]
    return entries, [edge for b in blocks for edge in out[b] if edge[1] not in inside]


def _balance(gates: tuple[list[Edge], list[Edge]], edges: dict[Edge, float]) -> bool:
    """Computes the only unknown edge among a loop's gates; returns whether there was one."""
    missing = [edge for side in gates for edge in side if edge not in edges]
    if len(missing) != 1:
        return False
    entering, leaving = (sum(edges.get(edge, 0.0) for edge in side) for side in gates)
    rest = entering - leaving if missing[0] in gates[1] else leaving - entering
    edges[missing[0]] = max(rest, 0.0)
    return True


def _propagate(
    counts: list[float | None],
    edges: dict[Edge, float],
    into: Sequence[Sequence[Edge]],
    out: Sequence[Sequence[Edge]],
    leaves: Sequence[bool],
) -> bool:
    """Propagates counts once; returns whether it found any new one."""
    learnt = False
    for index in range(len(counts)):
        sides = [into[index]] if index else []  # the entry is also entered from outside
        if not leaves[index]:
            sides.append(out[index])
        for side in sides:
            missing = [edge for edge in side if edge not in edges]
            total = counts[index]
            if total is None and side and not missing:
                counts[index] = sum(edges[edge] for edge in side)
                learnt = True
            elif total is not None and missing:
                rest = total - sum(edges[edge] for edge in side if edge in edges)
                if len(missing) == 1 or rest <= 0:
                    edges |= dict.fromkeys(missing, max(rest, 0.0))
                    learnt = True
    return learnt
