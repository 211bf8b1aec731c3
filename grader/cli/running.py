"""What the commands that grade many submissions share: the list of tasks, the progress bar."""

from __future__ import annotations

import time
from collections.abc import Sequence
from fnmatch import fnmatchcase

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from grader.cli.notices import say
from grader.course.class_run.class_worker import Lane, Report, Setup, Task
from grader.course.class_run.pool import grade_all
from grader.course.class_run.roll import Entrant
from grader.errors import Rejected, StoreError, SubmissionError, UsageError, one_line
from grader.labs.lab import Lab
from grader.model import phrase
from grader.report.terminal import verdict_text
from grader.report.text import clean
from grader.results import store
from grader.results.entries import Entry
from grader.submission.folder import load_listed


def chosen(entrants: Sequence[Entrant], patterns: Sequence[str] | None) -> list[Entrant]:
    """The entrants that match. Raises UsageError if one of the patterns matches nobody."""
    for pattern in patterns or ():
        if not any(fnmatchcase(entrant.student, pattern) for entrant in entrants):
            raise UsageError(
                phrase("--only {pattern}: no submission of this name", pattern=pattern)
            )
    return [
        entrant
        for entrant in entrants
        if patterns is None or any(fnmatchcase(entrant.student, pattern) for pattern in patterns)
    ]


def left_over(
    tasks: Sequence[Task], lab: Lab, setup: Setup, console: Console, *, force: bool
) -> list[Task]:
    """The tasks that have no result yet; all of them with ``force``."""
    waiting = [task for task in tasks if force or not _done(task, lab, setup, console)]
    if len(waiting) < len(tasks):
        say(console, f"{len(tasks) - len(waiting)} of {len(tasks)} are already graded")
    return waiting


def _done(task: Task, lab: Lab, setup: Setup, console: Console) -> bool:
    """Whether there is a result of exactly this source by exactly this lab file."""
    try:
        sha256 = load_listed(task.source, task.student, lab.problem.interface.main).sha256
    except (Rejected, SubmissionError, OSError):
        return False  # rejecting it again is quicker than reading the old result
    path = store.document_path(setup.out, lab.id, task.student, sha256, setup.device)
    if not path.exists():
        return False
    try:
        entry = store.load_as(path, Entry)
    except StoreError as error:
        aside = path.with_name(f"{path.name}.damaged")
        say(console, f"{error}; kept as {aside.name}, graded again")
        path.rename(aside)
        return False
    # The document's name has the first digits only: two files can be made that share them.
    return entry.lab.sha256 == lab.sha256 and entry.submission.sha256 == sha256


def grade_tasks(
    tasks: Sequence[Task], lanes: Sequence[Lane], setup: Setup, console: Console
) -> list[Report]:
    """Grade them all and print a line for each when it is done."""
    reports: list[Report] = []
    started = time.monotonic()
    bar = Progress(
        TextColumn("grading"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )
    with bar:
        shown = bar.add_task("", total=len(tasks), left="")
        for report in grade_all(tasks, lanes, setup):
            reports.append(report)
            rate = (time.monotonic() - started) / len(reports)
            left = _left(rate * (len(tasks) - len(reports)))
            bar.update(shown, completed=len(reports), left=left)
            bar.console.print(_line(report, len(reports), len(tasks), left), soft_wrap=True)
    return reports


def _line(report: Report, done: int, total: int, left: str) -> Text:
    line = Text.assemble(
        (f"{done:>{len(str(total))}}/{total}  ", "dim"),
        (one_line(report.task.student), "bold"),
        ": ",
        verdict_text(report.verdict) if report.verdict else "compiled",
        (f"  {report.seconds:.1f} s", "dim"),
        (f" on {report.place}" if report.place else "", "dim"),
        (f", {left}" if left else "", "dim"),
    )
    if report.message:
        line.append(f"\n  {clean(report.message)}")
    return line


def _left(seconds: float) -> str:
    if seconds < 1:
        return ""
    if seconds < 90:
        return f"about {seconds:.0f} s left"
    return f"about {seconds / 60:.0f} min left"
