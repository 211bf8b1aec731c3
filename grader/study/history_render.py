"""History → terminal table, HTML page, Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from grader.model import Verdict, size_text
from grader.report.page import page
from grader.report.text import clean
from grader.report.why import advice_sentence
from grader.study.history import Followed, History, Version, size_words
from grader.study.pictures import climb

BOUNDS = "Nothing was timed: speeds are the most that a version's counts allow on {gpu}, at {size}."


def headings(history: History) -> tuple[str, ...]:
    unit = history.problem.unit
    measured = () if history.bounds else (f"of {history.problem.baseline}", "points")
    speed = f"≤ {unit}" if history.bounds else unit
    return (
        *("version", "graded", "verdict", "lines", "tile", "registers", "shared bytes", "spilled"),
        *(speed, *measured),
    )


def cells(history: History, version: Version) -> tuple[str, ...]:
    kernel, speed = version.kernel, version.speed
    measured: tuple[str, ...] = ()
    if not history.bounds:
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
        kernel.tile if kernel else "",
        str(kernel.registers) if kernel else "",
        str(kernel.shared_bytes) if kernel else "",
        str(kernel.spill_bytes) if kernel else "",
        speed_words(history, version),
        *measured,
    )


def speed_words(history: History, version: Version) -> str:
    """With its size, where that is not the history's."""
    speed = version.speed
    if speed is None:
        return ""
    other = "" if speed.size == history.size else f" at {size_text(speed.size)}"
    return f"{speed.value:.4g}{other}"


def notes(version: Version) -> Iterator[str]:
    """What changed, and which advice no longer applies."""
    if version.diff is not None:
        files = ", ".join(version.diff.files) or "no file"
        about = "" if version.diff.exact else ", counted regardless of their order"
        lines = f"+{version.diff.added} −{version.diff.removed} lines{about}"
        yield f"{lines} ({files})"
    elif version.number > 1:
        yield "what changed is not known: one of the two sources was not kept"
    yield from version.changed
    if version.followed:
        yield f"advice followed: {', '.join(map(_followed_words, version.followed))}"
    if version.became is not None:
        yield f"{version.became:.3g} times as fast as the accepted version before"


def _followed_words(followed: Followed) -> str:
    name = followed.idea.replace("_", " ")
    if followed.expected is None:
        return name
    return f"{name} (the model said {followed.expected:.3g} times as fast)"


def remarks(history: History) -> Iterator[str]:
    """What a reader must know of the whole."""
    if history.bounds and history.size:
        yield BOUNDS.format(gpu=history.gpu, size=size_words(history))
    for other in history.others:
        yield f"There are also results of {other}: choose with --lab, --device and --gpu."


def title(history: History) -> str:
    where = "simulator" if history.bounds else history.gpu or "GPU"
    return f"{history.student} · {history.lab.id} · {where}"


# --- terminal ---------------------------------------------------------------------------------


def terminal(history: History) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for i, heading in enumerate(headings(history)):
        table.add_column(heading, justify="left" if i in _WORDS else "right")
    for version in history.versions:
        style = "green" if version.verdict is Verdict.AC else "bold red"
        row: list[str | Text] = [*cells(history, version)]
        row[2] = Text(version.verdict.value, style=style)
        table.add_row(*row)
    parts: list[RenderableType] = [Text(clean(title(history)), style="bold"), "", table, ""]
    for version in history.versions:
        several = "; ".join(notes(version))
        if several:
            parts.append(Text(f"{version.number}: {clean(several)}"))
    for advice in history.versions[-1].advice:
        words = clean(advice_sentence(advice))
        parts.append(Text.assemble(("next: ", "bold cyan"), words))
    parts += [Text(clean(each), style="dim") for each in remarks(history)]
    return Group(*parts)


_WORDS = (1, 2, 4)  # columns that hold words: graded, verdict, tile


# --- Markdown ---------------------------------------------------------------------------------


def markdown(history: History, picture: str | None = None) -> str:
    """picture: the name of its file, to be shown."""
    lines = [f"## {_plain(title(history))}", ""]
    if picture:
        lines += [f"![climb]({picture})", ""]
    lines.append("| " + " | ".join(map(_plain, headings(history))) + " | what changed |")
    right = ["---" if i in _WORDS else "---:" for i, _ in enumerate(headings(history))]
    lines.append("| " + " | ".join([*right, "---"]) + " |")
    for version in history.versions:
        row = [*cells(history, version), "; ".join(notes(version))]
        lines.append("| " + " | ".join(map(_plain, row)) + " |")
    lines += ["", *(f"{_plain(each)}\n" for each in remarks(history))]
    return "\n".join(lines).rstrip() + "\n"


def _plain(words: str) -> str:
    """A student's text cannot end a cell, nor be markup."""
    escaped = "".join(f"\\{char}" if char in "\\|`*_[]<>#" else char for char in clean(words))
    return " ".join(escaped.split())


# --- HTML -------------------------------------------------------------------------------------


def html(history: History) -> str:
    """A self-contained page that works without scripts."""
    return page(
        "history.html.j2",
        title=title(history),
        history=history,
        climb=climb(history),
        headings=headings(history),
        words=_WORDS,
        cells=lambda version: cells(history, version),
        notes=lambda version: list(notes(version)),
        advice_sentence=advice_sentence,
        remarks=list(remarks(history)),
    )
