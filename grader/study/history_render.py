"""History → terminal table, HTML page, Markdown; the climb as a picture. Pure."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from markupsafe import Markup
from rich.console import Group, RenderableType
from rich.text import Text

from grader import report
from grader.base import ENGLISH, Language, Verdict, size_text
from grader.model import Advice, advice_title
from grader.report import WIDTH, clean, dot, level, line, plain, polyline, svg, text
from grader.study.history import History, RungSpeed, peak_of
from grader.study.versions import Version
from ptxsim.text import Message, clauses, listed, phrase, verbatim

_WORDS = (1, 2, 4)  # columns that hold words: graded, verdict, tile
_ROWS = 12  # of a diff, on a terminal
_FACTS = (phrase("tile"), phrase("registers"), phrase("shared bytes"), phrase("spilled"))


def headings(history: History) -> tuple[Message, ...]:
    unit = history.problem.unit
    version = (phrase("version"), phrase("graded"), phrase("verdict"), phrase("lines"))
    if history.estimated:
        return (*version, *_FACTS, phrase("{unit} expected", unit=unit))
    baseline = phrase("of {baseline}", baseline=history.problem.baseline)
    return (*version, *_FACTS, verbatim(unit), baseline, phrase("points"))


def cells(history: History, version: Version) -> tuple[str, ...]:
    """The speed comes with its size, where that is not the history's."""
    kernel, speed = version.kernel, version.speed
    facts: tuple[object, ...] = ("",) * len(_FACTS)
    if kernel:
        facts = (kernel.tile, kernel.registers, kernel.shared_bytes, kernel.spill_bytes)
    other = f" ({size_text(speed.size)})" if speed and speed.size != history.size else ""
    ratio = speed.ratio if speed else None
    measured = (
        f"{100 * ratio:.1f} %" if ratio is not None else "",
        f"{version.points:.2f}" if version.points is not None else "",
    )
    return (
        str(version.number),
        version.created[:16].replace("T", " "),
        version.verdict.value,
        f"+{version.diff.added} −{version.diff.removed}" if version.diff else "",
        *map(str, facts),
        f"{speed.value:.4g}{other}" if speed else "",
        *(() if history.estimated else measured),
    )


def notes(version: Version) -> Iterator[Message]:
    """Yield the changes, and the advice that no longer applies."""
    diff = version.diff
    if diff is not None and not diff.files:
        yield phrase("the same source")
    elif diff is not None:
        words = phrase("+{added} −{removed} lines ({files})")
        if not diff.exact:
            words = phrase("+{added} −{removed} lines, counted regardless of their order ({files})")
        yield words.given(added=diff.added, removed=diff.removed, files=", ".join(diff.files))
    elif version.number > 1:
        yield phrase("what changed is not known: one of the two sources was not kept")
    yield from version.changed
    if version.followed:
        yield phrase("advice followed: {ideas}", ideas=listed(map(_followed, version.followed)))
    if version.became is not None:
        times = f"{version.became:.3g}"
        if times == "1":
            yield phrase("as fast as the accepted version before")
        else:
            yield phrase("{times} times as fast as the accepted version before", times=times)


def _followed(advice: Advice) -> Message:
    title = advice_title(advice)
    if advice.gain is None:
        return title
    said = phrase("{idea} (the model said {times:.3g} times as fast)", idea=title)
    return said.given(times=advice.gain)


def remarks(history: History) -> Iterator[Message]:
    """Yield remarks on the whole history."""
    if history.estimated and history.size:
        expected = phrase("Nothing was timed: the model expects these speeds on {gpu}, at {size}.")
        yield expected.given(gpu=history.gpu or "", size=size_text(history.size))
    further = phrase("There are also results of {board}: choose with --lab, --device and --gpu.")
    yield from (further.given(board=other) for other in history.others)


def title(history: History) -> str:
    where = history.gpu if history.device == "gpu" and history.gpu else history.device.upper()
    return f"{history.student} · {history.lab.id} · {where}"


def terminal(history: History, language: Language = ENGLISH) -> RenderableType:
    rows: list[tuple[str | Text, ...]] = []
    for version in history.versions:
        style = "green" if version.verdict is Verdict.AC else "bold red"
        number, graded, verdict, *others = cells(history, version)
        rows.append((number, graded, Text(verdict, style=style), *others))
    header = map(language, headings(history))
    figures = report.table(header, rows, _WORDS, padding=(0, 1, 0, 0))
    parts: list[RenderableType] = [Text(clean(title(history)), style="bold"), "", figures, ""]
    for version in history.versions:
        several = clauses(notes(version))
        if several:
            parts.append(Text(f"{version.number}: {clean(language(several))}"))
    diff = history.versions[-1].diff
    changed = islice((row for row in diff.lines if row[0] in "+-"), _ROWS) if diff else ()
    parts += [Text(f"  {clean(row)}", no_wrap=True, overflow="ellipsis") for row in changed]
    for advice in history.versions[-1].advice:
        words = clean(report.advice_sentence(advice, language))
        parts.append(Text.assemble((language(phrase("next: ")), "bold cyan"), words))
    parts += [Text(clean(language(each)), style="dim") for each in remarks(history)]
    return Group(*parts)


