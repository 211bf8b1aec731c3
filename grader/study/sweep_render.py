"""Points of a sweep → terminal tables, Markdown, page, pictures. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from grader.errors import one_line
from grader.language import ENGLISH, Language
from grader.model import (
    NOTHING,
    Dims,
    Message,
    ProblemInfo,
    Record,
    Size,
    phrase,
    size_text,
    verbatim,
)
from grader.report.bounds import resource_name
from grader.report.page import page
from grader.report.text import clean
from grader.study.markdown import markdown_table, plain
from grader.study.pictures import heat_map, over_sizes
from grader.study.sweep import Estimate, Point


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


def headings(points: Sequence[Point], shown: Shown) -> tuple[Message, ...]:
    named = (phrase("variant"),) if _named(points) else ()
    speeds: tuple[Message, ...]
    if any(point.measured for point in points):
        speeds = (verbatim(shown.unit), verbatim(shown.problem.baseline), phrase("ratio"))
    else:
        expected = phrase("expected on {gpu}", gpu=shown.card or "")
        speeds = (expected, phrase("at most"), phrase("limit"))
    return (
        *named,
        phrase("size"),
        *speeds,
        phrase("tile"),
        phrase("registers"),
        phrase("shared bytes"),
        phrase("spilled"),
        phrase("warps on an SM (limit)"),
    )


def _named(points: Sequence[Point]) -> bool:
    return any(point.defines for point in points)


def words(points: Sequence[Point]) -> tuple[int, ...]:
    """The columns that do not hold numbers."""
    first = int(_named(points))
    limit = () if any(point.measured for point in points) else (first + 3,)
    return (*range(first), *limit, first + 4, first + 8)


def cells(point: Point, points: Sequence[Point], shown: Shown) -> tuple[Message, ...]:
    named = (verbatim(defines_name(point)),) if _named(points) else ()
    speeds: tuple[Message, ...] = (NOTHING, NOTHING, NOTHING)
    if point.measured is not None:
        each = point.measured
        speeds = (
            _figure(each.speed),
            _figure(each.baseline),
            verbatim(f"{100 * each.ratio:.1f} %"),
        )
    elif (found := estimate(point, shown.card)) is not None:
        speeds = (_figure(found.speed), _figure(found.most), resource_name(found.resource))
    kernel = point.kernel
    facts = (
        (
            verbatim(kernel.tile),
            verbatim(str(kernel.registers)),
            verbatim(str(kernel.shared_bytes)),
            verbatim(str(kernel.spill_bytes)),
            kernel.resident,
        )
        if kernel
        else (NOTHING,) * 5
    )
    return (*named, verbatim(size_name(point.size)), *speeds, *facts)


def _figure(value: float) -> Message:
    return verbatim(f"{value:.4g}")


def _left(points: Sequence[Point]) -> list[Point]:
    """Those that have a speed."""
    return [point for point in points if not point.dropped]


def dropped(points: Sequence[Point]) -> Iterator[Message]:
    """One line for each variant or size without a speed, and why."""
    grouped: dict[tuple[tuple[str, ...], Message], list[Point]] = {}
    for point in points:
        if point.dropped:
            grouped.setdefault((point.defines, point.dropped), []).append(point)
    for (defines, why), several in grouped.items():
        every = len(several) == sum(each.defines == defines for each in points)
        sizes = "" if every and defines else ", ".join(size_name(each.size) for each in several)
        name = one_line(" ".join(filter(None, (" ".join(defines), sizes))))
        yield phrase("dropped: {name}: {reason}", name=name, reason=why)


def terminal(points: Sequence[Point], shown: Shown, language: Language = ENGLISH) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    top = best(points, shown)
    for i, heading in enumerate(headings(points, shown)):
        table.add_column(language(heading), justify="left" if i in words(points) else "right")
    for point in _left(points):
        style = "bold green" if point is top and len(points) > 1 else ""
        table.add_row(*map(language, cells(point, points, shown)), style=style)
    parts: list[RenderableType] = ["", table, ""] if table.row_count else []
    parts += [Text(_line(each, language), style="yellow") for each in dropped(points)]
    parts += [Text(_line(each, language), style="dim") for each in remarks(points, shown)]
    return Group(*parts)


def _line(message: Message, language: Language) -> str:
    return " ".join(clean(language(message)).split())


def remarks(points: Sequence[Point], shown: Shown) -> Iterator[Message]:
    if points and not _left(points):
        yield phrase("Nothing is left to compare: every point was dropped.")
    top = best(points, shown)
    if top is not None and len({point.defines for point in points}) > 1:
        yield phrase(
            "Best at {size}: {variant}", size=size_name(top.size), variant=defines_name(top)
        )
    if any(point.estimates for point in points):
        yield phrase(
            "Nothing was timed. Registers, warps and bounds are of machine code for {arch}; "
            "“expected” includes waiting, “at most” is what no kernel with these counts exceeds.",
            arch=shown.arch,
        )


def markdown(
    points: Sequence[Point],
    shown: Shown,
    picture: str | None = None,
    language: Language = ENGLISH,
) -> str:
    lines = [f"![{plain(shown.student)}]({picture})", ""] if picture else []
    rows = [[language(cell) for cell in cells(each, points, shown)] for each in _left(points)]
    header = [language(each) for each in headings(points, shown)]
    lines += [*markdown_table(header, rows, words(points)), ""] if rows else []
    several = (*dropped(points), *remarks(points, shown))
    lines += [f"{plain(language(each))}\n" for each in several]
    return "\n".join(lines).rstrip() + "\n"


# --- pictures and page ------------------------------------------------------------------------


class Map(Record):
    """A heat map of two macros, for one value of everything else."""

    caption: Message
    image: Markup


def maps(points: Sequence[Point], shown: Shown, language: Language = ENGLISH) -> tuple[Map, ...]:
    """Of the first two macros, one for each size and each value of further macros; of a single
    macro, one over the sizes; () without macros, or if nothing is left."""
    names = [each.split("=")[0] for each in points[0].defines] if _left(points) else []
    if not names:
        return ()
    if len(names) == 1:
        axes = names[0], language(phrase("size"))
        return (_map(points, shown, axes, _what(shown), language),)
    groups: dict[tuple[Size, tuple[str, ...]], list[Point]] = {}
    for point in points:
        groups.setdefault((Size(dims=point.size), point.defines[2:]), []).append(point)
    axes = names[0], names[1]
    return tuple(
        _map(group, shown, axes, _at(size, rest, shown), language)
        for (size, rest), group in groups.items()
    )


def _at(size: Size, rest: Sequence[str], shown: Shown) -> Message:
    where = ", ".join([size_name(size.dims), *rest])
    return phrase("{what} at {size}", what=_what(shown), size=where)


def _what(shown: Shown) -> Message:
    if shown.card is None:
        return verbatim(shown.unit)
    return phrase("{unit} expected on {gpu}", unit=shown.unit, gpu=shown.card)


def _map(
    group: Sequence[Point],
    shown: Shown,
    axes: tuple[str, str],
    caption: Message,
    language: Language,
) -> Map:
    def at(point: Point) -> tuple[str, str]:
        first, *others = (each.partition("=")[2] for each in point.defines)
        return first, others[0] if others else size_name(point.size)

    known = {at(point): value(point, shown) for point in group}
    rows, columns = (list(dict.fromkeys(each)) for each in zip(*known, strict=True))
    values = [[known.get((row, column)) for column in columns] for row in rows]
    image = heat_map(rows, columns, values, language(caption), axes, language)
    return Map(caption=caption, image=image)


def curve(points: Sequence[Point], shown: Shown, language: Language = ENGLISH) -> Markup | None:
    """Speed over sizes, of one variant; None where there are fewer than two."""
    if any(point.defines for point in points):
        return None
    known = [(size_name(p.size), speed) for p in points if (speed := value(p, shown)) is not None]
    if len(known) < 2:
        return None
    base = {size_name(p.size): p.measured.baseline for p in points if p.measured}
    return over_sizes(known, base, language(_what(shown)), shown.problem.baseline, language)


def picture(points: Sequence[Point], shown: Shown, language: Language = ENGLISH) -> Markup | None:
    """The one for a report: the map of the largest size, or the curve."""
    found = maps(points, shown, language)
    return found[-1].image if found else curve(points, shown, language)


def html(points: Sequence[Point], shown: Shown, language: Language = ENGLISH) -> str:
    return page(
        "sweep.html.j2",
        language,
        title=language(phrase("Sweep · {student}", student=one_line(shown.student))),
        student=one_line(shown.student),
        shown=shown,
        points=_left(points),
        headings=headings(points, shown),
        words=words(points),
        cells=lambda point: cells(point, points, shown),
        dropped=list(dropped(points)),
        remarks=list(remarks(points, shown)),
        maps=maps(points, shown, language),
        curve=curve(points, shown, language),
        caption=_what(shown),
    )
