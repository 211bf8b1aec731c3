"""A table of thousands of rows for the terminal.

rich's own measures, wraps and styles every cell by itself, which takes a second for 2,500 rows.
Here a row has one style, and named columns give way when the terminal is narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style

_NARROWEST = 6  # characters of a column that gives way
_TITLE, _HEADER = Style(italic=True), Style(bold=True)


class LongTable:
    """columns: header, and whether numbers stand in it. give_way: the columns whose text is broken
    into several lines, the first one first."""

    def __init__(
        self, title: str, columns: Sequence[tuple[str, bool]], give_way: Sequence[int]
    ) -> None:
        self._title = title
        self._columns = columns
        self._give_way = give_way
        self._rows: list[tuple[Sequence[str], Style | None]] = []

    def add(self, cells: Sequence[str], style: str = "") -> None:
        """A row; no cell holds a line break."""
        self._rows.append((cells, Style.parse(style) if style else None))

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        header = [name for name, _ in self._columns]
        widths = [
            max(map(_width, column))
            for column in zip(header, *(cells for cells, _ in self._rows), strict=True)
        ]
        over = sum(widths) + 2 * len(widths) - options.max_width
        for at in self._give_way:
            less = min(max(0, over), max(0, widths[at] - _NARROWEST))
            widths[at] -= less
            over -= less
        if self._title:
            yield Segment(f"{self._title}\n", _TITLE)
        yield Segment("\n")
        yield from self._lines(header, widths, _HEADER)
        yield Segment(f" {'─' * (sum(widths) + 2 * (len(widths) - 1))} \n")
        for cells, style in self._rows:
            yield from self._lines(cells, widths, style)

    def _lines(
        self, cells: Sequence[str], widths: Sequence[int], style: Style | None
    ) -> RenderResult:
        pieces = [
            [cell] if _width(cell) <= width else chop_cells(cell, width)
            for cell, width in zip(cells, widths, strict=True)
        ]
        for line in zip_longest(*pieces, fillvalue=""):
            filled = (
                _filled(cell, width, number)
                for cell, width, (_, number) in zip(line, widths, self._columns, strict=True)
            )
            yield Segment(f" {'  '.join(filled)}".rstrip() + "\n", style)


def _width(cell: str) -> int:
    return len(cell) if cell.isascii() else cell_len(cell)


def _filled(cell: str, width: int, number: bool) -> str:
    space = " " * (width - _width(cell))
    return space + cell if number else cell + space
