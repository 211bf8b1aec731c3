"""Points of a sweep → terminal tables, Markdown, page, pictures. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from grader.errors import one_line
from grader.model import Dims, ProblemInfo, Record, Size, size_text
from grader.report.page import page
from grader.report.text import clean
from grader.study.pictures import heat_map, over_sizes
from grader.study.sweep import Estimate, Point

BOUNDS = (
    "Nothing was timed. Registers, warps and bounds are of machine code for {arch}; "
    "“expected” includes waiting, “at most” is what no kernel with these counts exceeds."
)


class Shown(Record):
    """What a page needs to know besides the points."""

    student: str
    problem: ProblemInfo
    arch: str
    card: str | None  # in the simulator, whose bounds the picture shows

    @property
    def unit(self) -> str:
        return self.problem.unit


def size_name(size: Dims) -> str:
    """``8192`` for a cube."""
    extents = set(size.values())
    return f"{extents.pop()}" if len(extents) == 1 else size_text(size)


def defines_name(point: Point) -> str:
    return " ".join(point.defines)


def estimate(point: Point, card: str | None) -> Estimate | None:
    return next((each for each in point.estimates if each.gpu == card), None)


def value(point: Point, shown: Shown) -> float | None:
    """What is compared: the measured speed, or the one expected on the card."""
    if point.measured is not None:
        return point.measured.speed
    found = estimate(point, shown.card)
    return found.speed if found else None


def best(points: Sequence[Point], shown: Shown) -> Point | None:
    """The fastest at the largest size that any was fast at."""
    known = [point for point in points if value(point, shown) is not None]
    if not known:
        return None
    largest = max(known, key=lambda each: Size(dims=each.size).extents).size
    at = [point for point in known if point.size == largest]
    return max(at, key=lambda each: value(each, shown) or 0.0)


# --- tables -----------------------------------------------------------------------------------


def headings(points: Sequence[Point], shown: Shown) -> tuple[str, ...]:
    named = ("variant",) if any(point.defines for point in points) else ()
    if any(point.measured for point in points):
        speeds: tuple[str, ...] = (shown.unit, shown.problem.baseline, "ratio")
    else:
        speeds = (f"expected on {shown.card}", "at most", "limit")
    kernel = ("tile", "registers", "shared bytes", "spilled", "warps on an SM (limit)")
    return (*named, "size", *speeds, *kernel)


def cells(point: Point, points: Sequence[Point], shown: Shown) -> tuple[str, ...]:
    named = (defines_name(point),) if any(each.defines for each in points) else ()
    speeds: tuple[str, ...] = ("", "", "")
    if point.measured is not None:
        each = point.measured
        speeds = (f"{each.speed:.4g}", f"{each.baseline:.4g}", f"{100 * each.ratio:.1f} %")
    elif (found := estimate(point, shown.card)) is not None:
        speeds = (f"{found.speed:.4g}", f"{found.most:.4g}", found.resource)
    kernel = point.kernel
    facts = (
        (
            kernel.tile,
            str(kernel.registers),
            str(kernel.shared_bytes),
            str(kernel.spill_bytes),
            kernel.resident,
        )
        if kernel
        else ("",) * 5
    )
    return (*named, size_name(point.size), *speeds, *facts)


def dropped(points: Sequence[Point]) -> Iterator[str]:
    """One line for each variant or size without a speed, and why."""
    grouped: dict[tuple[tuple[str, ...], str], list[Point]] = {}
    for point in points:
        if point.dropped:
            grouped.setdefault((point.defines, point.dropped), []).append(point)
    for (defines, why), several in grouped.items():
        every = len(several) == sum(each.defines == defines for each in points)
        sizes = "" if every and defines else ", ".join(size_name(each.size) for each in several)
        name = one_line(" at ".join(filter(None, (" ".join(defines), sizes))))
        yield f"dropped: {name or 'the kernel'}: {clean(why)}"


def terminal(points: Sequence[Point], shown: Shown) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    top = best(points, shown)
    for heading in headings(points, shown):
        table.add_column(heading, justify="left" if heading in _WORDS else "right")
    for point in points:
        if not point.dropped:
            style = "bold green" if point is top and len(points) > 1 else ""
            table.add_row(*cells(point, points, shown), style=style)
    parts: list[RenderableType] = ["", table, ""]
    parts += [Text(line, style="yellow") for line in dropped(points)]
    parts += [Text(line, style="dim") for line in remarks(points, shown)]
    return Group(*parts)


_WORDS = ("variant", "limit", "tile", "warps on an SM (limit)")


def remarks(points: Sequence[Point], shown: Shown) -> Iterator[str]:
    top = best(points, shown)
    if top is not None and len({point.defines for point in points}) > 1:
        yield f"Best at {size_name(top.size)}: {defines_name(top)}"
    if any(point.estimates for point in points):
        yield BOUNDS.format(arch=shown.arch)


def markdown(points: Sequence[Point], shown: Shown, picture: str | None = None) -> str:
    lines = [f"![sweep]({picture})", ""] if picture else []
    lines.append("| " + " | ".join(headings(points, shown)) + " |")
    right = ["---" if each in _WORDS else "---:" for each in headings(points, shown)]
    lines.append("| " + " | ".join(right) + " |")
    for point in points:
        if not point.dropped:
            row = (each.replace("|", "\\|") for each in cells(point, points, shown))
            lines.append("| " + " | ".join(row) + " |")
    several = [*dropped(points), *remarks(points, shown)]
    return "\n".join([*lines, "", *(f"{each}\n" for each in several)]).rstrip() + "\n"


# --- pictures and page ------------------------------------------------------------------------


class Map(Record):
    """A heat map of two macros, for one value of everything else."""

    caption: str
    image: Markup


def maps(points: Sequence[Point], shown: Shown) -> tuple[Map, ...]:
    """Of the first two macros, one for each size and each value of further macros; of a single
    macro, one over the sizes; () without macros."""
    names = [each.split("=")[0] for each in points[0].defines] if points else []
    if not names:
        return ()
    if len(names) == 1:
        return (_map(points, shown, (names[0], "size"), _what(shown)),)
    groups: dict[tuple[Size, tuple[str, ...]], list[Point]] = {}
    for point in points:
        groups.setdefault((Size(dims=point.size), point.defines[2:]), []).append(point)
    axes = names[0], names[1]
    return tuple(
        _map(group, shown, axes, ", ".join([f"{_what(shown)} at {size_name(size.dims)}", *rest]))
        for (size, rest), group in groups.items()
    )


def _what(shown: Shown) -> str:
    return f"{shown.unit} expected on {shown.card}" if shown.card else shown.unit


def _map(group: Sequence[Point], shown: Shown, axes: tuple[str, str], caption: str) -> Map:
    def at(point: Point) -> tuple[str, str]:
        first, *others = (each.partition("=")[2] for each in point.defines)
        return first, others[0] if others else size_name(point.size)

    known = {at(point): value(point, shown) for point in group}
    rows, columns = (list(dict.fromkeys(each)) for each in zip(*known, strict=True))
    values = [[known.get((row, column)) for column in columns] for row in rows]
    label = f"{caption}, by {axes[0]} and {axes[1]}"
    return Map(caption=caption, image=heat_map(rows, columns, values, label, axes))


def curve(points: Sequence[Point], shown: Shown) -> Markup | None:
    """Speed over sizes, of one variant; None where there are fewer than two."""
    if any(point.defines for point in points):
        return None
    known = [(size_name(p.size), speed) for p in points if (speed := value(p, shown)) is not None]
    if len(known) < 2:
        return None
    base = {size_name(p.size): p.measured.baseline for p in points if p.measured}
    return over_sizes(known, base, _what(shown), shown.problem.baseline)


def picture(points: Sequence[Point], shown: Shown) -> Markup | None:
    """The one for a report: the map of the largest size, or the curve."""
    found = maps(points, shown)
    return found[-1].image if found else curve(points, shown)


def html(points: Sequence[Point], shown: Shown) -> str:
    return page(
        "sweep.html.j2",
        title=f"Sweep · {one_line(shown.student)}",
        student=one_line(shown.student),
        shown=shown,
        points=[point for point in points if not point.dropped],
        headings=headings(points, shown),
        words=_WORDS,
        cells=lambda point: cells(point, points, shown),
        dropped=list(dropped(points)),
        remarks=list(remarks(points, shown)),
        maps=maps(points, shown),
        curve=curve(points, shown),
        caption=_what(shown),
    )
