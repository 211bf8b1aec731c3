"""``grade similar``: suspiciously similar pairs in a class, for the instructor."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from grader import labs
from grader.base import Rejected, SubmissionError, UsageError, one_line
from grader.cli.console import DONE, say, skipped
from grader.course import Entrant, find_submissions, similar
from grader.results import store

_PRIVATE = 0o600  # it holds names and sources: only the instructor may read it
_GIVEN = ("starter", "starters", labs.REFERENCE)  # what every student may use


def run(chosen: argparse.Namespace, console: Console) -> int:
    mains = _mains(chosen.lab)
    rolls = [find_submissions(chosen.folder, main) for main in mains]  # the same, if not refused
    entrants, complaints = rolls[0]
    skipped(complaints, console)
    known = _known(chosen.known)
    handed_in = [work for entrant in entrants for work in _works(entrant, mains, console)]
    by_lab: list[list[similar.ComparedWork]] = []
    for main in mains:  # what belongs to different labs is not compared
        own, too_long = similar.comparable([work for name, work in handed_in if name == main])
        skipped([f"{one_line(student)}: {similar.TOO_LONG}" for student in too_long], console)
        by_lab.append(own)
    works = [work for own in by_lab for work in own]
    pairs = similar.find_pairs(by_lab, known, chosen.threshold / 100)
    console.print(similar.terminal(pairs, len(works)))
    page = chosen.html or chosen.out / "similar.html"
    store.write(page, similar.html(pairs, works).encode(), mode=_PRIVATE)
    say(console, f"page: {page}")
    return DONE


def _mains(named: Sequence[str] | None) -> list[str]:
    """The file that each lab asks for, once; that of the default lab first."""
    files = [labs.find_lab(lab) for lab in named or ()]
    files = files or [labs.find_lab(None), *labs.shipped_labs().values()]
    return list(dict.fromkeys(labs.load_lab(path).problem.interface.main for path in files))


def _known(named: list[Path]) -> list[str]:
    """Texts that do not count: from the checkout, and from the folders named."""
    texts = [text for name in _GIVEN for place in labs.provided(name) for text in _texts(place)]
    for folder in named:
        if not (found := _texts(folder)):
            raise UsageError(f"--known {folder}: no CUDA source in it")
        texts += found
    return texts


def _texts(folder: Path) -> list[str]:
    """Raises UsageError if a file cannot be read."""
    files = [path for path in sorted(folder.rglob("*.cu*")) if path.suffix in (".cu", ".cuh")]
    try:
        return [labs.read(path).decode(errors="replace") for path in files]
    except OSError as error:
        raise UsageError(f"{one_line(folder)}: cannot be read: {error.strerror}") from None


def _works(
    entrant: Entrant, mains: Sequence[str], console: Console
) -> list[tuple[str, similar.ComparedWork]]:
    """The student's work for each lab, with the file that this lab asks for. A single file, which
    no name assigns to a lab, counts for the first."""
    found: list[tuple[str, similar.ComparedWork]] = []
    refusal: Exception | None = None
    for main in mains:
        try:
            submission = labs.load_listed(entrant.source, entrant.student, main)
        except (Rejected, SubmissionError, OSError) as error:
            refusal = refusal or error
            continue
        student = f"{entrant.student} ({main})" if found else entrant.student
        files = labs.source_texts(submission.contents)
        found.append((main, similar.ComparedWork(student=student, files=files)))
        if entrant.source.suffix == ".cu":
            break
    if not found:
        skipped([f"{one_line(entrant.student)}: {refusal}"], console)
    return found
