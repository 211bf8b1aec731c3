"""``grade similar``: suspiciously similar pairs in a class, for the instructor."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from grader.cli import exit_status, options
from grader.cli.notices import say, skipped
from grader.cli.parser import Parser
from grader.course.class_run.roll import Entrant, call_roll
from grader.course.similar.comparison import TOO_LONG, Pair, Work, comparable, find_pairs
from grader.course.similar.similar_render import html, terminal
from grader.errors import Rejected, SubmissionError, UsageError, one_line
from grader.labs.lab import find_lab, load_lab, shipped_labs
from grader.model import phrase
from grader.results import store
from grader.submission.folder import load_listed, source_texts
from grader.submission.provided import REFERENCE, provided
from grader.submission.reading import read

_PRIVATE = 0o600  # it holds names and sources: only the instructor may read it
_GIVEN = ("starter", "starters", REFERENCE)  # what every student may use


def add_options(parser: Parser) -> None:
    parser.description = (
        "List suspiciously similar pairs among the submissions in DIR, for the instructor "
        "only. Names, comments, white space and order do not hide a copy; code from starter/ and "
        "reference/ does not count."
    )
    add = parser.add_argument
    add("folder", metavar="DIR", type=Path, help="as for grade class")
    add(
        "--threshold",
        metavar="PERCENT",
        type=_percent,
        default=60.0,
        help="share of one submission's own code found in the other (default: 60)",
    )
    add(
        "--known",
        metavar="DIR",
        type=Path,
        action="append",
        default=[],
        help="more code that all students were given; may be repeated",
    )
    add("--html", metavar="FILE", type=Path, help="the page (default: OUT/similar.html)")
    add(
        "--lab",
        metavar="LAB",
        action="append",
        help="compare only what this lab asks for; may be repeated (default: each of grade labs)",
    )
    options.out(parser, phrase("where the page goes"))


def run(chosen: argparse.Namespace, console: Console) -> int:
    mains = _mains(chosen.lab)
    rolls = [call_roll(chosen.folder, main) for main in mains]  # the same, if not refused
    entrants, complaints = rolls[0]
    skipped(complaints, console)
    known = _known(chosen.known)
    handed_in = [work for entrant in entrants for work in _works(entrant, mains, console)]
    works: list[Work] = []
    pairs: list[Pair] = []
    for main in mains:  # what belongs to different labs is not compared
        own, too_long = comparable([work for name, work in handed_in if name == main])
        skipped([f"{one_line(student)}: {TOO_LONG}" for student in too_long], console)
        works += own
        pairs += find_pairs(own, known, chosen.threshold / 100)
    console.print(terminal(pairs, len(works)))
    page = chosen.html or chosen.out / "similar.html"
    store.write(page, html(pairs, works).encode(), mode=_PRIVATE)
    say(console, f"page: {page}")
    return exit_status.DONE


def _mains(labs: Sequence[str] | None) -> list[str]:
    """The file that each lab asks for, once; that of the default lab first."""
    files = [find_lab(lab) for lab in labs] if labs else [find_lab(None), *shipped_labs().values()]
    return list(dict.fromkeys(load_lab(path).problem.interface.main for path in files))


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError(f"expected a number over 0 and up to 100, got {text!r}")
    return value


def _known(named: list[Path]) -> list[str]:
    """Texts that do not count: from the checkout, and from the folders named."""
    texts = [_texts(place) for name in _GIVEN for place in provided(name)]
    for folder in named:
        found = _texts(folder)
        if not found:
            raise UsageError(f"--known {folder}: no CUDA source in it")
        texts.append(found)
    return [text for group in texts for text in group]


def _texts(folder: Path) -> list[str]:
    """Raises UsageError if a file cannot be read."""
    files = [path for path in sorted(folder.rglob("*.cu*")) if path.suffix in (".cu", ".cuh")]
    try:
        return [read(path).decode(errors="replace") for path in files]
    except OSError as error:
        raise UsageError(f"{one_line(folder)}: cannot be read: {error.strerror}") from None


def _works(entrant: Entrant, mains: Sequence[str], console: Console) -> list[tuple[str, Work]]:
    """The student's work for each lab, with the file that this lab asks for. A single file, which
    no name assigns to a lab, counts for the first."""
    found: list[tuple[str, Work]] = []
    refusal: Exception | None = None
    for main in mains:
        try:
            submission = load_listed(entrant.source, entrant.student, main)
        except (Rejected, SubmissionError, OSError) as error:
            refusal = refusal or error
            continue
        student = f"{entrant.student} ({main})" if found else entrant.student
        found.append((main, Work(student=student, files=source_texts(submission.contents))))
        if entrant.source.suffix == ".cu":
            break
    if not found:
        skipped([f"{one_line(entrant.student)}: {refusal}"], console)
    return found
