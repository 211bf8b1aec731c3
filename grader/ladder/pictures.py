"""The ladder's pictures: rungs and sizes by speed and by ratio; bars of the largest size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from markupsafe import Markup

from grader.ladder.document import Ladder, Speed, Step
from grader.language import Language
from grader.model import Dims, phrase, size_text
from grader.report.svg import WIDTH, Bar, bars, line, svg, text

_PEAKS = {"operations": phrase("FP32 peak"), "bytes": phrase("DRAM peak")}
_COLOURS = 6  # in the style sheet: .series0 … .series5; further series reuse them with hollow marks

# The climb: user units of the plot, and of the columns of the CPU and the baseline beside it.
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, WIDTH - 8.0, 12.0, 300.0
_CPU, _BASELINE = 44.0, 60.0
_NUMBER = 18.0  # room for a rung's number


def size_name(size: Dims) -> str:
    """``8192`` for a cube, else ``129×65×33``."""
    extents = set(size.values())
    return f"{extents.pop()}" if len(extents) == 1 else size_text(size)


def legend(ladder: Ladder) -> list[tuple[str, str]]:
    """(class in the style sheet, name) of each size's line."""
    return [(_series(i), size_name(size)) for i, size in enumerate(ladder.sizes)]


def _series(index: int) -> str:
    hollow = " hollow" if index // _COLOURS % 2 else ""
    return f"series series{index % _COLOURS}{hollow}"


class _Columns:
    """Positions from left to right: the CPU if present, the rungs, the baseline if present."""

    def __init__(self, ladder: Ladder, language: Language, *, cpu: bool, baseline: bool) -> None:
        self.cpu = _LEFT + _CPU / 2
        self.baseline = _RIGHT - _BASELINE / 2
        self._first = _LEFT + (_CPU if cpu else 0)
        self._pitch = (_RIGHT - (_BASELINE if baseline else 0) - self._first) / len(ladder.steps)
        every = math.ceil(_NUMBER / self._pitch)  # labels do not touch
        self.labels = [
            _below(self.rung(index), str(step.rung.number))
            for index, step in enumerate(ladder.steps)
            if index % every == 0
        ]
        self.labels += [_below(self.cpu, "CPU")] if cpu else []
        self.labels += [_below(self.baseline, ladder.problem.baseline)] if baseline else []
        rung = language(phrase("rung"))
        self.labels.append(text((_LEFT + _RIGHT) / 2, _BOTTOM + 38, rung, "small", "middle"))

    def rung(self, index: int) -> float:
        return self._first + (index + 0.5) * self._pitch


def _below(x: float, words: str) -> Markup:
    return text(x, _BOTTOM + 18, words, "small", "middle")


def climb(ladder: Ladder, language: Language) -> Markup:
    """Speeds, logarithmic, over the rungs: a line for each size, CPU left, baseline right."""
    cpu = max(loop.gflops for loop in ladder.host.loops) / 1000 if ladder.host else None
    rates = [speed.rate for step in ladder.steps for speed in step.speeds]
    rates += [rate for size in ladder.sizes if (rate := ladder.baseline(size))]
    low = math.floor(math.log10(min([*rates, cpu] if cpu else rates)))
    high = math.log10(max(rates)) + 0.1
    columns = _Columns(ladder, language, cpu=cpu is not None, baseline=True)

    def y(rate: float) -> float:
        return _BOTTOM - (math.log10(rate) - low) / (high - low) * (_BOTTOM - _TOP)

    parts = [*columns.labels, text(_LEFT + 4, _TOP, ladder.problem.unit, "small")]
    for exponent in range(low, math.floor(high) + 1):
        parts += _level(y(10.0**exponent), f"{10.0**exponent:g}")
    if cpu:
        parts.append(_dot(columns.cpu, y(cpu), "host"))
    for i, size in enumerate(ladder.sizes):
        speeds = [step.at(size) for step in ladder.steps]
        points = [
            (columns.rung(index), y(speed.rate)) for index, speed in enumerate(speeds) if speed
        ]
        parts += _curve(points, _series(i))
        if rate := ladder.baseline(size):
            parts.append(_dot(columns.baseline, y(rate), _series(i)))
    unit, name = ladder.problem.unit, ladder.problem.baseline
    title = language(
        phrase("{unit} of every rung at every size, and of {baseline}", unit=unit, baseline=name)
    )
    described = _ends(ladder, lambda speed: f"{speed.rate:.3g} {unit}")
    return svg(_BOTTOM + 46, parts, title, described)


