"""Ladder → terminal table, HTML page. Pure."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from grader.ladder.document import HostLoop, Ladder, Speed, Step
from grader.ladder.pictures import climb, legend, share, size_name, speeds
from grader.model import Verdict
from grader.report.measurement import peak_name
from grader.report.page import page
from grader.report.text import clean

ONE_KERNEL = "● one kernel per call at every size that was graded, as rules.kernels: one asks"
BOUND = "≤: a bound, not a measurement: the speed that the rung's counts allow at most"
UNTIMED = "Only a GPU can be timed: the simulator says which rungs are right."


def device_name(ladder: Ladder) -> str:
    return ladder.gpu.name if ladder.gpu else "simulator on the CPU"


def terminal(ladder: Ladder) -> RenderableType:
    """The CPU, then the table of all rungs and the baseline, then notes on some rungs."""
    parts: list[RenderableType] = [
        Text(f"The reference ladder on {clean(device_name(ladder))}", style="bold")
    ]
    if ladder.host:
        loops = ", ".join(f"{clean(loop.name)} {gflops(loop)}" for loop in ladder.host.loops)
        parts.append(Text(f"CPU, three loops at {ladder.host.n} on one core: {loops}"))
    parts += ["", _table(ladder)]
    unit, baseline = ladder.problem.unit, ladder.problem.baseline
    if ladder.sizes:
        parts.append(Text(f"{unit} of the best run; median ratio to {baseline}", style="dim"))
    else:
        parts.append(Text(UNTIMED, style="dim"))
    if any(step.one_kernel for step in ladder.steps):
        parts.append(Text(ONE_KERNEL, style="dim"))
    if ladder.untimed:
        parts.append(Text(f"{BOUND}, at {_bounded(ladder)}", style="dim"))
    for step in ladder.steps:
        if step.message:
            why = ", a trap" if step.rung.trap else ""
            parts.append(Text(f"{clean(step.rung.name)}{why}: {clean(step.message)}"))
    return Group(*parts)


def _bounded(ladder: Ladder) -> str:
    """The sizes that the ceilings are for."""
    found = {size_name(each.size): None for step in ladder.steps for each in step.ceilings}
    return ", ".join(found)


def _table(ladder: Ladder) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("rung", no_wrap=True)
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


def html(ladder: Ladder) -> str:
    """A self-contained page that works without scripts."""
    largest = ladder.sizes[-1] if ladder.sizes else None
    peak = ladder.problem.peak(ladder.gpu) if ladder.gpu else None
    return page(
        "ladder.html.j2",
        title=f"The reference ladder on {device_name(ladder)}",
        ladder=ladder,
        device=device_name(ladder),
        created=ladder.created[:16].replace("T", " ") + " UTC" if ladder.created else "",
        untimed=UNTIMED,
        one_kernel=ONE_KERNEL,
        bound=bound,
        bound_words=f"{BOUND}, at {_bounded(ladder)}",
        size_name=size_name,
        summary=_summary(ladder),
        climb=climb(ladder) if largest else None,
        share=share(ladder),
        bars=speeds(ladder, largest, peak) if largest else None,
        legend=legend(ladder),
        largest=size_name(largest) if largest else "",
        peak=peak,
        peak_name=peak_name(ladder.problem),
        gflops=gflops,
    )


def _summary(ladder: Ladder) -> str:
    graded = [step for step in ladder.steps if step.verdict]
    right = sum(step.verdict is Verdict.AC for step in graded)
    text = f"{right} of {len(graded)} rungs are accepted."
    if not ladder.sizes:
        return f"{text} {UNTIMED}"
    size = ladder.sizes[-1]
    timed = [(speed, step) for step in ladder.steps if (speed := step.at(size))]
    if not timed:
        return text
    speed, step = max(timed, key=lambda pair: pair[0].rate)
    return (
        f"{text} The fastest at {size_name(size)}, {step.rung.name}, reaches "
        f"{speed.rate:.4g} {ladder.problem.unit}, "
        f"{100 * speed.ratio:.1f} % of {ladder.problem.baseline}."
    )