def markdown(history: History, picture: str | None = None, language: Language = ENGLISH) -> str:
    """picture: the name of its file, to be shown."""
    lines = [f"## {plain(title(history))}", ""]
    if picture:
        lines += [f"![{plain(title(history))}]({picture})", ""]
    header = [language(each) for each in (*headings(history), phrase("what changed"))]
    rows = [
        [*cells(history, version), language(clauses(notes(version))) if version.number > 1 else ""]
        for version in history.versions
    ]
    lines += report.markdown_table(header, rows, {*_WORDS, len(header) - 1})
    lines += ["", *(f"{plain(language(each))}\n" for each in remarks(history))]
    return "\n".join(lines).rstrip() + "\n"


def html(history: History, language: Language = ENGLISH) -> str:
    """A self-contained page that works without scripts."""
    return report.page(
        "history.html.j2",
        language,
        title=title(history),
        history=history,
        climb=climb(history, language),
        headings=headings(history),
        words=_WORDS,
        cells=lambda version: cells(history, version),
        notes=lambda version: list(notes(version)),
        advice_sentence=lambda advice: report.advice_sentence(advice, language),
        remarks=list(remarks(history)),
    )


# --- picture -----------------------------------------------------------------------------------

_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, WIDTH - 190.0, 52.0, 340.0
_APART = 11.0  # units between two labels of rungs
_BELOW = 3.0  # rungs slower than the slowest version by more than this are left out


def climb(history: History, language: Language = ENGLISH) -> Markup | None:
    """Speeds at the history's size, logarithmic, beside the ladder's rungs; None without any."""
    points = [
        (v, v.speed.value) for v in history.versions if v.speed and v.speed.size == history.size
    ]
    if not points or history.size is None:
        return None
    peak = peak_of(history)
    values = [value for _, value in points]
    least = min(values) / _BELOW
    rungs = [rung for rung in history.rungs if rung.value >= least]
    values += [rung.value for rung in rungs]
    values += [each for each in (history.baseline, peak) if each]
    low, high = math.log10(min(values)) - 0.08, math.log10(max(values)) + 0.08

    def y(value: float) -> float:
        return _BOTTOM - (math.log10(value) - low) / (high - low) * (_BOTTOM - _TOP)

    pitch = (_RIGHT - _LEFT) / len(history.versions)

    def x(version: Version) -> float:
        return _LEFT + (version.number - 0.5) * pitch

    unit = phrase("{unit} on {gpu} at {size}")
    if history.estimated:
        unit = phrase("{unit} expected, by counts, on {gpu} at {size}")
    title = language(
        unit.given(unit=history.problem.unit, gpu=history.gpu or "", size=size_text(history.size))
    )
    parts = [*_levels(low, high, y), text(_LEFT, 14, title, "small")]
    if history.baseline:
        parts += _roof(y(history.baseline), history.problem.baseline)
    if peak:
        parts += _roof(y(peak), language(phrase("peak, {speed:.3g}", speed=peak)))
    parts += _rungs(rungs, y)
    parts.append(polyline(((x(v), y(value)) for v, value in points), "series series1"))
    every = max(1, math.ceil(len(history.versions) / 12))
    for version, value in points:
        parts.append(dot(x(version), y(value)))
        if len(points) <= 12:
            parts.append(text(x(version), y(value) - 8, f"{value:.3g}", "strong", "middle"))
    for version in history.versions:
        if version.verdict is not Verdict.AC:
            words = version.verdict.value
            parts.append(text(x(version), _BOTTOM - 6, words, "small bad", "middle"))
        if (version.number - 1) % every == 0:
            parts.append(text(x(version), _BOTTOM + 18, f"{version.number}", "small", "middle"))
    parts.append(
        text((_LEFT + _RIGHT) / 2, _BOTTOM + 38, language(phrase("version")), "small", "middle")
    )
    seen = listed(
        phrase("version {number}: {speed:.4g}", number=version.number, speed=value)
        for version, value in points
    )
    return svg(_BOTTOM + 46, parts, title, language(seen))


def _levels(low: float, high: float, y: Callable[[float], float]) -> Iterator[Markup]:
    for exponent in range(math.floor(low), math.ceil(high) + 1):
        for digit in (1, 2, 5):
            value = digit * 10.0**exponent
            if low <= math.log10(value) <= high:
                yield from level(_LEFT, _RIGHT, y(value), f"{value:g}")


def _roof(y: float, words: str) -> list[Markup]:
    return [line(_LEFT, y, _RIGHT, y, "roof"), text(_LEFT + 4, y - 5, words, "small")]


def _rungs(rungs: Sequence[RungSpeed], y: Callable[[float], float]) -> Iterator[Markup]:
    """A mark for every rung; names where they have room, the fastest first."""
    free = _TOP - _APART
    for rung in sorted(rungs, key=lambda each: -each.value):
        at = y(rung.value)
        yield line(_RIGHT, at, _RIGHT + 8, at, "grid")
        if at >= free + _APART:
            name = rung.name.replace("_", " ")
            yield text(_RIGHT + 12, at + 4, f"{name} {rung.value:.3g}", "small")
            free = at
