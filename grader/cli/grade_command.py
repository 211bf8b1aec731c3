"""``grade SUBMISSION…``: grade, show and store; the default command."""

from __future__ import annotations

import argparse
import sys
import textwrap
from pathlib import Path

from rich.console import Console
from rich.text import Text

import grader
from grader.backends.gpu.device import GpuDevice
from grader.cli import exit_status, options, progress
from grader.cli.boards import known_ladders
from grader.cli.device import choose_device, standby
from grader.cli.notices import complain, say
from grader.cli.report_command import write_page
from grader.errors import StoreError, SubmissionError
from grader.grading.pipeline import Bench, grade
from grader.labs.lab import load_lab
from grader.model import Verdict
from grader.report import terminal
from grader.report.text import clean
from grader.results import store
from grader.sandbox.running import Sandbox
from grader.submission.folder import student_of
from grader.toolchain.discovery import find_toolchain


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = "Grade CUDA SGEMM submissions: compile, run, verify, and point at bugs."
    add = parser.add_argument
    add("submissions", metavar="SUBMISSION", nargs="+", type=Path, help="folder with sgemm.cu")
    options.lab(parser)
    options.device(parser)
    options.out(parser)
    options.json(parser, "print each result document on stdout, as one line")
    options.no_report(parser)
    options.sandbox(parser)
    add("--version", action="version", version=f"grade {grader.__version__}")


def run(chosen: argparse.Namespace, console: Console) -> int:
    lab = load_lab(chosen.lab)
    with standby(chosen.device) as gpu:
        bench = Bench(
            lab=lab,
            gpu_arch=choose_device(chosen.device, console),
            toolchain=find_toolchain(),
            sandbox=Sandbox.open(chosen.sandbox),
            ladders=known_ladders(chosen.out, console),
        )
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
    console.print(terminal.render(result, graded.sources))
    if graded.printed:
        # Indented, so that no line looks like one of the grader's.
        words = textwrap.indent(clean(graded.printed), "  ", lambda _line: True)
        console.print(Text(f"\nprinted by the kernels:\n{words}"))
    status = exit_status.of(result)
    if result.verdict is not Verdict.IE:  # a failure of the grader must not replace a real result
        try:
            written = store.save(chosen.out, result)
            say(console, f"result: {written}")
            if not chosen.no_report:
                write_page(written, result, graded.sources, console)
        except StoreError as error:
            complain(error, console)
            status = error.exit_status
    console.print()
    if chosen.json:
        sys.stdout.write(store.encode(result).decode() + "\n")
        sys.stdout.flush()
    return status
