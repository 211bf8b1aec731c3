"""What branches cost that split warps.

While the lanes of a warp go different ways, an instruction takes a whole issue slot for the lanes
that are on. The simulator says for each instruction of the PTX how many lanes were on, and which
branch split the warp. The instructions that ptxas made of it share that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from grader.model import Split
from grader.performance.sass import Function
from ptxsim.findings.divergence import Branch
from ptxsim.sampling import LaunchSample, RowCount


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
        for item in function.of_block(index):
            row = rows.get(item.ptx_line or 0)
            if row is None or not row.warps or item.base == "NOP":
                continue
            on = min(times, row.warps)  # where ptxas made a predicate of a branch, others issue too
            for branch, share in _shares(row, branches, whole):
                lost[branch] += on * share
    found = [
        Split(
            file=branch.place.file if branch.place else None,
            line=branch.place.line if branch.place else None,
            reached=round(branch.warps * factor),
            splits=round(branch.splits * factor),
            lost=lost[row] * factor,
        )
        for row, branch in branches.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.lost, each.file or "", each.line or 0)))


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
