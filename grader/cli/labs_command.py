"""``grade labs``: the labs that ship with the grader."""

from __future__ import annotations

from rich.console import Console

from grader.base import gpus
from grader.cli.chosen_lab import LAB, LabName, chosen_lab
from grader.cli.console import DONE, spoken, to_stdout
from grader.cli.options import OptionGroup, option
from grader.labs import DEFAULT_LAB, Lab, load_lab, shipped_labs
from grader.report import size_name, table
from grader.results import find_ladder
from ptxsim.text import Message, clauses, phrase, verbatim

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
    language, labs, rows = spoken(console), shipped_labs(), []
    for name in sorted(labs, key=lambda name: labs[name] != DEFAULT_LAB):  # the default one first
        default = phrase("{lab} (default)", lab=name)
        shown = default if labs[name] == DEFAULT_LAB else verbatim(name)
        rows.append(map(language, (shown, _asked(load_lab(labs[name]), name))))
    console.print(table(map(language, (phrase("lab"), phrase("task"))), rows, words=(0, 1)))
    return DONE


def _asked(lab: Lab, name: str) -> Message:
    """Say in what a lab differs from others."""
    problem, scoring, rungs = lab.problem, lab.scoring, find_ladder(name)
    title = problem.title if isinstance(problem.title, Message) else verbatim(problem.title)
    main = verbatim(problem.interface.main)
    if lab.program:
        return clauses([title, main, phrase("a whole program, judged by its output")])
    sizes = sorted((case.size for case in lab.performance), key=problem.amount)
    names = [size_name(size.dims) for size in sizes]
    names[1:-1] = ["…"] if names[2:] else []
    timed = phrase("timed sizes: {count} ({names})", count=len(sizes), names=", ".join(names))
    speed = phrase("{unit}, beside {baseline}", unit=problem.unit.name, baseline=problem.baseline)
    points = phrase("up to {most} points", most=f"{scoring.cap:g}")
    if scoring.pieces:
        points = phrase("up to {most} points, by a curve", most=f"{scoring.pieces[-1].points:g}")
    said = [title, main, timed, speed, points]
    if rungs:
        lesson = sum(rung.lesson for rung in rungs)
        said.append(phrase("lesson: {lesson} of {all} rungs", lesson=lesson, all=len(rungs)))
    return clauses(said)
