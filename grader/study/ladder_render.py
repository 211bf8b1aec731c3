"""Ladder → terminal table, HTML page. Pure."""

import math
from collections.abc import Callable, Iterator

from markupsafe import Markup
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from grader.base import ENGLISH, Dims, Language, Verdict
from grader.report import clean, drawing, page, peak_name, size_name
from grader.results import HostLoop, Ladder, LadderStep, Speed
from ptxsim.text import Message, phrase, sentences, verbatim

ONE_KERNEL = phrase(
    "● one kernel per call at every size that was graded, as rules.kernels: one asks"
)
LESSON_FIRST = phrase("first the rungs that are the lesson, then detours and research")
UNTIMED = phrase("Only a GPU can be timed: the simulator says which rungs are right.")


def device_name(ladder: Ladder) -> Message:
    return verbatim(ladder.gpu.name) if ladder.gpu else phrase("simulator on the CPU")


def _title(ladder: Ladder) -> Message:
    return phrase("The reference ladder on {device}", device=device_name(ladder))


def _bound_words(ladder: Ladder) -> Message:
    """Name the ceilings, and the sizes that they are for."""
    found = dict.fromkeys(size_name(each.size) for step in ladder.steps for each in step.ceilings)
    words = phrase(
        "≤: a bound, not a measurement: the speed that the rung's counts allow at most, at {sizes}"
    )
    return words.given(sizes=", ".join(found))


def terminal(ladder: Ladder, language: Language = ENGLISH) -> RenderableType:
    """The CPU, then the table of all rungs and the baseline, then notes on some rungs."""

    def said(message: Message, style: str = "") -> Text:
        return Text(clean(language(message)), style=style)

    parts: list[RenderableType] = [said(_title(ladder), "bold")]
    if ladder.host:
        loops = ", ".join(f"{loop.name} {gflops(loop)}" for loop in ladder.host.loops)
        host = phrase("CPU, three loops at {n} on one core: {loops}", n=ladder.host.n, loops=loops)
        parts.append(said(host))
    parts += ["", _table(ladder, language)]
    if ladder.sizes:
        unit, baseline = ladder.problem.unit, ladder.problem.baseline
        figures = phrase(
            "{unit} of the best run; median ratio to {baseline}", unit=unit, baseline=baseline
        )
        parts.append(said(figures, "dim"))
    else:
        parts.append(said(UNTIMED, "dim"))
    if len(ladder.groups) > 1:
        parts.append(said(LESSON_FIRST, "dim"))
    if any(step.one_kernel for step in ladder.steps):
        parts.append(said(ONE_KERNEL, "dim"))
    if ladder.untimed:
        parts.append(said(_bound_words(ladder), "dim"))
    for step in ladder.steps:
        if step.message:
            name = verbatim(step.rung.name)
            named = phrase("{rung}, a trap", rung=name) if step.rung.trap else name
            parts.append(said(phrase("{rung}: {what}", rung=named, what=step.message)))
    return Group(*parts)


def _table(ladder: Ladder, language: Language) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for name in (language(phrase("rung")), "", ""):
        table.add_column(name, no_wrap=True)
    for size in ladder.sizes:
        table.add_column(size_name(size), justify="right")
    for gpu in ladder.untimed:
        table.add_column(f"≤ {clean(gpu)}", justify="right", style="dim")
    for steps in ladder.groups:
        for step in steps:
            style = "green" if step.verdict is Verdict.AC else "bold red"
            table.add_row(
                Text(clean(step.rung.name)),
                "●" if step.one_kernel else "",
                Text(step.verdict.value, style=style) if step.verdict else "–",
                *(_cell(step.at(size)) for size in ladder.sizes),
                *(bound(step, gpu) for gpu in ladder.untimed),
            )
        table.add_section()
    if ladder.sizes:
        rates = [f"{three_digits(ladder.baseline(size) or 0)} 100.0%" for size in ladder.sizes]
        table.add_row(ladder.problem.baseline, "", "", *rates, style="dim")
    return table


def _cell(speed: Speed | None) -> str:
    return f"{three_digits(speed.rate)} {100 * speed.ratio:5.1f}%" if speed else ""


def bound(step: LadderStep, gpu: str) -> str:
    ceiling = step.ceiling(gpu)
    return three_digits(ceiling.speed) if ceiling else ""


def three_digits(speed: float) -> str:
    """1940, not 1.94e+03."""
    return f"{float(f'{speed:.3g}'):g}"


def gflops(loop: HostLoop) -> str:
    return f"{loop.gflops:.3g} GFLOPS"


