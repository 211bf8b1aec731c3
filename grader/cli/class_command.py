"""``grade class``: grade every submission in a folder, several at a time; resumes."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from rich.console import Console

from grader.cli import options
from grader.course import warm_up


def add_options(parser: options.Parser) -> None:
    parser.description = (
        "Grade every submission in DIR: folders, files such as alice.cu, or an export "
        "from Gradescope. Submissions that already have a result are not graded again."
    )
    parser.epilog = (
        "exit status: 0 all graded; 2 wrong usage, or two entries of DIR have the same name; 3 the "
        "grader or the machine failed for a submission: the same command tries it again"
    )
    parser.add_argument("folder", metavar="DIR", type=Path, help="folder of submissions")
    options.batch(parser)
    parser.option(
        "--gpus WHICH",
        "measure on several GPUs of this machine, one submission on each at a time: all, or "
        "indices and UUIDs such as 0,2 (default: the first one)",
    )
    add = parser.add_argument_group("for batch systems (slurm/class.sh uses them)").add_argument
    add("--plan", metavar="FILE", type=Path, help="grade nothing: list what is left to grade")
    add("--manifest", metavar="FILE", type=Path, help="grade a part of the list that --plan wrote")
    add("--part", metavar="I/N", default="0/1", help="which part: 0/10 is the first of ten")
    add("--compile", metavar="ARCH", type=_arch, help="grade nothing: only compile, e.g. for sm_80")


def _arch(text: str) -> str:
    if not re.fullmatch(r"sm_\d{2,3}", text):
        raise argparse.ArgumentTypeError(f"expected an architecture such as sm_80, got {text!r}")
    return text


def run(chosen: argparse.Namespace, console: Console) -> int:
    if not chosen.plan:
        warm_up()
    # Not before: the workers' modules are imported beside these.
    from grader.cli.class_grading import grade_class

    return grade_class(chosen, console)
