"""``grade rung NAME``: a kernel of the reference ladder, whose first lines explain it; without a
name, or with a lab's, the rungs that are its lesson."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Console

from grader.base import Language, UsageError
from grader.cli.chosen_lab import LAB, LabName, chosen_lab
from grader.cli.comments import translated
from grader.cli.console import DONE, say, spoken, to_stdout
from grader.cli.options import OptionGroup, argument
from grader.cli.parser import broken
from grader.labs import DEFAULT_LAB
from grader.report import not_shown, table
from grader.results import Rung, find_ladder, find_rung, find_rungs
from ptxsim.text import NOTHING, Message, counted, phrase

_WIDTH = 96
# Its title, what changed, and why.
_HEADER = re.compile(
    r"\A// Rung .*?^(?=// (?!Changed|Why)[A-Z][a-z]+:|(?!//))", re.DOTALL | re.MULTILINE
)


class RungOptions(OptionGroup):
    """Print a kernel of the reference ladder. Its first lines say what changed, and why. Without a
    name, or with a lab's, list the rungs that are the lesson."""

    rung: str | None = argument(
        "such as 06_tile32 or 6; with its lab: hgemm/04_swizzled; or a lab: hgemm", "RUNG"
    )
    lab: LabName = LAB


def run(chosen: RungOptions, console: Console) -> int:
    if refused := not_shown("rungs", chosen_lab(chosen.lab).withheld()):
        raise UsageError(refused)
    named = chosen.rung or DEFAULT_LAB.stem
    if rungs := find_ladder(named):
        _list(rungs, named, console)
        return DONE
    files = find_rung(named)
    rung = files[0].parent
    own = next(each for each in find_rungs(rung.parent) if each.name == rung.name)
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        to_stdout(_translated(text, own, spoken(console)))
    after = (each for each in find_rungs(rung.parent) if each.lesson and each.name > rung.name)
    if following := next(after, None):
        name = f"{rung.parent.name}/{following.name}"
        say(console, phrase("the lesson's next rung: grade rung {name}", name=name))
    return DONE


def _translated(text: str, rung: Rung, language: Language) -> str:
    """The kernel with the beginning of its header in this language, if the catalogue has that."""
    head = phrase("Rung {number}: {title}", number=rung.number)
    if rung.trap:
        head = phrase("Rung {number} (a trap): {title}", number=rung.number)
    parts = [
        head.given(title=Message(text=rung.title)),
        NOTHING,
        phrase("Changed: {text}", text=Message(text=rung.changed)),
        phrase("Why: {text}", text=Message(text=rung.why)),
    ]
    if language(parts[-1]) == str(parts[-1]):
        return translated(text, language)
    lines = [line for part in parts for line in broken(language(part), _WIDTH)]
    said = "".join(f"// {line}".rstrip() + "\n" for line in lines)
    return translated(_HEADER.sub(lambda _: said, text, count=1), language)


def _list(rungs: Sequence[Rung], lab: str, console: Console) -> None:
    language = spoken(console)
    lesson = [rung for rung in rungs if rung.lesson]
    rows = [(rung.name, language(Message(text=rung.title))) for rung in lesson]
    header = (language(phrase("rung")), language(phrase("idea")))
    console.print(table(header, rows, words=range(2)))
    if others := len(rungs) - len(lesson):
        more = counted(
            "{count} more rung is a detour or research: reference/{lab}/README.md",
            "{count} more rungs are detours and research: reference/{lab}/README.md",
            others,
            lab=lab,
        )
        say(console, more)
