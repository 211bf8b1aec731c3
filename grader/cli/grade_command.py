"""``grade SUBMISSION…``: grade, show and store; the default command."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec
from rich.console import Console

import grader
from grader.base import UsageError
from grader.cli import export_command as formats
from grader.cli import options
from grader.cli.console import aside, speak_as
from grader.cli.hidden_command import known_hidden
from grader.labs import Lab, find_lab, load_lab, revealed, with_hidden
from ptxsim.message import phrase


def add_options(parser: options.Parser) -> None:
    parser.describe(phrase("Grade CUDA submissions: compile, run, verify, and point at bugs."))
    add = parser.option
    options.submission(parser, "submissions", nargs="+")
    options.lab(parser)
    add(
        "--hidden FILE",
        phrase(
            "another lab file; its correctness and cpu sizes count, and students do not see them"
        ),
        type=Path,
    )
    add(
        "--reveal",
        phrase("for who has the secret: show hidden sizes like the others, and store nothing"),
    )
    options.device(parser)
    options.out(parser)
    json = phrase("print each result document on stdout, as one line")
    add("--json", json)
    parser.add_argument(
        "--format",
        choices=tuple(formats.RENDERERS),
        metavar="|".join(formats.IN_CALL),
        help=phrase("what a CI reads on stdout in the same call; else use grade export"),
    )
    add(
        "--memory-mb N",
        phrase("no process may have more memory than this (default: limits.memory_mb of the lab)"),
        type=options.positive,
    )
    options.no_report(parser)
    options.detail(parser)
    options.sandbox(parser)
    parser.add_argument(
        *("-V", "--version"),
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
    if chosen.format:  # stdout is that other program's; but see formats.show
        console = aside(console)
    from grader.cli.devices import standby  # what --help does not need

    with standby(chosen.device, lab.problem_ref) as gpu:
        # Not before: the GPU's worker loads its libraries while these are loaded.
        from grader.cli.grading import grade_each

        return grade_each(chosen, lab, console, gpu)


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
