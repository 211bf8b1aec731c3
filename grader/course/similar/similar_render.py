"""Similar pairs → terminal, HTML. For the instructor: pages hold names and sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from grader.course.similar.comparison import Pair, Side, Work
from grader.errors import one_line
from grader.model import Record
from grader.report.page import page
from grader.report.source import Highlighter, Line

CAUTION = (
    "Similarity is no proof: read both before you judge. It does not say who had it first, and "
    "short kernels have few ways to be written."
)
# What a page of at most 400 KB has room for; the terminal lists every pair.
_LISTED = 300
_SOURCES = 300_000  # bytes of highlighted lines
_LINE = 60  # bytes that the page adds to a line


class _Source(Record):
    name: str
    lines: tuple[Line, ...]  # () when too long to show


class _Column(Record):
    """One submission of a pair as the page shows it."""

    student: str
    share: float
    sources: tuple[_Source, ...]


def terminal(pairs: Sequence[Pair], count: int) -> RenderableType:
    """count: how many submissions were compared."""
    if not pairs:
        return Text(f"{count} submissions: no suspiciously similar pairs")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("submission", overflow="fold")
    table.add_column("shared", justify="right", no_wrap=True)
    table.add_column("submission", overflow="fold")
    table.add_column("shared", justify="right", no_wrap=True)
    for pair in pairs:
        one, other = pair.one, pair.other
        table.add_row(
            Text(one_line(one.student)),
            _percent(one),
            Text(one_line(other.student)),
            _percent(other),
        )
    return Group(table, "", Text(CAUTION, style="dim"))


def _percent(side: Side) -> str:
    return f"{100 * side.share:.0f} %"


def html(pairs: Sequence[Pair], works: Sequence[Work]) -> str:
    """The pairs, each with both sources side by side."""
    files = {work.student: work.files for work in works}
    shown: list[tuple[_Column, ...]] = []
    room = _SOURCES
    for pair in pairs[:_LISTED]:
        columns = tuple(_column(side, files[side.student]) for side in (pair.one, pair.other))
        room -= sum(map(_bytes, columns))
        if room < 0:
            break
        shown.append(columns)
    return page(
        "similar.html.j2",
        title="Similar submissions",
        caution=CAUTION,
        count=len(works),
        pairs=pairs[:_LISTED],
        unlisted=len(pairs[_LISTED:]),
        shown=shown,
        percent=_percent,
    )


def _column(side: Side, files: Mapping[str, str]) -> _Column:
    highlighter = Highlighter(files)
    return _Column(
        student=side.student,
        share=side.share,
        sources=tuple(
            _Source(name=name, lines=highlighter.marked(name, _lines(side, name))) for name in files
        ),
    )


def _bytes(column: _Column) -> int:
    lines = [line for source in column.sources for line in source.lines]
    return sum(_LINE + len(line.html.encode()) for line in lines)


def _lines(side: Side, file: str) -> set[int]:
    return {
        line
        for passage in side.passages
        if passage.file == file
        for line in range(passage.first, passage.last + 1)
    }
