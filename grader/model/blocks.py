"""Basic blocks: how often each runs, a lone warp's time, and the cost of divergent branches."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import prod

from grader.build import SassFunction, SassInstruction
from grader.model.records import Split
from ptxsim.findings import Branch, LaunchSample, RowCount
from ptxsim.plan import Place

Edge = tuple[int, int]
# Code may continue elsewhere than at a successor. ptxas also leaves loops by a CALL for good.
_LEAVING = ("EXIT", "CALL", "RET", "BRX", "BRXU", "JMX", "KILL")


def conserve(
    function: SassFunction, known: Sequence[float | None], guesses: Sequence[float]
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
    through = []  # the edges that enter a loop, and those that leave it: equally many warps pass
    for loop in function.loops:
        if 0 not in loop.blocks and not any(leaves[b] for b in loop.blocks):
            entries = [edge for b in loop.blocks for edge in into[b] if edge[0] not in loop.blocks]
            exits = [edge for b in loop.blocks for edge in out[b] if edge[1] not in loop.blocks]
            through.append((entries, exits))
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
        # Nor less often than a block that is reached from nowhere else.
        only = (counts[to] or 0.0 for _, to in out[left] if len(into[to]) == 1)
        counts[left] = max(min(guesses[left], most), max(only, default=0.0))


def flows(function: SassFunction, counts: Sequence[float]) -> dict[Edge, float]:
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


def _graph(function: SassFunction) -> tuple[list[list[Edge]], list[list[Edge]], list[bool]]:
    """Edges into and out of every block, and whether warps may leave it by none of them."""
    into: list[list[Edge]] = [[] for _ in function.blocks]
    out = [[(index, to) for to in block.successors] for index, block in enumerate(function.blocks)]
    for edge in chain.from_iterable(out):
        into[edge[1]].append(edge)
    leaves = [
        any(item.base in _LEAVING for item in function.of_block(index)) for index in range(len(out))
    ]
    return into, out, leaves


def _balance(gates: tuple[list[Edge], list[Edge]], edges: dict[Edge, float]) -> bool:
    """Compute the only unknown edge among a loop's gates; return whether there was one."""
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
    """Propagate counts once; return whether any new one was found."""
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


# --- a lone warp --------------------------------------------------------------------------------

# Cycles from issue to result. Shared memory and the L1: the least that microbenchmarks of Volta to
# Hopper report. A load that does not hit the L1 takes far longer; that is left out on purpose.
LATENCY = {
    **{"LDS": 22, "LDSM": 22, "LDG": 32, "LD": 32, "LDL": 32, "LDC": 8, "S2R": 8},
    # Shuffles and atomics to shared memory take the same path; those to global memory answer from
    # the L2.
    **{"SHFL": 22, "ATOMS": 22, "ATOM": 22, "ATOMG": 188},
}
FENCE_CYCLES = LATENCY["ATOMG"]  # that a fence for the whole device waits, where it must
OTHER_LATENCY = 6  # what else sets a scoreboard
_NO_CONTROL = 1  # a stall count that cannot be read


def warp_cycles(function: SassFunction, runs: Sequence[float], load: int = LATENCY["LDG"]) -> float:
    """Cycles of all passes through the blocks. runs: executions of every block; load: cycles until
    a load from global memory is there.

    In a block that is a loop by itself, a pass may wait for results of the pass before; the second
    one is measured.
    """
    alone = {loop.head for loop in function.loops if loop.blocks == (loop.head,)}

    def cycles(index: int) -> float:
        code, ready = function.of_block(index), dict[int, float]()
        start = _pass(code, ready, 0.0, load) if index in alone else 0.0
        return _pass(code, ready, start, load) - start

    return sum(times * cycles(index) for index, times in enumerate(runs) if times)


def _pass(code: Sequence[SassInstruction], ready: dict[int, float], now: float, load: int) -> float:
    """The time after one pass through a block. ready: when each scoreboard is free."""
    latency = LATENCY | {"LDG": load}
    for item in code:
        control = item.control
        if control is None:
            now += _NO_CONTROL
            continue
        now = max([now, *(ready.get(board, 0.0) for board in control.waits)])
        if control.write_barrier is not None:
            board, done = control.write_barrier, now + latency.get(item.base, OTHER_LATENCY)
            ready[board] = max(ready.get(board, 0.0), done)
        now += max(control.stall, 1)
    return now


# --- divergence --------------------------------------------------------------------------------


def splits(
    function: SassFunction, sample: LaunchSample, runs: Sequence[float], factor: float
) -> tuple[Split, ...]:
    """runs: executions of every block of ``function`` in the sampled blocks, which ``factor``
    scales up to all launches."""
    branches = {branch.row: branch for branch in sample.branches}
    if not branches:
        return ()
    rows = {row.row: row for row in sample.rows}
    whole = prod(sample.block) / (32 * sample.warps)
    lost: defaultdict[int, float] = defaultdict(float)
    for index, times in enumerate(runs):
        for row in _executed(function.of_block(index), rows):
            on = min(times, row.warps)  # where ptxas made a predicate of a branch, others issue too
            for at, share in _shares(row, branches, whole):
                lost[at] += on * share
    copies: defaultdict[Place | None, list[Branch]] = defaultdict(list)  # of unrolled loops, say
    for branch in sample.branches:
        copies[branch.place].append(branch)
    found = [
        Split(
            file=place.file if place else None,
            line=place.line if place else None,
            reached=round(sum(each.warps for each in together) * factor),
            splits=round(sum(each.splits for each in together) * factor),
            lost=sum(lost[each.row] for each in together) * factor,
        )
        for place, together in copies.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.lost, each.file or "", each.line or 0)))


def _executed(code: Sequence[SassInstruction], rows: Mapping[int, RowCount]) -> Iterator[RowCount]:
    """For each instruction of a block: the row that says how many of its lanes are on.

    Where ptxas made predicates of branches, a block holds rows of several PTX blocks. What has no
    guard runs with all lanes that come to the block: those of its fullest row.
    """
    found = [(item, rows[item.ptx_line or 0]) for item in code if item.ptx_line in rows]
    found = [(item, row) for item, row in found if row.warps and item.base != "NOP"]
    always = [row for item, row in found if item.guard is None]
    fullest = max(always, key=lambda row: (row.active / row.warps, row.warps), default=None)
    for item, row in found:
        yield row if item.guard is not None or fullest is None else fullest


def _shares(row: RowCount, branches: Mapping[int, Branch], whole: float) -> list[tuple[int, float]]:
    """The share of an instruction's lanes that each branch around it switched off."""
    found, on, at = [], row.active / (32 * row.warps), row.branch
    while at:
        before = _reached_with(branches[at], branches, whole)
        if before > on:
            found.append((at, before - on))
            on = before
        at = branches[at].outer
    return found


def _reached_with(branch: Branch, branches: Mapping[int, Branch], whole: float) -> float:
    """The share of lanes that are on when warps come to this branch; to a loop, for the first
    time."""
    if not branch.loops:
        return branch.active / (32 * branch.warps)
    outer = branches.get(branch.outer)
    return _reached_with(outer, branches, whole) if outer else whole
