"""Pictures for a report: the climb of a kernel's versions beside the ladder; a sweep's heat map."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from markupsafe import Markup

from grader.language import ENGLISH, Language
from grader.model import Message, Verdict, listed, phrase
from grader.report.svg import WIDTH, line, svg, text
from grader.study.history import History, Rung, peak_of, size_words
from grader.study.versions import Version

_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, WIDTH - 190.0, 52.0, 340.0
_APART = 11.0  # units between two labels of rungs
_BELOW = 3.0  # rungs slower than the slowest version by more than this are left out


def climb(history: History, language: Language = ENGLISH) -> Markup | None:
    """Speeds of all versions, logarithmic, with the ladder's rungs on the right; None when no
    version has a speed at the history's size."""
    points = [(v, v.speed.value) for v in history.versions if v.speed and _at_size(v, history)]
    if not points or history.size is None:
        return None
    peak = peak_of(history)
    values = [value for _, value in points]
    least = min(values) / _BELOW
    values += [rung.value for rung in history.rungs if rung.value >= least]
    values += [each for each in (history.baseline, peak) if each]
    low = math.log10(min(values)) - 0.08
    high = math.log10(max(values)) + 0.08

    def y(value: float) -> float:
        return _BOTTOM - (math.log10(value) - low) / (high - low) * (_BOTTOM - _TOP)

    pitch = (_RIGHT - _LEFT) / len(history.versions)

    def x(version: Version) -> float:
        return _LEFT + (version.number - 0.5) * pitch

    title = language(_unit(history))
    parts = [*_levels(low, high, y), text(_LEFT, 14, title, "small")]
    if history.baseline:
        parts += _roof(y(history.baseline), history.problem.baseline)
    if peak:
        parts += _roof(y(peak), language(phrase("peak, {speed:.3g}", speed=peak)))
    parts += _rungs([rung for rung in history.rungs if rung.value >= least], y)
    path = " ".join(f"{x(v):.1f},{y(value):.1f}" for v, value in points)
    parts.append(Markup('<polyline points="{}" class="series series1"/>').format(path))
    every = max(1, math.ceil(len(history.versions) / 12))
    for version, value in points:
        parts.append(_dot(x(version), y(value)))
        if len(points) <= 12:
            words = f"{value:.3g}"
            parts.append(text(x(version), y(value) - 8, words, "strong", "middle"))
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


def _at_size(version: Version, history: History) -> bool:
    return version.speed is not None and version.speed.size == history.size


def _unit(history: History) -> Message:
    words = (
        phrase("{unit} at most, by counts, on {gpu} at {size}")
        if history.bounds
        else phrase("{unit} on {gpu} at {size}")
    )
    return words.given(unit=history.problem.unit, gpu=history.gpu or "", size=size_words(history))


def _levels(low: float, high: float, y: Callable[[float], float]) -> Iterator[Markup]:
    for exponent in range(math.floor(low), math.ceil(high) + 1):
        for digit in (1, 2, 5):
            value = digit * 10.0**exponent
            if low <= math.log10(value) <= high:
                yield line(_LEFT, y(value), _RIGHT, y(value), "grid")
                yield text(_LEFT - 6, y(value) + 4, f"{value:g}", "small", "end")


def _roof(y: float, words: str) -> list[Markup]:
    return [line(_LEFT, y, _RIGHT, y, "roof"), text(_LEFT + 4, y - 5, words, "small")]


def _rungs(rungs: Sequence[Rung], y: Callable[[float], float]) -> Iterator[Markup]:
    """A mark for every rung; names where they have room, the fastest first."""
    free = _TOP - _APART
    for rung in sorted(rungs, key=lambda each: -each.value):
        at = y(rung.value)
        yield line(_RIGHT, at, _RIGHT + 8, at, "grid")
        if at >= free + _APART:
            name = rung.name.replace("_", " ")
            yield text(_RIGHT + 12, at + 4, f"{name} {rung.value:.3g}", "small")
            free = at


