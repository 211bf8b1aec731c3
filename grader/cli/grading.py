"""Grade the submissions that a command line names, one after the other: show and store each."""

from __future__ import annotations

import argparse
import textwrap
from pathlib import Path

from rich.console import Console, Group
from rich.text import Text

from grader.backends.gpu.device import GpuDevice
from grader.cli import exit_status, formats, progress
from grader.cli.bench import open_bench
from grader.cli.boards import known_ladders
from grader.cli.notices import complain, say
from grader.cli.report_command import write_page
from grader.cli.speaking import spoken
from grader.errors import GraderError, StoreError, SubmissionError
from grader.grading.pipeline import Bench, grade
from grader.labs.lab import Lab
from grader.model import Verdict, phrase
from grader.report import terminal
from grader.report.text import clean
from grader.results import store
from grader.results.sources import keep_sources
from grader.submission.folder import student_of


def grade_each(
    chosen: argparse.Namespace, lab: Lab, console: Console, gpu: GpuDevice | None
) -> int:
    """The exit status. gpu: one that stands by, for the first."""
    bench = open_bench(chosen, lab, console, ladders=known_ladders(chosen.out, console))
    first, *others = chosen.submissions
    status = _grade_one(first, bench, chosen, console, gpu)
    return max([status, *(_grade_one(path, bench, chosen, console) for path in others)])


def _grade_one(
    path: Path,
    bench: Bench,
    chosen: argparse.Namespace,
    console: Console,
    gpu: GpuDevice | None = None,
) -> int:
    try:
        with progress.stages(student_of(path), console) as told:
            graded = grade(path, bench, told, gpu=gpu)
    except SubmissionError as error:  # grade the other submissions anyway
        complain(error, console)
        return error.exit_status
    result = graded.result
    language = spoken(console)
    shown = [terminal.render(result, graded.sources, language)]
    if graded.printed:
        # Indented, so that no line looks like one of the grader's.
        words = textwrap.indent(clean(graded.printed), "  ", lambda _line: True)
        head = language(phrase("printed by the kernels:"))
        shown.append(Text(f"\n{head}\n{words}"))
    formats.show(chosen.format, Group(*shown), console)
    status = exit_status.of(result)
    try:
        # A page that tells hidden sizes must not lie where students' pages do.
        if (
            result.verdict is not Verdict.IE and not chosen.reveal
        ):  # the grader's failure must not replace a real result
            keep_sources(store.result_path(chosen.out, result), graded.contents.values())
            written = store.save(chosen.out, result)
            say(console, phrase("result: {file}", file=str(written)))
            if not chosen.no_report:
                write_page(written, result, graded.sources, console)
    except StoreError as error:
        complain(error, console)
        status = error.exit_status
    console.print()
    if chosen.format:
        try:
            formats.write(chosen.format, result, path, language)
        except GraderError as error:
            complain(error, console)
            status = error.exit_status
    return status
