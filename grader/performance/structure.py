"""The structure of a main loop: the code between a load and its use, and between barriers."""

from __future__ import annotations

from collections.abc import Sequence

from grader.performance.sass import Instruction


def ffma_while_loading(loop: Sequence[Instruction]) -> int | None:
    """The fewest FFMA between a global load into registers and the first instruction that waits for
    it, in this iteration or the next. None without such a load or without control bits."""
    twice = [*loop, *loop]
    found = []
    for index, item in enumerate(loop):
        if item.base != "LDG" or item.control is None:
            continue
        board = item.control.write_barrier
        work = 0
        for later in twice[index + 1 : index + 1 + len(loop)]:
            if later.control is not None and board in later.control.waits:
                found.append(work)
                break
            work += later.base == "FFMA"
    return min(found, default=None)


def waits_to_store(loop: Sequence[Instruction]) -> bool:
    """Whether the loop only fills shared memory between two barriers, without computing."""
    barriers = [index for index, item in enumerate(loop) if item.base == "BAR"]
    if len(barriers) < 2:
        return False
    turned = [*loop[barriers[0] :], *loop[: barriers[0]]]
    parts: list[set[str]] = []
    for item in turned:
        if item.base == "BAR":
            parts.append(set())
        parts[-1].add(item.base)
    return any("STS" in part and "FFMA" not in part for part in parts)


def place(
    loop: Sequence[Instruction], function: Sequence[Instruction], bases: Sequence[str]
) -> tuple[str | None, int | None]:
    """File and line of the first instruction of these kinds, in the loop or else in the function.
    Where there is none, the first line of the loop, or of the function."""
    placed = [[item for item in part if item.line is not None] for part in (loop, function)]
    wanted = (item for part in placed for item in part if item.base in bases)
    found = next(wanted, next((item for part in placed for item in part), None))
    return (found.file, found.line) if found else (None, None)
