"""``grade similar``: suspiciously similar pairs in a class and copies of rungs, for the
instructor."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

from rich.console import Console

from grader import labs
from grader.base import GraderError, Rejected, UsageError, one_line
from grader.build import Toolchain, expand_macros, find_toolchain, has_macros
from grader.cli.console import DONE, say, skipped, spoken, warn
from grader.cli.options import OptionGroup, argument, option
from grader.cli.shared_options import results_folder
from grader.course import find_submissions, similar, similar_rendering
from grader.labs import Entrant, SourceLine, Submission, SubmissionError
from grader.results import find_rungs, store
from grader.sandbox import Sandbox
from ptxsim.text import NOTHING, Message, phrase, verbatim

_PRIVATE = 0o600  # it holds names and sources: only the instructor may read it
_STARTERS = ("starter", "starters")

Work = similar.ComparedWork


def _percent(text: str) -> float:
    if not re.fullmatch(r"\d{1,3}(\.\d+)?", text) or not 0 < float(text) <= 100:
        no = phrase("expected a number over 0 and up to 100, got {value}", value=repr(text))
        raise ValueError(no)
    return float(text)


class SimilarOptions(OptionGroup):
    """List suspiciously similar pairs among the submissions in DIR, and copies of reference
    kernels, for the instructor only. Names, comments, white space, macros and order do not hide a
    copy; between two submissions, code from starter/ and reference/ does not count."""

    folder: Path = argument("as for grade class", "DIR")
    threshold: float = option(
        "share of one submission's own code found in the other (default: 60)",
        "PERCENT",
        60.0,
        type=_percent,
    )
    known: tuple[Path, ...] = option(
        "more code that all students were given; may be repeated", "DIR"
    )
    html: Path | None = option("the first page (default: OUT/similar.html)", "FILE")
    lab: tuple[str, ...] = option(
        "compare only what this lab asks for; may be repeated (default: each of grade labs)", "LAB"
    )
    out: Path = results_folder(phrase("where the page goes (default: {default}/)"))


def run(chosen: SimilarOptions, console: Console) -> int:
    by_main = _labs(chosen.lab)
    rolls = [find_submissions(chosen.folder, main) for main in by_main]  # the same, if not refused
    entrants, complaints = rolls[0]
    skipped(complaints, console)
    starters = [_text(text) for text in _starting_texts(chosen.known)]
    reference = [_text(text) for place in labs.provided(labs.REFERENCE) for text in _texts(place)]
    known = [*starters, *reference]
    handed_in = [work for entrant in entrants for work in _handed_in(entrant, by_main, console)]
    groups: list[list[Work]] = []
    every_rung: list[Work] = []
    copies: list[similar.SimilarPair] = []
    for main, lab in by_main.items():  # what belongs to different labs is not compared
        works = _read((each for each in handed_in if each.main == main), lab, console)
        own, too_long = similar.comparable(works)
        skipped((similar.TOO_LONG.given(student=one_line(each)) for each in too_long), console)
        groups.append(own)
        if own:
            given = _read(_submissions_below(chosen.known, main), lab, console)
            rungs = _read(_rungs(main), lab, console)
            copies += similar.find_copies(own, rungs, [*starters, *given], chosen.threshold / 100)
            every_rung += rungs
            known += (work for work in (*given, *rungs) if work.lines)  # other texts are there
    pairs = similar.find_pairs(groups, known, chosen.threshold / 100)
    works = [work for own in groups for work in own]
    language = spoken(console)
    console.print(similar_rendering.terminal(pairs, copies, len(works), language))
    first = chosen.html or chosen.out / "similar.html"
    shown = similar_rendering.pages(
        [*pairs, *copies], [*works, *every_rung], len(works), language, first.name
    )
    for name, text in shown.items():
        store.write(first.with_name(name), text.encode(), mode=_PRIVATE)
    more = phrase("page: {page} and {more} more", more=len(shown) - 1)
    said = more if len(shown) > 1 else phrase("page: {page}")
    say(console, said.given(page=str(first)))
    return DONE


def _labs(named: Sequence[str]) -> dict[str, labs.Lab]:
    """The first lab that asks for a file, by that file; the default lab's first."""
    files = [labs.find_lab(lab) for lab in named]
    files = files or [labs.find_lab(None), *labs.shipped_labs().values()]
    found: dict[str, labs.Lab] = {}
    for lab in map(labs.load_lab, files):
        found.setdefault(lab.problem.interface.main, lab)
    return found


