"""Elements of the pictures. Colours come from the page's style sheet, so both themes fit.

Widths are in user units; every picture scales to its column.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from grader.model import Record

WIDTH = 640
_NAME, _VALUE, _ROW = 190.0, 120.0, 22.0  # of bars: room on the left, on the right, and per row


def svg(
    height: float, parts: Sequence[Markup], title: str, description: str, width: float = WIDTH
) -> Markup:
    """title: what the picture shows. description: what a reader would see in it."""
    return Markup(
        '<svg viewBox="0 0 {:g} {:g}" role="img"><title>{}</title><desc>{}</desc>\n{}\n</svg>'
    ).format(width, height, title, description, Markup("\n").join(parts))


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" class="{}" text-anchor="{}">{}</text>').format(
        x, y, kind, anchor, words
    )


def rect(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    return Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}"/>').format(
        x, y, width, height, kind
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return Markup('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>').format(
        x1, y1, x2, y2, kind
    )


class Bar(Record):
    """One bar of ``bars``."""

    name: str
    value: float  # in any unit, the same for all bars of a picture
    words: str  # beside it
    kind: str  # class in the style sheet


def bars(rows: Sequence[Bar], title: str) -> Markup:
    """Horizontal bars, names left and words right of them; at least one value is positive."""
    scale = (WIDTH - _NAME - _VALUE) / max(bar.value for bar in rows)
    parts = []
    for i, bar in enumerate(rows):
        y = i * _ROW + 2
        length = bar.value * scale
        parts.append(text(_NAME - 8, y + 13, bar.name, "small", "end"))
        parts.append(rect(_NAME, y, max(length, 0.5 if bar.value else 0), _ROW - 5, bar.kind))
        parts.append(text(_NAME + length + 6, y + 13, bar.words, "small"))
    described = "; ".join(f"{bar.name}: {bar.words}" for bar in rows)
    return svg(len(rows) * _ROW, parts, title, described)
