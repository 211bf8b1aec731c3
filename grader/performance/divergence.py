"""What branches cost that split warps, by line of the source.

While the lanes of a warp go different ways, an instruction takes a whole issue slot for the lanes
that are on. The simulator says for each instruction of the PTX how many lanes were on, and which
branch split the warp. The instructions that ptxas made of it share that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from grader.model import Split
from grader.performance.sass import Function, Instruction
from ptxsim.findings.divergence import Branch
from ptxsim.findings.row_counts import RowCount
from ptxsim.records import Place
from ptxsim.sampling import LaunchSample


def splits(
    function: Function, sample: LaunchSample, runs: Sequence[float], factor: float
) -> tuple[Split, ...]:
    """runs: executions of every block of ``function`` in the sampled blocks, which ``factor``
    scales up to all launches."""
    branches = {branch.row: branch for branch in sample.branches}
    if not branches:
        return ()
    rows = {row.row: row for row in sample.rows}
    threads = sample.block[0] * sample.block[1] * sample.block[2]
    whole = threads / (32 * sample.warps)
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


def _executed(code: Sequence[Instruction], rows: Mapping[int, RowCount]) -> Iterator[RowCount]:
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
