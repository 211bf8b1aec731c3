"""History → terminal table, HTML page, Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from grader.language import ENGLISH, Language
from grader.model import Message, Verdict, clauses, listed, phrase, size_text, verbatim
from grader.report.page import page
from grader.report.text import clean
from grader.report.why import advice_sentence
from grader.study.history import History, size_words
from grader.study.markdown import markdown_table, plain
from grader.study.pictures import climb
from grader.study.versions import Followed, Version

_WORDS = (1, 2, 4)  # columns that hold words: graded, verdict, tile


def headings(history: History) -> tuple[Message, ...]:
    unit = history.problem.unit
    common = (
        phrase("version"),
        phrase("graded"),
        phrase("verdict"),
        phrase("lines"),
        phrase("tile"),
        phrase("registers"),
        phrase("shared bytes"),
        phrase("spilled"),
    )
    if history.bounds:
        return (*common, phrase("{unit} at most", unit=unit))
    baseline = phrase("of {baseline}", baseline=history.problem.baseline)
    return (*common, verbatim(unit), baseline, phrase("points"))


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
        _speed(history, version),
        *measured,
    )


def _speed(history: History, version: Version) -> str:
    """With its size, where that is not the history's."""
    speed = version.speed
    if speed is None:
        return ""
    other = "" if speed.size == history.size else f" ({size_text(speed.size)})"
    return f"{speed.value:.4g}{other}"


def notes(version: Version) -> Iterator[Message]:
    """What changed, and which advice no longer applies."""
    diff = version.diff
    if diff is not None and not diff.files:
        yield phrase("the same source")
    elif diff is not None:
        words = (
            phrase("+{added} −{removed} lines ({files})")
            if diff.exact
            else phrase("+{added} −{removed} lines, counted regardless of their order ({files})")
        )
        yield words.given(added=diff.added, removed=diff.removed, files=", ".join(diff.files))
    elif version.number > 1:
        yield phrase("what changed is not known: one of the two sources was not kept")
    yield from version.changed
    if version.followed:
        yield phrase("advice followed: {ideas}", ideas=listed(map(_followed, version.followed)))
    if version.became is not None:
        times = f"{version.became:.3g}"
        yield (
            phrase("as fast as the accepted version before")
            if times == "1"
            else phrase("{times} times as fast as the accepted version before", times=times)
        )


def _followed(followed: Followed) -> Message:
    name = followed.idea.replace("_", " ")
    if followed.expected is None:
        return verbatim(name)
    return phrase(
        "{idea} (the model said {times:.3g} times as fast)", idea=name, times=followed.expected
    )


def remarks(history: History) -> Iterator[Message]:
    """What a reader must know of the whole."""
    if history.bounds and history.size:
        yield phrase(
            "Nothing was timed: speeds are the most that a version's counts allow on {gpu}, at "
            "{size}.",
            gpu=history.gpu or "",
            size=size_words(history),
        )
    for other in history.others:
        yield phrase(
            "There are also results of {board}: choose with --lab, --device and --gpu.", board=other
        )


def title(history: History) -> str:
    where = history.gpu if history.device == "gpu" and history.gpu else history.device.upper()
    return f"{history.student} · {history.lab.id} · {where}"


def terminal(history: History, language: Language = ENGLISH) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for i, heading in enumerate(headings(history)):
        table.add_column(language(heading), justify="left" if i in _WORDS else "right")
    for version in history.versions:
        style = "green" if version.verdict is Verdict.AC else "bold red"
        row: list[str | Text] = [*cells(history, version)]
        row[2] = Text(version.verdict.value, style=style)
        table.add_row(*row)
    parts: list[RenderableType] = [Text(clean(title(history)), style="bold"), "", table, ""]
    for version in history.versions:
        several = clauses(notes(version))
        if several:
            parts.append(Text(f"{version.number}: {clean(language(several))}"))
    for advice in history.versions[-1].advice:
        words = clean(advice_sentence(advice, language))
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
    lines += markdown_table(header, rows, {*_WORDS, len(header) - 1})
    lines += ["", *(f"{plain(language(each))}\n" for each in remarks(history))]
    return "\n".join(lines).rstrip() + "\n"


def html(history: History, language: Language = ENGLISH) -> str:
    """A self-contained page that works without scripts."""
    return page(
        "history.html.j2",
        language,
        title=title(history),
        history=history,
        climb=climb(history, language),
        headings=headings(history),
        words=_WORDS,
        cells=lambda version: cells(history, version),
        notes=lambda version: list(notes(version)),
        advice_sentence=lambda advice: advice_sentence(advice, language),
        remarks=list(remarks(history)),
    )
