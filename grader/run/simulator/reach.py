"""Where a launch's grid ends before the matrix that it should fill, or goes far beyond it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.problems import Operand
from ptxsim import LaunchedBlocks
from ptxsim.plan import Launch, Record
from ptxsim.text import NOTHING, Message, counted, enumerated, phrase

_LINE = (phrase("row"), phrase("column"))
_LINES = (phrase("rows"), phrase("columns"))
_AXES = ("x", "y")
_CROWD, _MOST_IDLE = 64, 0.75  # blocks; of these, before somebody should be told


class _Side(Record):
    """The rows of a matrix, or its columns, and the blocks along them."""

    line: Message  # "row"
    lines: Message  # "rows"
    extent: int  # lines of the matrix
    reached: int  # of them, from the first
    axis: int | None  # of the grid, along which its blocks lie; None: along neither or both
    tile: int  # lines of one block

    @property
    def missing(self) -> Message:
        """The lines beyond the reached ones: "rows 32 to 47"."""
        first, last = self.reached, self.extent - 1
        if first == last:
            return phrase("{line} {number}", line=self.line, number=last)
        return phrase("{lines} {first} to {last}", lines=self.lines, first=first, last=last)

    @property
    def needed(self) -> int:
        return -(-self.extent // self.tile)


def unreached(operand: Operand, who: NDArray[Any], launch: Launch) -> Message:
    """Say which rows and columns of a matrix no thread reaches, and what of the grid is wrong.

    who: the matrix's cells as ``Machine.writers`` gives them, one for each element, in the order of
    its memory. Nothing where those that were written are no rectangle from its first element.
    """
    blocks = operand.logical(who["block"].astype(np.int64)) - 1
    written = blocks >= 0
    rows, columns = (int(written.any(axis=axis).sum()) for axis in (1, 0))
    inside = written[:rows, :columns]
    if not inside.size or not inside.all() or (rows, columns) == operand.shape:
        return NOTHING
    sides = _sides(operand.shape, blocks[:rows, :columns], launch.grid)
    ends = [side.missing for side in sides if side.reached < side.extent]
    none = phrase("no thread reaches {lines} of {name}", lines=enumerated(ends), name=operand.name)
    reason = _reason(sides, launch.grid)
    return phrase("{none}: {reason}", none=none, reason=reason) if reason else none


def idle_blocks(
    blocks: LaunchedBlocks, matrices: Iterable[tuple[Operand, NDArray[Any]]]
) -> Message:
    """Say that most blocks of a launch store nothing, and how many would do: where it fills a
    matrix, for elsewhere that may be meant.

    matrices: those that it wrote, with their cells as in ``unreached``.
    """
    grid = blocks.launch.grid
    if blocks.ended < _CROWD or blocks.idle <= _MOST_IDLE * blocks.ended:
        return NOTHING
    idle = phrase("{idle} of {ended} blocks store nothing", idle=blocks.idle, ended=blocks.ended)
    for operand, who in matrices:
        writers = operand.logical(who["block"].astype(np.int64)) - 1
        if grid[2] > 1 or not (writers >= 0).all():
            continue
        sides = _sides(operand.shape, writers, grid)
        needed = [next((s.needed for s in sides if s.axis == axis), 1) for axis in (0, 1)]
        return phrase(
            "{idle}: the grid has {grid} blocks, but a block computes {tile} elements of {name}: "
            "divide by that, rounding up, and {needed} are enough",
            idle=idle,
            grid=f"{grid[0]} × {grid[1]}",
            tile=f"{sides[0].tile} × {sides[1].tile}",
            name=operand.name,
            needed=f"{needed[0]} × {needed[1]}",
        )
    return NOTHING


def _sides(
    shape: Sequence[int], blocks: NDArray[np.int64], grid: Sequence[int]
) -> tuple[_Side, _Side]:
    """blocks: the number of the block that wrote each element; x runs first."""
    x, y = blocks % grid[0], blocks // grid[0] % grid[1]

    def side(number: int) -> _Side:
        first = [np.moveaxis(each, number, 0)[:, 0] for each in (x, y)]  # along the first line
        moving = [
            axis for axis in (0, 1) if grid[axis] > 1 and (first[axis] != first[axis][0]).any()
        ]
        axis = moving[0] if len(moving) == 1 else None
        tile = len(first[0]) if axis is None else int((first[axis] == first[axis][0]).sum())
        return _Side(
            line=_LINE[number],
            lines=_LINES[number],
            extent=shape[number],
            reached=blocks.shape[number],
            axis=axis,
            tile=tile,
        )

    return side(0), side(1)


def _reason(sides: Sequence[_Side], grid: Sequence[int]) -> Message:
    row, column = sides
    axes, needed = (row.axis, column.axis), (row.needed, column.needed)
    if axes in ((0, 1), (1, 0)) and needed == (grid[column.axis or 0], grid[row.axis or 0]):
        x, y = axes.index(0), axes.index(1)
        return phrase(
            "the launch has {x} × {y} blocks, but in the kernel x counts {across} and y counts "
            "{down}, {tile} for each block: exchange the axes in one of the two",
            x=grid[0],
            y=grid[1],
            across=_LINES[x],
            down=_LINES[y],
            tile=f"{sides[x].tile} × {sides[y].tile}",
        )
    few = list(_too_few(sides, grid))
    return enumerated(few) if few else NOTHING


def _too_few(sides: Sequence[_Side], grid: Sequence[int]) -> Iterator[Message]:
    for side in sides:
        if side.axis is None or side.reached == side.extent:
            continue
        has = grid[side.axis]
        if has * side.tile == side.reached:
            yield counted(
                "the grid has one block of {tile} {lines} along {axis}, and {needed} are needed",
                "the grid has {count} blocks of {tile} {lines} along {axis}, and {needed} are "
                "needed",
                has,
                tile=side.tile,
                lines=side.lines,
                axis=_AXES[side.axis],
                needed=side.needed,
            )
