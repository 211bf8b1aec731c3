"""Branches that split warps, and the code that runs with some of the lanes off because of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ptxsim.findings.counts import Counters
from ptxsim.frontend import Location
from ptxsim.lowering.program import OUT
from ptxsim.records import Place, Record


class Branch(Record):
    """A branch that some lanes of a warp followed while others did not."""

    row: int  # line of the PTX text
    place: Place | None  # in the source
    warps: int  # executions, in the sampled blocks
    splits: int  # of them those that split the warp


def branches(counters: Counters, locations: Sequence[Location | None]) -> Iterator[Branch]:
    """All that split a warp."""
    program, splits = counters.program, counters.guarded["splits"]
    for index in np.flatnonzero(splits):
        at = program.locations[index]
        found = locations[at] if at >= 0 else None
        yield Branch(
            row=int(program.rows[index]),
            place=Place(file=found.file, line=found.line) if found and found.inside else None,
            warps=int(counters.blocks["warps"][program.head[index]]),
            splits=int(splits[index]),
        )


def splitting(counters: Counters) -> dict[int, int]:
    """For the head of every basic block between a branch that split warps and the place where all
    lanes meet again: the PTX line of that branch, the innermost one."""
    program = counters.program
    at = [int(index) for index in np.flatnonzero(counters.guarded["splits"])]
    if not at:
        return {}
    meet = _post_dominators(program.after)
    regions = {branch: _between(int(program.head[branch]), program.after, meet) for branch in at}
    found: dict[int, int] = {}
    for branch in sorted(at, key=lambda each: -len(regions[each])):
        found |= dict.fromkeys(regions[branch], int(program.rows[branch]))
    return found


def _between(start: int, after: Mapping[int, Sequence[int]], meet: Mapping[int, int]) -> set[int]:
    """The blocks that a lane may enter behind ``start`` before all lanes have met."""
    found: set[int] = set()
    todo = list(after[start])
    while todo:
        block = todo.pop()
        if block not in found and block not in (meet[start], OUT):
            found.add(block)
            todo += after[block]
    return found


def _post_dominators(after: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """For every block the first one that every way from it to the end passes through.

    Cooper, Harvey and Kennedy: two walks up the tree of what is known so far meet at the answer.
    """
    before: dict[int, list[int]] = {OUT: []}
    for block, following in after.items():
        for each in following:
            before.setdefault(each, []).append(block)
    order = _postorder(before)
    place = {block: index for index, block in enumerate(order)}
    found = {OUT: OUT}
    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            meet: int | None = None
            for each in after[block]:
                if each in found:
                    meet = each if meet is None else _common(each, meet, found, place)
            if meet is not None and found.get(block) != meet:
                found[block], changed = meet, True
    # Lanes that can never end meet nowhere.
    return {block: found.get(block, OUT) for block in after}


def _postorder(before: Mapping[int, Sequence[int]]) -> list[int]:
    """Blocks from which the end can be reached, so that the end comes last."""
    order: list[int] = []
    seen = {OUT}
    work = [(OUT, iter(before[OUT]))]
    while work:
        block, others = work[-1]
        fresh = next((each for each in others if each not in seen), None)
        if fresh is None:
            order.append(block)
            work.pop()
        else:
            seen.add(fresh)
            work.append((fresh, iter(before.get(fresh, ()))))
    return order


def _common(one: int, other: int, found: Mapping[int, int], place: Mapping[int, int]) -> int:
    while one != other:
        while place[one] < place[other]:
            one = found[one]
        while place[other] < place[one]:
            other = found[other]
    return one
