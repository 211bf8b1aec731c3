"""``grade class``: choose submissions and devices, grade them, show the board.

``grade ladder`` grades its rungs with the same task list and progress bar.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from grader import course, labs
from grader.base import Language, Rejected, UsageError, Verdict, one_line
from grader.cli.bench import ready
from grader.cli.boards import add_up, known_ladders, reference_names
from grader.cli.chosen_lab import known_hidden, lab_file
from grader.cli.class_command import ClassOptions
from grader.cli.console import (
    DONE,
    FAULT,
    WRONG_USAGE,
    answer,
    aside,
    say,
    skipped,
    speak_as,
    spoken,
    warn,
)
from grader.cli.devices import choose_device, choose_gpus
from grader.course import board_rendering as render
from grader.labs import Entrant, Lab, SubmissionError, instead_of, load_lab, load_listed
from grader.report import clean, verdict_text
from grader.results import ResultEntry, StoreError, entry_or_complaint, read_entries, store
from grader.run import VisibleGpu
from grader.study import Lane, Setup, Task, TaskReport, course_cards, grade_all, lanes
from ptxsim.text import NOTHING, Message, listed, phrase, verbatim


def grade_class(chosen: ClassOptions, console: Console) -> int:
    batch, system = chosen.batch, chosen.system
    term = labs.load_term(chosen.course) if chosen.course else None
    if chosen.folder is None:
        if term is None:
            none = phrase("name a folder of submissions, or a term to add up: --course")
            raise UsageError(none)
        return add_up(*term, batch.out, batch.device, console)
    file, vouched = lab_file(chosen.lab)
    lab = load_lab(file, vouched=vouched)
    speak_as(lab, console)
    roll, complaints = course.find_submissions(chosen.folder, lab.problem.interface.main)
    skipped(complaints, console)
    entrants = chosen_entrants(roll, batch.only)
    if system.manifest:
        students = course.read_manifest(system.manifest)
        index, count = course.read_part(system.part)
        names = set(students[index::count])  # parts differ by one at most
        entrants = [entrant for entrant in entrants if entrant.student in names]
    gpus = _gpus(chosen, console)
    setup = Setup(
        lab=file,
        vouched=vouched,
        sandbox=batch.sandbox,
        gpu_arch=gpus[0].arch if gpus else _architecture(chosen, console),
        out=batch.out,
        report=not batch.no_report,
        ladders=known_ladders(batch.out, console),
        language=spoken(console).code,
    )
    context = setup.context()  # reports a fault of the lab or the machine, once
    lab = context.lab
    known_hidden(lab)
    if term and lab.id not in (ids := [each.id for each in term[1]]):
        raise UsageError(f"--lab: {lab.id} is no lab of {chosen.course}: {', '.join(ids)}")
    if not system.plan and not system.compile:
        store.check_folder(batch.out)
        course_cards()  # a wrong file is said now, not for each submission
        ready(context, batch.sandbox)
    tasks = left_over(list(map(Task.grading, entrants)), lab, setup, console, force=batch.force)
    if system.plan:
        course.write_manifest(system.plan, [task.student for task in tasks])
        print(len(tasks))
        return DONE
    if system.compile:  # into the build cache, for the GPUs that will grade
        tasks = [msgspec.structs.replace(task, kind="compile") for task in tasks]
        grade_tasks(tasks, lanes("cpu", batch.jobs), setup, console)
        return DONE
    reports = grade_tasks(tasks, lanes(setup.device, batch.jobs, gpus), setup, console)
    if term:
        add_up(*term, batch.out, batch.device, console)
    elif system.manifest is None:
        _show_board(lab, setup, console)
    _summarise(reports, console)
    if any(report.verdict is Verdict.IE for report in reports):
        return FAULT
    return WRONG_USAGE if complaints and system.manifest is None else DONE


def _architecture(chosen: ClassOptions, console: Console) -> str | None:
    """The architecture that kernels run on. Planning and compiling need no GPU."""
    if chosen.system.compile or (chosen.system.plan and chosen.batch.device == "gpu"):
        return chosen.system.compile or "sm_80"
    return choose_device(chosen.batch.device, console)


def _gpus(chosen: ClassOptions, console: Console) -> tuple[VisibleGpu, ...]:
    """Return the GPUs that --gpus names; () without it."""
    if chosen.gpus is None:
        return ()
    if chosen.batch.device == "cpu":
        no = phrase("--gpus: with --device cpu there is nothing to measure on; leave one out")
        raise UsageError(no)
    if chosen.system.plan or chosen.system.compile:
        no = phrase("--gpus: --plan and --compile use no GPU; leave it out")
        raise UsageError(no)
    return choose_gpus(chosen.gpus, console)


def _show_board(lab: Lab, setup: Setup, console: Console) -> None:
    entries, complaints = read_entries(setup.out)
    skipped(complaints, console)
    ours = [entry for entry in entries if entry.lab.id == lab.id]
    if ours:
        boards = course.make_boards(
            ours,
            lab.time.attempts if lab.time else "best",
            rules=lab.time,
            references=reference_names(),
            ladders=setup.ladders,
        )
        console.print("", render.terminal(boards, None, spoken(console)))
        warn(course.undated(boards), console)


def _summarise(reports: Sequence[TaskReport], console: Console) -> None:
    counts = Counter(report.verdict for report in reports)
    told = listed(verbatim(f"{counts[each]} {each.value}") for each in Verdict if counts[each])
    now = phrase("graded now: {number} ({verdicts})", number=len(reports), verdicts=told)
    answer(console, now if told else phrase("graded now: {number}", number=len(reports)))
    faults = [report.task.student for report in reports if report.verdict is Verdict.IE]
    if faults:
        words = phrase(
            "the grader failed for {students}: no result is stored; the same command tries again",
            students=", ".join(map(one_line, faults)),
        )
        aside(console).print(Text(spoken(console)(words), style="bold yellow"), soft_wrap=True)


# --- many tasks --------------------------------------------------------------------------------


def chosen_entrants(entrants: Sequence[Entrant], patterns: Sequence[str]) -> list[Entrant]:
    """The entrants that match. Raises UsageError if one of the patterns matches nobody."""
    if not patterns:
        return list(entrants)
    for pattern in patterns:
        if not any(fnmatchcase(entrant.student, pattern) for entrant in entrants):
            remedy = instead_of(pattern, [entrant.student for entrant in entrants])
            none = phrase("--only {pattern}: no submission of this name; {remedy}", remedy=remedy)
            raise UsageError(none.given(pattern=pattern))
    return [e for e in entrants if any(fnmatchcase(e.student, pattern) for pattern in patterns)]


def left_over(
    tasks: Sequence[Task], lab: Lab, setup: Setup, console: Console, *, force: bool
) -> list[Task]:
    """The tasks that have no result yet; all of them with ``force``."""
    waiting = [task for task in tasks if force or not _done(task, lab, setup, console)]
    if len(waiting) < len(tasks):
        done = phrase("{done} of {all} are already graded", done=len(tasks) - len(waiting))
        say(console, done.given(all=len(tasks)))
    return waiting


def _done(task: Task, lab: Lab, setup: Setup, console: Console) -> bool:
    """Whether there is a result of exactly this source by exactly this lab file. It is told of
    another time of hand-in. Where no list has the times, what was handed in again after another
    source is graded again: the newest result is of what lies there now."""
    try:
        sha256 = load_listed(task.source, task.student, lab.problem.interface.main).sha256
    except (Rejected, SubmissionError, OSError):
        return False  # rejecting it again is quicker than reading the old result
    path = store.document_path(setup.out, lab.id, task.student, sha256, setup.device)
    if not path.exists():
        return False
    try:
        entry = store.load_as(path, ResultEntry)
    except StoreError as error:
        aside = path.with_name(f"{path.name}.damaged")
        again = phrase("{error}; kept as {name}, graded again", error=error.message)
        say(console, again.given(name=aside.name))
        path.rename(aside)
        return False
    # The document's name has the first digits only: two files can be made that share them.
    if entry.lab.sha256 != lab.sha256 or entry.submission.sha256 != sha256:
        return False
    if task.submitted:
        store.add_hand_in(path, task.submitted)
        return True
    own = _written(path, entry)
    beside = (
        (each, entry_or_complaint(each)) for each in path.parent.glob(f"*-{setup.device}.json")
    )
    return all(isinstance(other, Message) or _written(each, other) <= own for each, other in beside)


def _written(path: Path, entry: ResultEntry) -> tuple[str, int]:
    """When a result was made; within one second, when its file was written."""
    return entry.created, path.stat().st_mtime_ns


def grade_tasks(
    tasks: Sequence[Task],
    working: Sequence[Lane],
    setup: Setup,
    console: Console,
) -> list[TaskReport]:
    """Grade them all and print a line for each when it is done."""
    reports: list[TaskReport] = []
    started, language = time.monotonic(), spoken(console)
    bar = Progress(
        TextColumn(language(phrase("grading"))),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
        console=aside(console),
        disable=not aside(console).is_terminal,
        transient=True,
    )
    with bar:
        shown = bar.add_task("", total=len(tasks), left="")
        for report in grade_all(tasks, working, setup):
            reports.append(report)
            rate = (time.monotonic() - started) / len(reports)
            left = _left(rate * (len(tasks) - len(reports)))
            bar.update(shown, completed=len(reports), left=language(left))
            line = _line(report, len(reports), len(tasks), left, language)
            bar.console.print(line, soft_wrap=True)
    return reports


def _line(report: TaskReport, done: int, total: int, left: Message, language: Language) -> Text:
    where = phrase("{seconds:.1f} s on {place}", place=report.place)
    took = where if report.place else phrase("{seconds:.1f} s")
    took = took.given(seconds=report.seconds)
    took = phrase("{took}, {left}", took=took, left=left) if left else took
    line = Text.assemble(
        (f"{done:>{len(str(total))}}/{total}  ", "dim"),
        (one_line(report.task.student), "bold"),
        ": ",
        verdict_text(report.verdict, language) if report.verdict else language(phrase("compiled")),
        (f"  {language(took)}", "dim"),
    )
    return line.append(f"\n  {clean(language(report.message))}") if report.message else line


def _left(seconds: float) -> Message:
    if seconds < 1:
        return NOTHING
    if seconds < 90:
        return phrase("about {seconds:.0f} s left", seconds=seconds)
    return phrase("about {minutes:.0f} min left", minutes=seconds / 60)
