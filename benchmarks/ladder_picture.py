"""Draws which thread computes what, as of rung 19: ``python -m benchmarks.ladder_picture SVG``.

C is divided into tiles for blocks, these into warp tiles, and these into 4×4 squares for lanes.
The lane map is the one in ``reference/sgemm/19_warp_tile``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

BM, BN, BK, WM, WN, QUAD, WARP = 128, 128, 8, 64, 32, 4, 32
CHOSEN = 5  # the warp, and the lane, that are marked
LEFT, TOP, GAP, EDGE, STRIP = 30.0, 92.0, 60.0, 200.0, 14.0
WIDTH, HEIGHT = 4 * (EDGE + GAP), TOP + 2 * EDGE + 20
STYLE = """
text { font: 12px sans-serif; fill: #1d2733; text-anchor: middle }
.head { font-weight: bold; font-size: 13px } .small { font-size: 9px }
rect { stroke: #8a97a8; stroke-width: .6; fill: #eef2f7 }
.ground { fill: white; stroke: none } .mine { fill: #f2b441 } .a { fill: #bcd7f5 }
.b { fill: #c9e7c4 }
"""


def lane_rows(lane: int) -> tuple[int, int]:
    """First rows of a lane's squares in its warp tile."""
    row = lane // 2 % 8 * QUAD
    return row, row + WM // 2


def lane_columns(lane: int) -> tuple[int, int]:
    """First columns of a lane's squares in its warp tile."""
    column = (lane // 16 * 2 + lane % 2) * QUAD
    return column, column + WN // 2


def owners() -> dict[tuple[int, int], int]:
    """Row and column of a square of the warp tile → the lane that owns it."""
    return {
        (row // QUAD, column // QUAD): lane
        for lane in range(WARP)
        for row in lane_rows(lane)
        for column in lane_columns(lane)
    }


def rect(x: float, y: float, width: float, height: float, kind: str = "") -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" class="{kind}"/>'
    )


def text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{words}</text>'


def head(x: float, title: str, below: str) -> Iterator[str]:
    yield text(x + EDGE / 2, 22, title, "head")
    yield text(x + EDGE / 2, 42, below)


def cells(
    x: float, y: float, size: tuple[float, float], rows: int, columns: int, mine: tuple[int, int]
) -> Iterator[str]:
    """A grid of rectangles of ``size`` (width, height), one of them marked."""
    for row in range(rows):
        for column in range(columns):
            kind = "mine" if (row, column) == mine else ""
            yield rect(x + column * size[0], y + row * size[1], *size, kind)


def strips(x: float, y: float, height: float, a: str, b: str) -> Iterator[str]:
    """What is read of A beside a square of C, and of B above it."""
    yield rect(x - STRIP - 4, y, STRIP, height, "a")
    yield text(x - STRIP / 2 - 4, y - 8, a)
    yield rect(x, y - STRIP - 4, EDGE, STRIP, "b")
    yield text(x + EDGE / 2, y - STRIP / 2 - 1, b, "small")


def matrix(x: float) -> Iterator[str]:
    yield from head(x, "C", f"a block computes {BM} × {BN}")
    yield from cells(x, TOP, (EDGE / 5, EDGE / 5), 5, 5, (1, 2))


def block(x: float) -> Iterator[str]:
    rows, columns = BM // WM, BN // WN
    width, height = EDGE / columns, EDGE / rows
    yield from head(x, "a block", f"{rows * columns} warps, {WM} × {WN} each")
    yield from cells(x, TOP, (width, height), rows, columns, (CHOSEN % rows, CHOSEN // rows))
    for warp in range(rows * columns):
        row, column = warp % rows, warp // rows
        yield text(x + (column + 0.5) * width, TOP + (row + 0.5) * height + 4, f"warp {warp}")
    yield from strips(x, TOP, EDGE, "As", f"Bs: {BK} × {BN} from shared memory at a time")


def warp(x: float) -> Iterator[str]:
    rows, columns = WM // QUAD, WN // QUAD
    width, height = EDGE / columns, 2 * EDGE / rows
    yield from head(x, f"a warp: {WM} × {WN}", "numbers are lanes, squares are 4 × 4")
    for (row, column), lane in sorted(owners().items()):
        left, top = x + column * width, TOP + row * height
        yield rect(left, top, width, height, "mine" if lane == CHOSEN else "")
        yield text(left + width / 2, top + height / 2 + 4, str(lane))


def thread(x: float) -> Iterator[str]:
    side = EDGE / 8
    yield from head(x, "a thread", f"8 × 8 of lane {CHOSEN}: 16 values, 64 FMAs")
    places = [
        [first + step for first in starts for step in range(QUAD)]
        for starts in (lane_rows(CHOSEN), lane_columns(CHOSEN))
    ]
    for row, at in enumerate(places[0]):
        yield rect(x - 26, TOP + row * side, 22, side, "a")
        yield text(x - 15, TOP + (row + 0.5) * side + 3, f"a {at}", "small")
    for column, at in enumerate(places[1]):
        yield rect(x + column * side, TOP - STRIP - 4, side, STRIP, "b")
        yield text(x + (column + 0.5) * side, TOP - STRIP / 2 - 1, f"b {at}", "small")
        for row in range(8):
            yield rect(x + column * side, TOP + row * side, side, side, "mine")
    yield text(x + EDGE / 2, TOP + EDGE + 22, "each four neighbours: one LDS.128")


def picture() -> str:
    panels = (matrix, block, warp, thread)
    parts = [rect(0, 0, WIDTH, HEIGHT, "ground")]
    for index, panel in enumerate(panels):
        parts += panel(LEFT + index * (EDGE + GAP))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
        f'aria-label="Tiles of blocks and of warps, squares of lanes">\n'
        f"<style>{STYLE}</style>\n{body}\n</svg>\n"
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(), encoding="utf-8")
