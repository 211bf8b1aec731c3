"""Options that several commands take, each defined once."""

from __future__ import annotations

import argparse
import os
import typing
from collections.abc import Sequence
from pathlib import Path

from grader.cli.parser import NOT_POSITIVE, Parser
from grader.labs.time_rules import Attempts, TimeRules, due_rule
from grader.language import known_languages
from grader.model import Message, phrase
from grader.sandbox.running import Mode

_FIRST_LAB = phrase("the first that grade labs lists")
_WHERE_IT_RUNS = phrase("where kernels run; cpu is the simulator")
_WHERE_TO_WRITE = phrase("where results are written")


def submission(parser: Parser) -> None:
    """The folder, for a command that takes one submission."""
    parser.add_argument(
        "submission", metavar="SUBMISSION", type=Path, help=phrase("folder of a submission")
    )


def lab(parser: Parser, default: Message = _FIRST_LAB) -> None:
    parser.add_argument(
        "--lab",
        metavar="LAB",
        help=phrase(
            "a lab file, or one of the labs that grade labs lists (default: {default})",
            default=default,
        ),
    )


def device(
    parser: Parser,
    meaning: Message = _WHERE_IT_RUNS,
) -> None:
    parser.add_argument(
        "--device",
        choices=("auto", "gpu", "cpu"),
        default="auto",
        help=_defaulting(meaning, "auto"),
    )


def out(parser: Parser, meaning: Message = _WHERE_TO_WRITE) -> None:
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("results"),
        help=_defaulting(meaning, "results/"),
    )


def sandbox(parser: Parser, default: str = "auto") -> None:
    parser.add_argument(
        "--sandbox",
        choices=typing.get_args(Mode),
        default=default,
        help=phrase(
            "auto: bubblewrap if it works, else Landlock, else limits only; require: not limits "
            "only; bubblewrap, landlock: this one; off: limits only (default: {default})",
            default=default,
        ),
    )


def language(parser: Parser) -> None:
    """For the help alone: ``language_of`` takes it out before commands are parsed."""
    parser.add_argument(
        "--language",
        metavar="LANG",
        help=phrase(
            "one of {languages}; else that of $LANG, else the lab's",
            languages=", ".join(known_languages()),
        ),
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


def no_report(parser: Parser) -> None:
    parser.add_argument("--no-report", action="store_true", help=phrase("write no HTML report"))


def json(parser: Parser, meaning: Message) -> None:
    parser.add_argument("--json", action="store_true", help=meaning)


def _defaulting(meaning: Message, default: str) -> Message:
    return phrase("{meaning} (default: {default})", meaning=meaning, default=default)


# --- of commands that grade many submissions --------------------------------------------------


def batch(parser: Parser, *, default_lab: Message | None = None) -> None:
    """Options of the commands that grade many submissions."""
    lab(parser, *([default_lab] if default_lab else []))
    device(
        parser,
        phrase(
            "where kernels run; cpu is the simulator; on a GPU one submission is timed at a time"
        ),
    )
    out(parser)
    add = parser.add_argument
    add("--force", action="store_true", help=phrase("grade again even if there is a result"))
    add(
        "--only",
        metavar="NAME",
        action="append",
        help=phrase("only this submission; * and ? are wildcards; may be repeated"),
    )
    add(
        "--jobs",
        metavar="N",
        type=positive,
        default=len(os.sched_getaffinity(0)),
        help=phrase(
            "submissions graded at a time, or compiled ahead of the GPU (default: one per core)"
        ),
    )
    no_report(parser)
    sandbox(parser)


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(str(NOT_POSITIVE.given(value=repr(text))))
    return int(text)


# --- of commands that read stored results -----------------------------------------------------


def selection(parser: Parser) -> None:
    """Options that choose results and how they count."""
    out(parser, phrase("where the results are"))
    add = parser.add_argument
    add(
        "--lab",
        metavar="LAB",
        help=phrase("only this lab's results: its id, or its file, whose rules of time then hold"),
    )
    add("--device", choices=("gpu", "cpu"), help=phrase("only results of this device"))
    add("--gpu", metavar="MODEL", help=phrase("only GPUs whose model name contains this text"))
    add(
        "--choose",
        choices=typing.get_args(Attempts),
        help=phrase(
            "the result that counts for a student (default: what the lab file says, else best)"
        ),
    )
    add(
        "--no-ladder",
        action="store_true",
        help=phrase("leave out the rungs that grade ladder measured"),
    )
    add("--roster", metavar="FILE", type=Path, help=phrase("CSV file, see docs/instructor.md"))
    add(
        "--due",
        metavar="RULE",
        type=_due,
        help=phrase(
            "instead of the lab file's rules of time: a time such as 2026-01-31T23:59+01:00, "
            "and with commas grace=10m, late=5%/day or late=2/hour, and most=40%"
        ),
    )


def _due(value: str) -> TimeRules:
    try:
        return due_rule(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


# --- of commands that draw --------------------------------------------------------------------


def pictures(parser: Parser) -> None:
    add = parser.add_argument
    add("--svg", metavar="FILE", type=Path, help=phrase("write the picture as SVG, for a report"))
    add("--png", metavar="FILE", type=Path, help=phrase("write the picture as PNG, for a report"))
