"""``grade labs``: the labs that ship with the grader."""

from __future__ import annotations

import itertools

import msgspec
from rich.console import Console, RenderableType
from rich.text import Text

from grader.base import gpus
from grader.cli.chosen_lab import LAB, LabName, chosen_lab
from grader.cli.console import DONE, spoken, to_stdout
from grader.cli.options import OptionGroup, flag, option
from grader.labs import DEFAULT_LAB, TOPICS, Lab, load_lab, shipped_labs
from grader.report import size_name, table
from grader.results import find_ladder
from ptxsim.plan import Record
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
    json: bool = flag("print the list on stdout, as one line of JSON")


class ListedLab(Record):
    lab: str  # its name for --lab
    topic: str | None
    task: str  # in the chosen language


def run(chosen: LabsOptions, console: Console) -> int:
    if chosen.job is not None:
        arch = gpus.arch_of_type(chosen.job) or ("sm_80" if chosen.job == "any" else "-")
        memory = chosen_lab(chosen.lab).limits.memory_mb + _BESIDE_MB
        to_stdout(f"{memory} {arch}\n")
        return DONE
    language, labs = spoken(console), {name: load_lab(at) for name, at in shipped_labs().items()}
    listed = [
        ListedLab(lab=name, topic=topic, task=language(_asked(lab, name)))
        for topic in (*TOPICS, None)
        for name, lab in sorted(labs.items(), key=lambda each: each[0] != DEFAULT_LAB.stem)
        if lab.topic == topic
    ]
    if chosen.json:
        to_stdout(msgspec.json.encode(listed).decode() + "\n")
        return DONE
    rows: list[tuple[RenderableType, str]] = []
    for topic, group in itertools.groupby(listed, key=lambda each: each.topic):
        rows.append((Text(language(TOPICS[topic] if topic else phrase("other")), "bold"), ""))
        for each in group:
            default = phrase("{lab} (default)", lab=each.lab)
            shown = default if each.lab == DEFAULT_LAB.stem else verbatim(each.lab)
            rows.append((f"  {language(shown)}", each.task))
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
        points = phrase("up to {most} points, by a curve")
        if scoring.measure == "roofline":
            points = phrase("up to {most} points, by a curve over the roofline")
        points = points.given(most=f"{scoring.pieces[-1].points:g}")
    said = [title, main, timed, speed, points]
    if rungs:
        lesson = sum(rung.lesson for rung in rungs)
        said.append(phrase("lesson: {lesson} of {all} rungs", lesson=lesson, all=len(rungs)))
    return clauses(said)
