"""Tables of a terminal, and of Markdown."""

from collections.abc import Collection, Iterable, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import measure_renderables
from rich.padding import PaddingDimensions
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from grader.report.formatting import clean

_NARROWEST = 8  # characters of a column that gives way
_TITLE, _HEADER = Style(italic=True), Style(bold=True)


def table(
    header: Iterable[str],
    rows: Iterable[Iterable[RenderableType]],
    words: Collection[int] = (),
    padding: PaddingDimensions = (0, 1),
) -> Table:
    """words: the columns that hold words; others hold numbers."""
    shown = _Fitting(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=padding)
    for i, name in enumerate(header):
        shown.add_column(name, justify="left" if i in words else "right")
    for row in rows:
        shown.add_row(*row)
    return shown


class _Fitting(Table):
    """A table that breaks lines between words before it cuts one, where there is little room."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        cells = [(each.header, *each.cells) for each in self.columns]
        spans = [measure_renderables(console, options, each) for each in cells]
        room = options.max_width - sum(span.minimum for span in spans) - (len(spans) - 1)
        padded = room - (len(spans) - 1) * (self.padding[1] + self.padding[3])
        self.padding = 0 if padded < 0 else self.padding
        room = max(room if padded < 0 else padded, 0)
        needs = sorted(zip(spans, self.columns, strict=True), key=lambda pair: pair[0].span)
        for rest, (span, column) in zip(range(len(needs), 0, -1), needs, strict=True):
            column.width = span.minimum + min(span.span, room // rest)
            room -= column.width - span.minimum
        yield from super().__rich_console__(console, options)


class LongTable:
    """Columns where nothing stands are left out.

    columns: header, and whether numbers stand in it. Where there is too little room, the column
    ``spare`` is left out, ``prose`` goes below the rows, and then those of give_way end in "…",
    the first one first.
    """

    def __init__(
        self,
        title: str,
        columns: Sequence[tuple[str, bool]],
        give_way: Sequence[int],
        prose: int | None = None,
        spare: int | None = None,
    ) -> None:
        self._title = title
        self._columns = columns
        self._give_way = give_way
        self._prose = prose
        self._spare = spare
        self._rows: list[tuple[Sequence[str], Style | None]] = []

    def add(self, cells: Sequence[str], style: str = "") -> None:
        """A row; no cell holds a line break."""
        self._rows.append((cells, Style.parse(style) if style else None))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        header = [name for name, _ in self._columns]
        columns = list(zip(*(cells for cells, _ in self._rows), strict=True))
        widths = [
            max(map(_width, (name, *cells))) if any(cells) else 0
            for name, cells in zip(header, columns, strict=False)
        ] or list(map(_width, header))
        over = sum(widths) + 2 * sum(map(bool, widths)) - options.max_width
        for at in (self._spare, self._prose):
            if at is not None and over > 0 and widths[at]:
                over -= widths[at] + 2
                widths[at] = 0
        below = self._prose if self._prose is not None and not widths[self._prose] else None
        for at in self._give_way:
            less = min(max(0, over), max(0, widths[at] - _NARROWEST))
            widths[at] -= less
            over -= less
        if self._title:
            yield Segment(f"{self._title}\n", _TITLE)
        yield Segment("\n")
        yield self._line(header, widths, _HEADER)
        yield Segment(f" {'─' * (sum(widths) + 2 * (sum(map(bool, widths)) - 1))} \n")
        for cells, style in self._rows:
            yield self._line(cells, widths, style)
            if below is not None and cells[below]:
                for line in Text(cells[below]).wrap(console, options.max_width - 4):
                    yield Segment(f"    {line.plain.rstrip()}\n", style)

    def _line(self, cells: Sequence[str], widths: Sequence[int], style: Style | None) -> Segment:
        filled = []
        for cell, width, (_, number) in zip(cells, widths, self._columns, strict=True):
            if _width(cell) > width:
                short = Text(cell)
                short.truncate(width, overflow="ellipsis")
                cell = short.plain
            space = " " * (width - _width(cell))
            if width:
                filled.append(space + cell if number else cell + space)
        return Segment(f" {'  '.join(filled)}".rstrip() + "\n", style)


def _width(cell: str) -> int:
    return len(cell) if cell.isascii() else cell_len(cell)


# --- Markdown ----------------------------------------------------------------------------------


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], words: Collection[int]
) -> list[str]:
    """Its lines. words: the columns that hold words; others hold numbers."""
    marks = ["---" if i in words else "---:" for i, _ in enumerate(header)]
    body = [_row([plain(cell) for cell in row]) for row in rows]
    return [_row([plain(cell) for cell in header]), _row(marks), *body]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def plain(words: str) -> str:
    """A student's text cannot end a cell, nor be markup."""
    escaped = "".join(f"\\{char}" if char in "\\|`*_[]<>#" else char for char in clean(words))
    return " ".join(escaped.split())
