"""``grade rung NAME``: a kernel of the reference ladder, whose first lines explain it; without a
name, or with a lab's, the rungs that are its lesson."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from grader.base import UsageError
from grader.cli.chosen_lab import LAB, LabName, chosen_lab
from grader.cli.comments import translated
from grader.cli.console import DONE, say, spoken, to_stdout
from grader.cli.options import OptionGroup, argument
from grader.labs import DEFAULT_LAB
from grader.report import not_shown, table
from grader.results import Rung, find_ladder, find_rung, find_rungs
from ptxsim.text import counted, phrase


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
    for file in files:
        to_stdout(translated(file.read_text(encoding="utf-8", errors="replace"), spoken(console)))
    rung = files[0].parent
    after = (each for each in find_rungs(rung.parent) if each.lesson and each.name > rung.name)
    if following := next(after, None):
        name = f"{rung.parent.name}/{following.name}"
        say(console, phrase("the lesson's next rung: grade rung {name}", name=name))
    return DONE


def _list(rungs: Sequence[Rung], lab: str, console: Console) -> None:
    language = spoken(console)
    lesson = [rung for rung in rungs if rung.lesson]
    rows = [(rung.name, translated(rung.title, language)) for rung in lesson]
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
