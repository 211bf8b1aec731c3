"""Source texts → highlighted lines, with the simulator's counts for each line."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from markupsafe import Markup

from grader.model import Finding, LineCount, Record
from grader.report.colours import coloured
from grader.report.groups import CONTEXT
from grader.report.text import clean

_MAX_LISTING = 30_000  # characters; highlighting makes them about six times as many
_MAX_LINE = 240  # characters shown of one line


class Line(Record):
    number: int
    html: Markup
    marked: bool  # a finding points here
    share: float  # of all warp instructions of the run, 0 … 1


class Listing(Record):
    """A complete file."""

    name: str
    lines: tuple[Line, ...]
    counted: bool  # false: there are no counts, so the shares mean nothing


class Highlighter:
    """Highlights each file once, however many excerpts are taken from it."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._lines: dict[str, list[Markup]] = {}

    def excerpt(self, name: str | None, marked: Collection[int]) -> tuple[Line, ...]:
        """The marked lines of a file and a few around them; () when they are unknown."""
        if not marked or name is None or name not in self._sources:
            return ()
        lines = self._highlighted(name)
        if max(marked) > len(lines) or min(marked) < 1:
            return ()
        first = max(1, min(marked) - CONTEXT)
        last = min(len(lines), max(marked) + CONTEXT)
        return tuple(
            Line(number=number, html=lines[number - 1], marked=number in marked, share=0)
            for number in range(first, last + 1)
        )

    def marked(self, name: str, lines: Collection[int]) -> tuple[Line, ...]:
        """A whole file with these lines marked; () when it is longer than a page shows."""
        if len(self._sources[name]) > _MAX_LISTING:
            return ()
        return tuple(
            Line(number=number, html=html, marked=number in lines, share=0)
            for number, html in enumerate(self._highlighted(name), 1)
        )

    def listings(
        self, findings: Sequence[Finding], counts: Sequence[LineCount]
    ) -> tuple[Listing, ...]:
        """The files that fit on a page; if not all fit, the shortest."""
        total = sum(count.instructions for count in counts)
        done = {(count.file, count.line): count.instructions for count in counts}
        marked = {(finding.file, finding.line) for finding in findings}
        room = _MAX_LISTING
        listings = []
        for name, text in sorted(self._sources.items(), key=lambda item: len(item[1])):
            room -= len(text)
            if room < 0:
                break
            lines = tuple(
                Line(
                    number=number,
                    html=html,
                    marked=(name, number) in marked,
                    share=done.get((name, number), 0) / total if total else 0,
                )
                for number, html in enumerate(self._highlighted(name), 1)
            )
            counted = any(line.share for line in lines)
            listings.append(Listing(name=name, lines=lines, counted=counted))
        return tuple(sorted(listings, key=lambda listing: (not listing.counted, listing.name)))

    def _highlighted(self, name: str) -> list[Markup]:
        if name not in self._lines:
            # clean() comes first, so that the highlighted text can be marked as safe.
            lines = clean(self._sources[name]).expandtabs(4).split("\n")
            text = "\n".join(line[:_MAX_LINE] for line in lines)
            self._lines[name] = coloured(text)
        return self._lines[name]
