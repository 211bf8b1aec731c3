"""Ladder → terminal table, HTML page. Pure."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from grader.ladder.document import HostLoop, Ladder, Speed, Step
from grader.ladder.pictures import climb, legend, share, size_name, speeds
from grader.language import ENGLISH, Language
from grader.model import Message, Verdict, phrase, sentences, verbatim
from grader.report.measurement import peak_name
from grader.report.page import page
from grader.report.text import clean

ONE_KERNEL = phrase(
    "● one kernel per call at every size that was graded, as rules.kernels: one asks"
)
UNTIMED = phrase("Only a GPU can be timed: the simulator says which rungs are right.")


def device_name(ladder: Ladder) -> Message:
    return verbatim(ladder.gpu.name) if ladder.gpu else phrase("simulator on the CPU")


def _title(ladder: Ladder) -> Message:
    return phrase("The reference ladder on {device}", device=device_name(ladder))


def _bound_words(ladder: Ladder) -> Message:
    """What the ceilings are, and the sizes that they are for."""
    found = {size_name(each.size): None for step in ladder.steps for each in step.ceilings}
    return phrase(
        "≤: a bound, not a measurement: the speed that the rung's counts allow at most, at {sizes}",
        sizes=", ".join(found),
    )


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
    table.add_column(language(phrase("rung")), no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True)
    for size in ladder.sizes:
        table.add_column(size_name(size), justify="right")
    for gpu in ladder.untimed:
        table.add_column(f"≤ {clean(gpu)}", justify="right", style="dim")
    for step in ladder.steps:
        style = "green" if step.verdict is Verdict.AC else "bold red"
        table.add_row(
            Text(clean(step.rung.name)),
            "●" if step.one_kernel else "",
            Text(step.verdict.value, style=style) if step.verdict else "–",
            *(_cell(step.at(size)) for size in ladder.sizes),
            *(bound(step, gpu) for gpu in ladder.untimed),
        )
    if ladder.sizes:
        rates = [f"{ladder.baseline(size) or 0:.3g} 100.0%" for size in ladder.sizes]
        table.add_row(ladder.problem.baseline, "", "", *rates, style="dim")
    return table


def _cell(speed: Speed | None) -> str:
    return f"{speed.rate:.3g} {100 * speed.ratio:5.1f}%" if speed else ""


def bound(step: Step, gpu: str) -> str:
    ceiling = step.ceiling(gpu)
    return f"{ceiling.speed:.3g}" if ceiling else ""


def gflops(loop: HostLoop) -> str:
    return f"{loop.gflops:.3g} GFLOPS"


# --- HTML -------------------------------------------------------------------------------------


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
        "The fastest at {size}, {rung}, reaches {speed:.4g} {unit}, {percent:.1f} % of {baseline}.",
        size=size_name(size),
        rung=step.rung.name,
        speed=speed.rate,
        unit=ladder.problem.unit,
        percent=100 * speed.ratio,
        baseline=ladder.problem.baseline,
    )
    return sentences([accepted, fastest])