def html(ladder: Ladder, language: Language = ENGLISH) -> str:
    """A self-contained page that works without scripts."""
    largest = ladder.sizes[-1] if ladder.sizes else None
    peak = ladder.problem.peak(ladder.gpu) if ladder.gpu else None
    return page(
        "ladder.html.j2",
        language,
        title=language(_title(ladder)),
        ladder=ladder,
        device=device_name(ladder),
        created=ladder.created[:16].replace("T", " ") + " UTC" if ladder.created else "",
        untimed=UNTIMED,
        one_kernel=ONE_KERNEL,
        bound=bound,
        bound_words=_bound_words(ladder),
        size_name=size_name,
        summary=_summary(ladder),
        climb=climb(ladder, language) if largest else None,
        share=share(ladder, language),
        bars=speeds(ladder, largest, peak, language) if largest else None,
        legend=legend(ladder),
        largest=size_name(largest) if largest else "",
        peak=peak,
        peak_name=peak_name(ladder.problem),
        gflops=gflops,
    )


def _summary(ladder: Ladder) -> Message:
    graded = [step for step in ladder.steps if step.verdict]
    right = sum(step.verdict is Verdict.AC for step in graded)
    accepted = phrase("{right} of {all} rungs are accepted.", right=right, all=len(graded))
    if not ladder.sizes:
        return sentences([accepted, UNTIMED])
    size = ladder.sizes[-1]
    timed = [(speed, step) for step in ladder.steps if (speed := step.at(size))]
    if not timed:
        return accepted
    speed, step = max(timed, key=lambda pair: pair[0].rate)
    fastest = phrase(
        "The fastest at {size}, {rung}, reaches {speed:.4g} {unit}, {percent:.1f} % of {baseline}."
    ).given(
        size=size_name(size),
        rung=step.rung.name,
        speed=speed.rate,
        unit=ladder.problem.unit,
        percent=100 * speed.ratio,
        baseline=ladder.problem.baseline,
    )
    return sentences([accepted, fastest])


# --- pictures ----------------------------------------------------------------------------------

_PEAKS = {"operations": phrase("FP32 peak"), "bytes": phrase("DRAM peak")}
_COLOURS = 6  # in the style sheet: .series0 … .series5; further series reuse them with hollow marks

# The climb: user units of the plot, and of the columns of the CPU and the baseline beside it.
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, drawing.WIDTH - 8.0, 12.0, 300.0
_CPU, _BASELINE = 44.0, 60.0
_NUMBER = 18.0  # room for a rung's number


def legend(ladder: Ladder) -> list[tuple[str, str]]:
    """(class in the style sheet, name) of each size's line."""
    return [(_series(i), size_name(size)) for i, size in enumerate(ladder.sizes)]


def _series(index: int) -> str:
    hollow = " hollow" if index // _COLOURS % 2 else ""
    return f"series series{index % _COLOURS}{hollow}"


class _Plot:
    """Lines over the rungs, one for each size. beside: with the CPU, if it was timed, on their left
    and the baseline on their right."""

    def __init__(self, ladder: Ladder, language: Language, *, beside: bool) -> None:
        self._ladder, self._language = ladder, language
        self.cpu, self.baseline = _LEFT + _CPU / 2, _RIGHT - _BASELINE / 2
        cpu = beside and ladder.host is not None
        first, end = _LEFT + (_CPU if cpu else 0), _RIGHT - (_BASELINE if beside else 0)
        pitch = (end - first) / len(ladder.steps)
        self._rungs = [first + (index + 0.5) * pitch for index in range(len(ladder.steps))]
        every = math.ceil(_NUMBER / pitch)  # labels do not touch
        numbers = (str(step.rung.number) for step in ladder.steps)
        labels = list(zip(self._rungs, numbers, strict=True))[::every]
        labels += [(self.cpu, "CPU")] if cpu else []
        labels += [(self.baseline, ladder.problem.baseline)] if beside else []
        self.parts = [drawing.text(x, _BOTTOM + 18, each, "small", "middle") for x, each in labels]
        rung, middle = language(phrase("rung")), (_LEFT + _RIGHT) / 2
        self.parts.append(drawing.text(middle, _BOTTOM + 38, rung, "small", "middle"))

    def drawn(
        self, title: Message, height: Callable[[Speed], float], words: Callable[[Speed], str]
    ) -> Markup:
        """The picture with its lines, described by where each of them begins and ends:
        ``1024: 01_naive 0.32 TFLOPS … 32_dispatch 35``."""
        described = []
        for i, size in enumerate(self._ladder.sizes):
            timed = [
                (x, step.rung.name, speed)
                for x, step in zip(self._rungs, self._ladder.steps, strict=True)
                if (speed := step.at(size))
            ]
            points = [(x, height(speed)) for x, _, speed in timed]
            self.parts.append(drawing.polyline(points, _series(i)))
            self.parts += (drawing.dot(x, y, _series(i), 3) for x, y in points)
            ends = (f"{name} {words(speed)}" for _, name, speed in (timed[0], timed[-1]))
            described.append(f"{size_name(size)}: {' … '.join(ends)}")
        return drawing.svg(_BOTTOM + 46, self.parts, self._language(title), "; ".join(described))


