"""Grade the submissions of a command line, one after the other."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from grader.cli import ahead
from grader.cli import console as progress
from grader.cli.bench import check_place, open_bench
from grader.cli.boards import known_ladders
from grader.cli.console import complain
from grader.cli.grade_command import GradeOptions
from grader.judge import GradingContext
from grader.labs import Lab, SubmissionError, student_of
from grader.results import store
from grader.run import GpuDevice
from grader.study import course_cards, grade_and_explain

_FOLLOWING = "model.explanation", "run.gpu.host_check", "cli.presenting", "report.environments"


def grade_each(chosen: GradeOptions, lab: Lab, console: Console, gpu: GpuDevice | None) -> int:
    """The exit status. gpu: one that stands by, for the first."""
    if not chosen.reveal:
        store.check_folder(chosen.out)
    course_cards()  # a wrong file is said now, not behind the grade
    ladders = known_ladders(chosen.out, console)
    bench = lab, chosen.device, chosen.sandbox, console
    context = open_bench(*bench, ladders=ladders, card=chosen.gpu)
    ahead.load(_FOLLOWING)
    first, *others = chosen.submissions
    status = _grade_one(first, context, chosen, console, gpu)
    return max([status, *(_grade_one(path, context, chosen, console) for path in others)])


def _grade_one(
    path: Path,
    context: GradingContext,
    chosen: GradeOptions,
    console: Console,
    gpu: GpuDevice | None = None,
) -> int:
    try:
        check_place(path, context.lab, None if chosen.reveal else chosen.out)
        with progress.stages(student_of(path), console) as told:
            graded = grade_and_explain(path, context, told, submitted=chosen.submitted, gpu=gpu)
    except SubmissionError as error:  # grade the other submissions anyway
        complain(error, console)
        return error.exit_status
    from grader.cli.presenting import present  # loaded already, beside the compiler

    return present(graded, path, chosen, console)
