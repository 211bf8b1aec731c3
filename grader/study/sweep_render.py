"""Points of a sweep → terminal tables, Markdown, page, pictures. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup
from rich.console import Group, RenderableType
from rich.text import Text

from grader import report
from grader.base import ENGLISH, Language, ProblemInfo, one_line
from grader.report import clean, drawing, page, plain, resource_name, size_name
from grader.study.sweep import Point
from ptxsim.plan import Record, Size
from ptxsim.text import NOTHING, Message, phrase, verbatim


class SweepFacts(Record):
    """Facts that a page needs besides the points."""

    student: str
    problem: ProblemInfo
    arch: str
    card: str | None  # in the simulator, whose bounds the picture shows


def defines_name(point: Point) -> str:
    return " ".join(point.defines)


_TIE = 0.05  # estimates this close are hardly ordered better than by chance: docs/explain.md


def value(point: Point, shown: SweepFacts) -> float | None:
    """Return the speed to compare: the measured one, or the one expected on the card."""
    if point.measured is not None:
        return point.measured.speed
    return next((each.speed for each in point.estimates if each.gpu == shown.card), None)


def best(points: Sequence[Point], shown: SweepFacts) -> tuple[Point, ...]:
    """Return the fastest at the largest size that any has a speed at: several where estimates are
    too close to say which is."""
    known = [(speed, each) for each in points if (speed := value(each, shown)) is not None]
    if not known:
        return ()
    largest = max((each.size for _, each in known), key=lambda size: Size(dims=size).extents)
    at = sorted(((s, each) for s, each in known if each.size == largest), key=lambda p: -p[0])
    most, first = at[0]
    close = most if first.measured else (1 - _TIE) * most
    return tuple(each for speed, each in at if each is first or speed > close)


# --- tables -----------------------------------------------------------------------------------


def headings(points: Sequence[Point], shown: SweepFacts) -> tuple[Message, ...]:
    named = (phrase("variant"),) if _named(points) else ()
    speeds = (_what(shown), phrase("at most"), phrase("limit"))
    if any(point.measured for point in points):
        unit, baseline = verbatim(shown.problem.unit), verbatim(shown.problem.baseline)
        speeds = (unit, baseline, phrase("ratio"))
    facts = (phrase("tile"), phrase("registers"), phrase("shared bytes"), phrase("spilled"))
    return (*named, phrase("size"), *speeds, *facts, phrase("warps on an SM (limit)"))


def _named(points: Sequence[Point]) -> bool:
    return any(point.defines for point in points)


def words(points: Sequence[Point]) -> tuple[int, ...]:
    """The columns that do not hold numbers."""
    first = int(_named(points))
    limit = () if any(point.measured for point in points) else (first + 3,)
    return (*range(first), *limit, first + 4, first + 8)


def cells(point: Point, points: Sequence[Point], shown: SweepFacts) -> tuple[Message, ...]:
    named = (verbatim(defines_name(point)),) if _named(points) else ()
    speeds: tuple[Message, ...] = (NOTHING, NOTHING, NOTHING)
    if (each := point.measured) is not None:
        ratio = verbatim(f"{100 * each.ratio:.1f} %")
        speeds = (_figure(each.speed), _figure(each.baseline), ratio)
    for found in point.estimates:
        if found.gpu == shown.card:
            speeds = (_figure(found.speed), _figure(found.most), resource_name(found.resource))
    facts: tuple[Message, ...] = (NOTHING,) * 5
    if (kernel := point.kernel) is not None:
        known = (kernel.tile, kernel.registers, kernel.shared_bytes, kernel.spill_bytes)
        facts = (*(verbatim(str(fact)) for fact in known), kernel.resident)
    return (*named, verbatim(size_name(point.size)), *speeds, *facts)


def _figure(value: float) -> Message:
    return verbatim(f"{value:.4g}")


def _left(points: Sequence[Point]) -> list[Point]:
    """Return the points that have a speed."""
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


def terminal(
    points: Sequence[Point], shown: SweepFacts, language: Language = ENGLISH
) -> RenderableType:
    top = best(points, shown) if len(points) > 1 else ()
    rows = (
        [
            Text(language(cell), style="bold green" if point in top else "")
            for cell in cells(point, points, shown)
        ]
        for point in _left(points)
    )
    header = map(language, headings(points, shown))
    figures = report.table(header, rows, words(points), padding=(0, 1, 0, 0))
    parts: list[RenderableType] = ["", figures, ""] if figures.row_count else []
    parts += [Text(_line(each, language), style="yellow") for each in dropped(points)]
    parts += [Text(_line(each, language), style="dim") for each in remarks(points, shown)]
    return Group(*parts)


def _line(message: Message, language: Language) -> str:
    return " ".join(clean(language(message)).split())


def remarks(points: Sequence[Point], shown: SweepFacts) -> Iterator[Message]:
    if points and not _left(points):
        yield phrase("Nothing is left to compare: every point was dropped.")
    top = best(points, shown)
    if top and len({point.defines for point in points}) > 1:
        size, several = size_name(top[0].size), "; ".join(map(defines_name, top))
        words = phrase("Best at {size}: {variant}", size=size, variant=several)
        if len(top) > 1:
            words = phrase(
                "At {size} the model cannot tell these apart, whose estimates differ by less than "
                "{share:.0f} %: {variants}"
            ).given(size=size, share=100 * _TIE, variants=several)
        yield words
    if any(point.estimates for point in points):
        yield phrase(
            "Nothing was timed. Registers, warps and bounds are of machine code for {arch}; "
            "“expected” includes waiting, “at most” is what no kernel with these counts exceeds.",
            arch=shown.arch,
        )


def markdown(
    points: Sequence[Point],
    shown: SweepFacts,
    picture: str | None = None,
    language: Language = ENGLISH,
) -> str:
    lines = [f"![{plain(shown.student)}]({picture})", ""] if picture else []
    rows = [[language(cell) for cell in cells(each, points, shown)] for each in _left(points)]
    header = [language(each) for each in headings(points, shown)]
    lines += [*report.markdown_table(header, rows, words(points)), ""] if rows else []
    several = (*dropped(points), *remarks(points, shown))
    lines += [f"{plain(language(each))}\n" for each in several]
    return "\n".join(lines).rstrip() + "\n"


# --- pictures and page ------------------------------------------------------------------------


def maps(
    points: Sequence[Point], shown: SweepFacts, language: Language = ENGLISH
) -> tuple[drawing.Picture, ...]:
    """Draw the maps of the first two macros, one for each size and each value of further macros; of
    a single macro, one over the sizes; () without macros, or if no point has a speed."""
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
    found = []
    for (size, rest), group in groups.items():
        where = ", ".join([size_name(size.dims), *rest])
        caption = phrase("{what} at {size}", what=_what(shown), size=where)
        found.append(_map(group, shown, axes, caption, language))
    return tuple(found)


def _what(shown: SweepFacts) -> Message:
    if shown.card is None:
        return verbatim(shown.problem.unit)
    return phrase("{unit} expected on {gpu}", unit=shown.problem.unit, gpu=shown.card)


def _map(
    group: Sequence[Point],
    shown: SweepFacts,
    axes: tuple[str, str],
    caption: Message,
    language: Language,
) -> drawing.Picture:
    def at(point: Point) -> tuple[str, str]:
        first, *others = (each.partition("=")[2] for each in point.defines)
        return first, others[0] if others else size_name(point.size)

    known = {at(point): value(point, shown) for point in group}
    rows, columns = (list(dict.fromkeys(each)) for each in zip(*known, strict=True))
    values = [[known.get((row, column)) for column in columns] for row in rows]
    image = _heat_map(rows, columns, values, language(caption), axes, language)
    return drawing.Picture(caption=caption, image=image)


def curve(
    points: Sequence[Point], shown: SweepFacts, language: Language = ENGLISH
) -> Markup | None:
    """Speed over sizes, of one variant; None where there are fewer than two."""
    if any(point.defines for point in points):
        return None
    known = [(size_name(p.size), speed) for p in points if (speed := value(p, shown)) is not None]
    if len(known) < 2:
        return None
    base = {size_name(p.size): p.measured.baseline for p in points if p.measured}
    return _over_sizes(known, base, language(_what(shown)), shown.problem.baseline, language)


def picture(
    points: Sequence[Point], shown: SweepFacts, language: Language = ENGLISH
) -> Markup | None:
    """The one for a report: the map of the largest size, or the curve."""
    found = maps(points, shown, language)
    return found[-1].image if found else curve(points, shown, language)


def html(points: Sequence[Point], shown: SweepFacts, language: Language = ENGLISH) -> str:
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


# --- drawing -----------------------------------------------------------------------------------

_LEFT, _TOP, _BOTTOM = 44.0, 52.0, 340.0
_NAME, _CELL, _ROW = 110.0, 66.0, 26.0


def _heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    label: str,
    axes: tuple[str, str],
    language: Language,
) -> Markup:
    """A cell for each value, by rows, the darker the larger. axes: names of rows and columns."""
    known = [value for row in values for value in row if value is not None]
    most, least = max(known, default=1.0), min(known, default=0.0)
    parts = [drawing.text(_NAME - 8, 14, f"{axes[0]} \\ {axes[1]}".strip(" \\"), "small", "end")]
    for j, name in enumerate(columns):
        parts.append(drawing.text(_NAME + (j + 0.5) * _CELL, 14, name, "small", "middle"))
    for i, row in enumerate(values):
        top = 20 + i * _ROW
        parts.append(drawing.text(_NAME - 8, top + 17, rows[i], "small", "end"))
        for j, value in enumerate(row):
            left = _NAME + j * _CELL
            share = (value - least) / (most - least) if value is not None and most > least else 1
            kind = "frame" if value is None else "own"
            cell = (left + 1, top + 1, _CELL - 2, _ROW - 2)
            parts.append(drawing.rect(*cell, kind, opacity=0.08 + 0.5 * share))
            words = "–" if value is None else f"{value:.3g}"
            kind = "strong" if value is not None and value == most else "small"
            parts.append(drawing.text(left + _CELL / 2, top + 17, words, kind, "middle"))
    width = max(_NAME + len(columns) * _CELL + 4, 240)
    seen = phrase("no values")
    if known:
        seen = phrase("between {least:.4g} and {most:.4g}", least=least, most=most)
    return drawing.svg(24 + len(rows) * _ROW, parts, label, language(seen), width=width)


def _over_sizes(
    own: Sequence[tuple[str, float]],
    base: Mapping[str, float],
    unit: str,
    baseline: str,
    language: Language,
) -> Markup:
    """A line for the kernel and one for the baseline, where it was measured, over the sizes."""
    most = 1.1 * max([speed for _, speed in own] + list(base.values()))
    right = drawing.WIDTH - 20.0
    pitch = (right - _LEFT) / len(own)

    def y(value: float) -> float:
        return _BOTTOM - value / most * (_BOTTOM - _TOP)

    parts = [drawing.text(_LEFT, 14, unit, "small")]
    if base:
        grey = language(phrase("grey: {baseline}", baseline=baseline))
        parts.append(drawing.text(right, 14, grey, "small", "end"))
    step = _round_step(most / 5)
    for i in range(int(most / step) + 1):
        parts += drawing.level(_LEFT, right, y(i * step), f"{i * step:g}")
    places = {name: _LEFT + (i + 0.5) * pitch for i, (name, _) in enumerate(own)}
    for values, kind in ((base, "roof"), (dict(own), "series series1")):
        drawn = ((places[name], y(value)) for name, value in values.items() if name in places)
        parts.append(drawing.polyline(drawn, kind))
    every = max(1, math.ceil(len(own) / 12))
    for i, (name, speed) in enumerate(own):
        parts.append(drawing.dot(places[name], y(speed)))
        if i % every == 0:
            parts.append(drawing.text(places[name], _BOTTOM + 18, name, "small", "middle"))
            above = y(speed) - 8
            parts.append(drawing.text(places[name], above, f"{speed:.3g}", "strong", "middle"))
    seen = ", ".join(f"{name}: {speed:.4g}" for name, speed in own)
    return drawing.svg(_BOTTOM + 30, parts, unit, seen)


def _round_step(least: float) -> float:
    """1, 2 or 5 times a power of ten, at least ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= least)
