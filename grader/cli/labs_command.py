"""``grade labs``: the labs that ship with the grader."""

from __future__ import annotations

from rich.console import Console

from grader.base import gpus
from grader.cli.chosen_lab import LAB, LabName, chosen_lab
from grader.cli.console import DONE, spoken, to_stdout
from grader.cli.options import OptionGroup, option
from grader.labs import DEFAULT_LAB, load_lab, shipped_labs
from grader.report import table
from grader.results import find_ladder
from ptxsim.text import Message, phrase, verbatim

_BESIDE_MB = 4096  # for the grader and its GPU worker, beside the submission's own processes


class LabsOptions(OptionGroup):
    """List the labs that ship with the grader. --lab takes their names as well as files."""

    lab: LabName = LAB
    job: str | None = option(
        "print what a job needs that grades --lab on a GPU of this type, such as 2080ti or "
        "any: MiB of memory, and the architecture to compile for",
        "TYPE",
    )


def run(chosen: LabsOptions, console: Console) -> int:
    if chosen.job is not None:
        arch = gpus.arch_of_type(chosen.job) or ("sm_80" if chosen.job == "any" else "-")
        memory = chosen_lab(chosen.lab).limits.memory_mb + _BESIDE_MB
        to_stdout(f"{memory} {arch}\n")
        return DONE
    language = spoken(console)
    header = (
        phrase("lab"),
        phrase("task"),
        phrase("hand in"),
        phrase("speed in"),
        phrase("lesson"),
    )
    labs, rows = shipped_labs(), []
    for name in sorted(labs, key=lambda name: labs[name] != DEFAULT_LAB):  # the default one first
        problem = load_lab(labs[name]).problem
        default = phrase("{lab} (default)", lab=name)
        shown = default if labs[name] == DEFAULT_LAB else verbatim(name)
        title = problem.title if isinstance(problem.title, Message) else verbatim(problem.title)
        beside = phrase("{unit}, beside {baseline}", unit=problem.unit.name)
        main, beside = verbatim(problem.interface.main), beside.given(baseline=problem.baseline)
        rows.append(map(language, (shown, title, main, beside, _lesson(name))))
    console.print(table(map(language, header), rows, words=range(5), whole=(0, 2, 3, 4)))
    return DONE


def _lesson(lab: str) -> Message:
    rungs = find_ladder(lab)
    lesson = sum(rung.lesson for rung in rungs)
    if not rungs:
        return verbatim("")
    return phrase("{lesson} of {all} rungs", lesson=lesson, all=len(rungs))
