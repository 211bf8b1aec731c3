"""Options that several commands take, each defined once."""

from __future__ import annotations

import argparse
import os
import typing
from collections.abc import Sequence
from pathlib import Path

from grader.labs.time_rules import Attempts, TimeRules, due_rule
from grader.language import known_languages
from grader.sandbox.running import Mode


def submission(parser: argparse.ArgumentParser) -> None:
    """The folder, for a command that takes one submission."""
    parser.add_argument(
        "submission", metavar="SUBMISSION", type=Path, help="folder of a submission"
    )


def lab(parser: argparse.ArgumentParser, default: str = "the first that grade labs lists") -> None:
    parser.add_argument(
        "--lab",
        metavar="LAB",
        help=f"a lab file, or one of the labs that grade labs lists (default: {default})",
    )


def device(
    parser: argparse.ArgumentParser,
    meaning: str = "where kernels run; cpu is the simulator",
) -> None:
    parser.add_argument(
        "--device",
        choices=("auto", "gpu", "cpu"),
        default="auto",
        help=f"{meaning} (default: auto)",
    )


def out(parser: argparse.ArgumentParser, meaning: str = "where results are written") -> None:
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("results"),
        help=f"{meaning} (default: results/)",
    )


def sandbox(parser: argparse.ArgumentParser, default: str = "auto") -> None:
    parser.add_argument(
        "--sandbox",
        choices=typing.get_args(Mode),
        default=default,
        help="auto: bubblewrap if it works, else Landlock, else limits only; require: not limits "
        f"only; bubblewrap, landlock: this one; off: limits only (default: {default})",
    )


def language(parser: argparse.ArgumentParser) -> None:
    """For the help alone: ``language_of`` takes it out before commands are parsed."""
    parser.add_argument(
        "--language",
        metavar="LANG",
        help=f"{' or '.join(known_languages())}, else that of $LANG, else the lab's",
    )


def language_of(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """The value of ``--language``, which may stand anywhere, and the other arguments."""
    chosen, others = None, list(arguments)
    end = others.index("--") if "--" in others else len(others)
    for place in reversed(range(end)):
        name, given, value = others[place].partition("=")
        if name == "--language" and (given or place + 1 < end):
            chosen = chosen or (value if given else others[place + 1])
            del others[place : place + (1 if given else 2)]
    return chosen, others


def no_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-report", action="store_true", help="write no HTML report")


def json(parser: argparse.ArgumentParser, meaning: str) -> None:
    parser.add_argument("--json", action="store_true", help=meaning)


# --- of commands that grade many submissions --------------------------------------------------


def batch(parser: argparse.ArgumentParser, *, default_lab: str | None = None) -> None:
    """Options of the commands that grade many submissions."""
    lab(parser, *([default_lab] if default_lab else []))
    device(
        parser,
        "where kernels run; cpu is the simulator; on a GPU one submission is timed at a time",
    )
    out(parser)
    add = parser.add_argument
    add("--force", action="store_true", help="grade again even if there is a result")
    add(
        "--only",
        metavar="NAME",
        action="append",
        help="only this submission; * and ? are wildcards; may be repeated",
    )
    add(
        "--jobs",
        metavar="N",
        type=positive,
        default=len(os.sched_getaffinity(0)),
        help="submissions graded at a time, or compiled ahead of the GPU (default: one per core)",
    )
    no_report(parser)
    sandbox(parser)


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number ≥ 1, got {text!r}")
    return int(text)


# --- of commands that read stored results -----------------------------------------------------


def selection(parser: argparse.ArgumentParser) -> None:
    """Options that choose results and how they count."""
    out(parser, "where the results are")
    add = parser.add_argument
    add(
        "--lab",
        metavar="LAB",
        help="only this lab's results: its id, or its file, whose rules of time then hold",
    )
    add("--device", choices=("gpu", "cpu"), help="only results of this device")
    add("--gpu", metavar="MODEL", help="only GPUs whose model name contains this text")
    add(
        "--choose",
        choices=typing.get_args(Attempts),
        help="the result that counts for a student (default: what the lab file says, else best)",
    )
    add("--no-ladder", action="store_true", help="leave out the rungs that grade ladder measured")
    add("--roster", metavar="FILE", type=Path, help="CSV file, see docs/instructor.md")
    add(
        "--due",
        metavar="RULE",
        type=_due,
        help="instead of the lab file's rules of time: a time such as 2026-01-31T23:59+01:00, "
        "and with commas grace=10m, late=5%%/day or late=2/hour, and most=40%%",
    )


def _due(value: str) -> TimeRules:
    try:
        return due_rule(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


# --- of commands that draw --------------------------------------------------------------------


def pictures(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--svg", metavar="FILE", type=Path, help="write the picture as SVG, for a report")
    add("--png", metavar="FILE", type=Path, help="write the picture as PNG, for a report")