def _dot(x: float, y: float) -> Markup:
    return Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4" class="point"/>').format(x, y)


# --- the heat map of a sweep ------------------------------------------------------------------

_NAME, _CELL, _ROW = 110.0, 66.0, 26.0


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    label: str,
    axes: tuple[str, str],
    language: Language = ENGLISH,
) -> Markup:
    """A cell for each value, the darker the larger; None: there is no value.

    values: by rows. axes: what rows and columns stand for.
    """
    known = [value for row in values for value in row if value is not None]
    most, least = max(known, default=1.0), min(known, default=0.0)
    parts = [text(_NAME - 8, 14, f"{axes[0]} \\ {axes[1]}".strip(" \\"), "small", "end")]
    for j, name in enumerate(columns):
        parts.append(text(_NAME + (j + 0.5) * _CELL, 14, name, "small", "middle"))
    for i, row in enumerate(values):
        top = 20 + i * _ROW
        parts.append(text(_NAME - 8, top + 17, rows[i], "small", "end"))
        for j, value in enumerate(row):
            left = _NAME + j * _CELL
            share = (value - least) / (most - least) if value is not None and most > least else 1
            parts.append(
                Markup(
                    '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}" '
                    'fill-opacity="{:.2f}"/>'
                ).format(
                    *(left + 1, top + 1, _CELL - 2, _ROW - 2),
                    "frame" if value is None else "own",
                    0.08 + 0.5 * share,
                )
            )
            words = "–" if value is None else f"{value:.3g}"
            kind = "strong" if value is not None and value == most else "small"
            parts.append(text(left + _CELL / 2, top + 17, words, kind, "middle"))
    width = max(_NAME + len(columns) * _CELL + 4, 240)
    seen = (
        phrase("between {least:.4g} and {most:.4g}", least=least, most=most)
        if known
        else phrase("no values")
    )
    return svg(24 + len(rows) * _ROW, parts, label, language(seen), width=width)


# --- speed over sizes -------------------------------------------------------------------------


def over_sizes(
    own: Sequence[tuple[str, float]],
    base: Mapping[str, float],
    unit: str,
    baseline: str,
    language: Language = ENGLISH,
) -> Markup:
    """A line for the kernel and one for the baseline, where it was measured, over the sizes."""
    most = 1.1 * max([speed for _, speed in own] + list(base.values()))
    right = WIDTH - 20.0
    pitch = (right - _LEFT) / len(own)

    def y(value: float) -> float:
        return _BOTTOM - value / most * (_BOTTOM - _TOP)

    parts = [text(_LEFT, 14, unit, "small")]
    if base:
        grey = language(phrase("grey: {baseline}", baseline=baseline))
        parts.append(text(right, 14, grey, "small", "end"))
    step = _round_step(most / 5)
    for i in range(int(most / step) + 1):
        parts.append(line(_LEFT, y(i * step), right, y(i * step), "grid"))
        parts.append(text(_LEFT - 6, y(i * step) + 4, f"{i * step:g}", "small", "end"))
    places = {name: _LEFT + (i + 0.5) * pitch for i, (name, _) in enumerate(own)}
    for values, kind in ((base, "roof"), (dict(own), "series series1")):
        drawn = " ".join(f"{places[n]:.1f},{y(v):.1f}" for n, v in values.items() if n in places)
        parts.append(Markup('<polyline points="{}" class="{}"/>').format(drawn, kind))
    every = max(1, math.ceil(len(own) / 12))
    for i, (name, speed) in enumerate(own):
        parts.append(_dot(places[name], y(speed)))
        if i % every == 0:
            parts.append(text(places[name], _BOTTOM + 18, name, "small", "middle"))
            parts.append(text(places[name], y(speed) - 8, f"{speed:.3g}", "strong", "middle"))
    seen = ", ".join(f"{name}: {speed:.4g}" for name, speed in own)
    return svg(_BOTTOM + 30, parts, unit, seen)


def _round_step(least: float) -> float:
    """1, 2 or 5 times a power of ten, at least ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= least)