# --- what was handed in ------------------------------------------------------------------------


def _handed_in(entrant: Entrant, mains: Iterable[str], console: Console) -> Iterator[Submission]:
    """The student's work for each lab, with the file that this lab asks for. A single file, which
    no name assigns to a lab, counts for the first."""
    found, refusal = 0, None
    for main in mains:
        student = f"{entrant.student} ({main})" if found else entrant.student
        try:
            yield labs.load_listed(entrant.source, student, main)
        except (Rejected, SubmissionError, OSError) as error:
            refusal = refusal or error
            continue
        found += 1
        if entrant.source.suffix == ".cu":
            break
    if not found:
        why = refusal.message if isinstance(refusal, GraderError) else verbatim(str(refusal))
        skipped([phrase("{place}: {what}", place=one_line(entrant.student), what=why)], console)


def _read(submissions: Iterable[Submission], lab: labs.Lab, console: Console) -> list[Work]:
    """Their sources, with macros expanded where there are any, and can be."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        found = pool.map(partial(_work, lab=lab), submissions)
        works = []
        for work, complaint in found:
            works.append(work)
            if complaint:
                words = phrase("{who}: {complaint}; compared as it is written")
                warn(words.given(who=one_line(work.student), complaint=complaint), console)
    return works


def _work(submission: Submission, *, lab: labs.Lab) -> tuple[Work, Message]:
    """The work, and why macros in it are not expanded."""
    lines: tuple[SourceLine, ...] = ()
    complaint = NOTHING
    if has_macros(submission) and not lab.program:
        arch = lab.architectures[0]
        try:
            toolchain, sandbox = _tools(arch)
            lines = expand_macros(submission, lab.problem.interface, toolchain, sandbox, arch)
        except GraderError as error:
            complaint = error.message
    files = labs.source_texts(submission.contents)
    return Work(student=submission.student, files=files, lines=lines), complaint


@cache
def _tools(arch: str) -> tuple[Toolchain, Sandbox]:
    return find_toolchain(arch), Sandbox.open()


# --- what everybody has ------------------------------------------------------------------------


def _starting_texts(known: Sequence[Path]) -> Iterator[str]:
    """Texts that do not count: from the starters, and from the folders named."""
    for place in (place for name in _STARTERS for place in labs.provided(name)):
        yield from _texts(place)
    for folder in known:
        if not (found := _texts(folder)):
            none = phrase("--known {folder}: no CUDA source in it", folder=str(folder))
            raise UsageError(none)
        yield from found


def _texts(folder: Path) -> list[str]:
    """Raises UsageError if a file cannot be read."""
    files = [path for path in sorted(folder.rglob("*.cu*")) if path.suffix in (".cu", ".cuh")]
    try:
        return [labs.read(path).decode(errors="replace") for path in files]
    except OSError as error:
        words = phrase("{place}: cannot be read: {why}", place=one_line(folder))
        raise UsageError(words.given(why=str(error.strerror))) from None


def _text(text: str) -> Work:
    return Work(student="", files={"": text})


def _submissions_below(known: Sequence[Path], main: str) -> Iterator[Submission]:
    """Find what can be preprocessed of the folders named, whose texts are known already."""
    for path in (path for folder in known for path in sorted(folder.rglob(main))):
        try:
            submission = labs.load_listed(path.parent, str(path.parent), main)
        except (Rejected, SubmissionError, OSError):
            continue
        if has_macros(submission):
            yield submission


def _rungs(main: str) -> Iterator[Submission]:
    """The rungs of all ladders whose labs ask for this file: ``sgemm/25_split_k``."""
    found: dict[str, Path] = {}
    for place in labs.provided(labs.REFERENCE):
        for ladder in sorted(path for path in place.iterdir() if path.is_dir()):
            for rung in find_rungs(ladder):
                found.setdefault(f"{ladder.name}/{rung.name}", ladder / rung.name)
    for label, path in found.items():
        if (path / main).is_file():
            yield labs.load_listed(path, label, main)
