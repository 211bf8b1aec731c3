"""Basic blocks and natural loops of a function's instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grader.performance.sass.code import Block, Instruction, Loop

_LEAVES = {"EXIT", "RET", "KILL", "BRX", "BRXU", "JMX"}
_JUMPS = {"BRA", "JMP"}


def blocks(code: Sequence[Instruction], labels: Mapping[str, int]) -> tuple[Block, ...]:
    """``labels``: name → index of the instruction it stands before."""
    goes = [labels.get(i.target) if i.base in _JUMPS and i.target else None for i in code]
    targets = {target for target in goes if target is not None}
    ends = {k + 1 for k, i in enumerate(code) if i.base in _LEAVES | _JUMPS}
    starts = sorted(start for start in {0} | targets | ends if start < len(code))
    index = {start: number for number, start in enumerate(starts)}
    found = []
    for start, end in zip(starts, [*starts[1:], len(code)], strict=True):
        last = code[end - 1]
        after = []
        target = goes[end - 1]
        if target is not None and target in index:
            after.append(index[target])
        stays = last.base not in _LEAVES | _JUMPS or _conditional(last)
        if stays and end in index:
            after.append(index[end])
        found.append(Block(start=start, end=end, successors=tuple(dict.fromkeys(after))))
    return tuple(found)


def _conditional(item: Instruction) -> bool:
    """Whether it has a guard or a predicate operand (``BRA.U UP0, …``, ``BRA P1, …``)."""
    if item.guard is not None:
        return True
    first = item.operands[0].lstrip("!") if item.operands else ""
    return first.startswith(("P", "UP")) and first not in ("PT", "UPT")


def loops(graph: Sequence[Block]) -> tuple[Loop, ...]:
    """Every natural loop; all back edges to one head belong to one loop."""
    dominators = _dominators(graph)
    before: list[list[int]] = [[] for _ in graph]
    for index, block in enumerate(graph):
        for successor in block.successors:
            before[successor].append(index)
    bodies: dict[int, set[int]] = {}
    for index, block in enumerate(graph):
        for head in block.successors:
            if dominators[index] >> head & 1:
                body = bodies.setdefault(head, {head})
                todo = [index]
                while todo:
                    at = todo.pop()
                    if at not in body:
                        body.add(at)
                        todo += before[at]
    return tuple(
        Loop(head=head, blocks=tuple(sorted(body))) for head, body in sorted(bodies.items())
    )


def _dominators(graph: Sequence[Block]) -> list[int]:
    """For each block, a bit mask of the blocks that dominate it; all blocks for dead code."""
    everything = (1 << len(graph)) - 1
    found = [everything] * len(graph)
    if graph:
        found[0] = 1
    before: list[list[int]] = [[] for _ in graph]
    for index, block in enumerate(graph):
        for successor in block.successors:
            before[successor].append(index)
    changed = True
    while changed:
        changed = False
        for index in range(1, len(graph)):
            if not before[index]:
                continue
            meet = everything
            for other in before[index]:
                meet &= found[other]
            meet |= 1 << index
            if meet != found[index]:
                found[index], changed = meet, True
    return found
