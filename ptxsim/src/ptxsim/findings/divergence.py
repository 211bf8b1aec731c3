"""Ways through a program: branches that split warps, and what runs with some of the lanes off
because of it; ways without a barrier."""

from collections.abc import Mapping, Sequence

import numpy as np

from ptxsim.findings.finding import Branch
from ptxsim.findings.row_counts import Counters
from ptxsim.frontend.records import Instruction, Location
from ptxsim.lowering.program import OUT, EngineProgram
from ptxsim.plan.records import Place


def split_by(
    counters: Counters, locations: Sequence[Location | None]
) -> tuple[tuple[Branch, ...], dict[int, int]]:
    """All branches that split a warp. And for the head of every basic block between such a branch
    and the place where all lanes meet again: the row of that branch, the innermost one."""
    program, splits = counters.program, counters.guarded["splits"]
    at = [int(index) for index in np.flatnonzero(splits)]
    if not at:
        return (), {}
    meet = _post_dominators(program.after)
    heads = {index: int(program.head[index]) for index in at}
    regions = {index: _between(heads[index], program.after, meet) for index in at}
    from_outside = sorted(at, key=lambda index: -len(regions[index]))
    inside: dict[int, int] = {}
    for index in from_outside:
        inside |= dict.fromkeys(regions[index], int(program.rows[index]))
    found = []
    for index in at:
        around = [o for o in from_outside if o != index and heads[index] in regions[o]]
        around = [o for o in around if len(regions[o]) > len(regions[index])]
        found.append(
            Branch(
                row=int(program.rows[index]),
                place=_place(program.locations[index], locations),
                warps=int(counters.blocks["warps"][heads[index]]),
                active=int(counters.blocks["lanes"][heads[index]]),
                splits=int(splits[index]),
                outer=int(program.rows[around[-1]]) if around else 0,
                loops=heads[index] in regions[index],
            )
        )
    return tuple(found), inside


def lacks_barrier(program: EngineProgram, by_all: np.ndarray, start: int, goal: int) -> bool:
    """Whether there is a way from one instruction to another without a barrier, and a place on it
    to which all threads come. by_all: by heads of basic blocks, whether they do."""
    seen = {OUT}
    todo = [(int(program.head[start]), start + 1, False)]
    while todo:
        head, at, place = todo.pop()
        place |= bool(by_all[head])
        while at < program.length and program.head[at] == head and not _meets(program.sources[at]):
            if at == goal:
                return place
            at += 1
        if at == program.length or program.head[at] != head:
            todo += [(each, each, place) for each in program.after[head] if each not in seen]
            seen.update(program.after[head])
    return False


def _meets(item: Instruction | None) -> bool:
    """Whether an instruction is a barrier, or calls a function, which may have one."""
    return item is not None and item.opcode.startswith(("bar", "call"))


def _place(at: int, locations: Sequence[Location | None]) -> Place | None:
    found = locations[at] if at >= 0 else None
    return Place(file=found.file, line=found.line) if found and found.inside else None


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
