"""``grade SUBMISSION…``: grade, show and store; the default command."""

from __future__ import annotations

import argparse
import textwrap
from pathlib import Path

import msgspec
from rich.console import Console, Group
from rich.text import Text

import grader
from grader.backends.gpu.device import GpuDevice
from grader.cli import exit_status, formats, options, progress
from grader.cli.boards import known_ladders
from grader.cli.device import choose_device, standby
from grader.cli.hidden_command import known_hidden
from grader.cli.notices import complain, say
from grader.cli.parser import Parser
from grader.cli.readiness import ready
from grader.cli.report_command import write_page
from grader.cli.speaking import speak_as, spoken
from grader.cli.toolkit import choose_toolchain
from grader.errors import GraderError, StoreError, SubmissionError, UsageError
from grader.grading.pipeline import Bench, grade
from grader.labs.hidden import revealed, with_hidden
from grader.labs.lab import Lab, find_lab, load_lab
from grader.model import Verdict, phrase
from grader.report import terminal
from grader.report.text import clean
from grader.results import store
from grader.results.sources import keep_sources
from grader.sandbox.running import Sandbox
from grader.submission.folder import student_of


def add_options(parser: Parser) -> None:
    parser.describe(phrase("Grade CUDA submissions: compile, run, verify, and point at bugs."))
    add = parser.add_argument
    add(
        "submissions",
        metavar="SUBMISSION",
        nargs="+",
        type=Path,
        help=phrase("folder of a submission"),
    )
    options.lab(parser)
    add(
        "--hidden",
        metavar="FILE",
        type=Path,
        help=phrase(
            "another lab file; its correctness and cpu sizes count, and students do not see them"
        ),
    )
    add(
        "--reveal",
        action="store_true",
        help=phrase("for who has the secret: show hidden sizes like the others, and store nothing"),
    )
    options.device(parser)
    options.out(parser)
    options.json(parser, phrase("print each result document on stdout, as one line"))
    add(
        "--format",
        choices=tuple(formats.RENDERERS),
        help=phrase("what to print on stdout for another system; --json is --format json"),
    )
    add(
        "--memory-mb",
        metavar="N",
        type=options.positive,
        help=phrase(
            "no process may have more memory than this (default: limits.memory_mb of the lab)"
        ),
    )
    options.no_report(parser)
    options.sandbox(parser)
    add(
        "--version",
        action="version",
        version=f"grade {grader.__version__}",
        help=phrase("show the version and exit"),
    )


def run(chosen: argparse.Namespace, console: Console) -> int:
    chosen.format = chosen.format or ("json" if chosen.json else None)
    if chosen.format not in (None, "json") and len(chosen.submissions) > 1:
        raise UsageError(phrase("--format {name}: name one submission", name=chosen.format))
    lab = _lab(chosen)
    speak_as(lab, console)
    with standby(chosen.device, lab.problem_ref) as gpu:
        arch = choose_device(chosen.device, console)
        bench = Bench(
            lab=lab,
            gpu_arch=arch,
            toolchain=choose_toolchain(lab, arch, console),
            sandbox=Sandbox.open(chosen.sandbox),
            ladders=known_ladders(chosen.out, console),
        )
        ready(bench, chosen.sandbox)
        first, *others = chosen.submissions
        status = _grade_one(first, bench, chosen, console, gpu)
    return max([status, *(_grade_one(path, bench, chosen, console) for path in others)])


def _lab(chosen: argparse.Namespace) -> Lab:
    lab = load_lab(find_lab(chosen.lab))
    if chosen.hidden:
        lab = with_hidden(lab, load_lab(chosen.hidden))
    if chosen.reveal:
        known_hidden(lab)
        lab = revealed(lab)
    if chosen.memory_mb:
        least = min(lab.limits.memory_mb, chosen.memory_mb)
        lab = msgspec.structs.replace(
            lab, limits=msgspec.structs.replace(lab.limits, memory_mb=least)
        )
    return lab


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
