"""Tables in Markdown, for pasting into a report."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from grader.report.text import clean


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