def climb(ladder: Ladder, language: Language) -> Markup:
    """Speeds, logarithmic, over the rungs: a line for each size, CPU left, baseline right."""
    cpu = max(loop.gflops for loop in ladder.host.loops) / 1000 if ladder.host else None
    rates = [speed.rate for step in ladder.steps for speed in step.speeds]
    rates += [rate for size in ladder.sizes if (rate := ladder.baseline(size))]
    low = math.floor(math.log10(min([*rates, cpu] if cpu else rates)))
    high = math.log10(max(rates)) + 0.1
    plot, unit = _Plot(ladder, language, beside=True), ladder.problem.unit

    def y(rate: float) -> float:
        return _BOTTOM - (math.log10(rate) - low) / (high - low) * (_BOTTOM - _TOP)

    plot.parts.append(drawing.text(_LEFT + 4, _TOP, unit, "small"))
    for exponent in range(low, math.floor(high) + 1):
        plot.parts += drawing.level(_LEFT, _RIGHT, y(10.0**exponent), f"{10.0**exponent:g}")
    if cpu:
        plot.parts.append(drawing.dot(plot.cpu, y(cpu), "host", 3))
    for i, size in enumerate(ladder.sizes):
        if rate := ladder.baseline(size):
            plot.parts.append(drawing.dot(plot.baseline, y(rate), _series(i), 3))
    title = phrase("{unit} of every rung at every size, and of {baseline}", unit=unit)
    title = title.given(baseline=ladder.problem.baseline)
    return plot.drawn(title, lambda speed: y(speed.rate), lambda speed: f"{speed.rate:.3g} {unit}")


def share(ladder: Ladder, language: Language) -> Markup | None:
    """The ratio to the baseline over the rungs: a line for each size; None if nothing was timed."""
    ratios = [speed.ratio for step in ladder.steps for speed in step.speeds]
    if not ratios:
        return None
    high = max(1.05, *ratios) * 1.03
    plot, baseline = _Plot(ladder, language, beside=False), ladder.problem.baseline

    def y(ratio: float) -> float:
        return _BOTTOM - ratio / high * (_BOTTOM - _TOP)

    for percent in range(0, int(100 * high) + 1, 20):
        plot.parts += drawing.level(_LEFT, _RIGHT, y(percent / 100), f"{percent} %")
    plot.parts.append(drawing.line(_LEFT, y(1), _RIGHT, y(1), "roof"))
    plot.parts.append(drawing.text(_LEFT + 4, y(1) - 5, baseline, "small"))
    title = phrase("Share of {baseline}'s speed of every rung at every size", baseline=baseline)
    return plot.drawn(
        title, lambda speed: y(speed.ratio), lambda speed: f"{100 * speed.ratio:.1f} %"
    )


def speeds(ladder: Ladder, size: Dims, peak: float | None, language: Language) -> Markup:
    """Speeds at one size, from the CPU to the baseline and the GPU's peak."""
    title = phrase("{unit} of every rung at {size}", unit=ladder.problem.unit, size=size_name(size))
    return drawing.bars(list(_rows(ladder, size, peak, language)), language(title))


def _rows(
    ladder: Ladder, size: Dims, peak: float | None, language: Language
) -> Iterator[drawing.Bar]:
    for loop in ladder.host.loops if ladder.host else ():
        assert ladder.host
        rate = loop.gflops / 1000
        words = language(phrase("{speed:.2g} (at {n})", speed=rate, n=ladder.host.n))
        yield drawing.Bar(name=f"CPU, {loop.name}", value=rate, words=words, kind="base")
    for step in ladder.steps:
        name, speed = step.rung.name.replace("_", " "), step.at(size)
        words = step.verdict.value if step.verdict else language(phrase("not graded"))
        if speed is not None:
            words = f"{speed.rate:.4g}, {100 * speed.ratio:.1f} %"
        yield drawing.Bar(name=name, value=speed.rate if speed else 0, words=words, kind="own")
    if base := ladder.baseline(size):
        name = ladder.problem.baseline
        yield drawing.Bar(name=name, value=base, words=f"{base:.4g}", kind="base")
    if peak:
        name = language(_PEAKS[ladder.problem.counts])
        yield drawing.Bar(name=name, value=peak, words=f"{peak:.4g}", kind="peak")