def share(ladder: Ladder, language: Language) -> Markup | None:
    """The ratio to the baseline over the rungs: a line for each size; None if nothing was timed."""
    ratios = [speed.ratio for step in ladder.steps for speed in step.speeds]
    if not ratios:
        return None
    high = max(1.05, *ratios) * 1.03
    columns = _Columns(ladder, language, cpu=False, baseline=False)

    def y(ratio: float) -> float:
        return _BOTTOM - ratio / high * (_BOTTOM - _TOP)

    parts = list(columns.labels)
    for percent in range(0, int(100 * high) + 1, 20):
        parts += _level(y(percent / 100), f"{percent} %")
    parts.append(line(_LEFT, y(1), _RIGHT, y(1), "roof"))
    parts.append(text(_LEFT + 4, y(1) - 5, ladder.problem.baseline, "small"))
    for i, size in enumerate(ladder.sizes):
        speeds = [step.at(size) for step in ladder.steps]
        points = [
            (columns.rung(index), y(speed.ratio)) for index, speed in enumerate(speeds) if speed
        ]
        parts += _curve(points, _series(i))
    title = language(
        phrase(
            "Share of {baseline}'s speed of every rung at every size",
            baseline=ladder.problem.baseline,
        )
    )
    described = _ends(ladder, lambda speed: f"{100 * speed.ratio:.1f} %")
    return svg(_BOTTOM + 46, parts, title, described)


def _ends(ladder: Ladder, words: Callable[[Speed], str]) -> str:
    """Where each size's line begins and ends: ``1024: 01_naive 0.32 TFLOPS … 32_dispatch 35``."""
    lines = []
    for size in ladder.sizes:
        timed = [(step.rung.name, speed) for step in ladder.steps if (speed := step.at(size))]
        ends = (f"{name} {words(speed)}" for name, speed in (timed[0], timed[-1]))
        lines.append(f"{size_name(size)}: {' … '.join(ends)}")
    return "; ".join(lines)


def _level(y: float, name: str) -> list[Markup]:
    return [line(_LEFT, y, _RIGHT, y, "grid"), text(_LEFT - 6, y + 4, name, "small", "end")]


def _curve(points: Sequence[tuple[float, float]], kind: str) -> list[Markup]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    drawn = Markup('<polyline points="{}" class="{}"/>').format(path, kind)
    return [drawn, *(_dot(x, y, kind) for x, y in points)]


def _dot(x: float, y: float, kind: str) -> Markup:
    return Markup('<circle cx="{:.1f}" cy="{:.1f}" r="3" class="{}"/>').format(x, y, kind)


def speeds(ladder: Ladder, size: Dims, peak: float | None, language: Language) -> Markup:
    """Speeds at one size, from the CPU to the baseline and the GPU's peak."""
    title = phrase("{unit} of every rung at {size}", unit=ladder.problem.unit, size=size_name(size))
    return bars(list(_rows(ladder, size, peak, language)), language(title))


def _rows(ladder: Ladder, size: Dims, peak: float | None, language: Language) -> Iterator[Bar]:
    for loop in ladder.host.loops if ladder.host else ():
        assert ladder.host
        rate = loop.gflops / 1000
        words = language(phrase("{speed:.2g} (at {n})", speed=rate, n=ladder.host.n))
        yield Bar(name=f"CPU, {loop.name}", value=rate, words=words, kind="base")
    for step in ladder.steps:
        yield _bar(step, size, language)
    if base := ladder.baseline(size):
        yield Bar(name=ladder.problem.baseline, value=base, words=f"{base:.4g}", kind="base")
    if peak:
        name = language(_PEAKS[ladder.problem.counts])
        yield Bar(name=name, value=peak, words=f"{peak:.4g}", kind="peak")


def _bar(step: Step, size: Dims, language: Language) -> Bar:
    name = step.rung.name.replace("_", " ")
    speed = step.at(size)
    if speed is None:
        words = step.verdict.value if step.verdict else language(phrase("not graded"))
        return Bar(name=name, value=0, words=words, kind="own")
    words = f"{speed.rate:.4g}, {100 * speed.ratio:.1f} %"
    return Bar(name=name, value=speed.rate, words=words, kind="own")
