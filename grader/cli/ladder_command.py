"""``grade ladder``: grade every reference rung, write the table and the page; resumes."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

from rich.console import Console
from rich.text import Text

import grader
from grader.backends.probe import gpu_names
from grader.cli import exit_status, options, running
from grader.cli.device import choose_device
from grader.cli.notices import say
from grader.cli.parser import Parser
from grader.cli.speaking import spoken
from grader.course.class_run.class_worker import Setup, Task
from grader.course.class_run.pool import lanes
from grader.course.class_run.roll import Entrant
from grader.errors import UsageError, one_line
from grader.grading.ceilings import ceilings
from grader.grading.preparing import Bench
from grader.labs.lab import LADDER_LAB, Lab, find_lab, load_lab
from grader.ladder.document import Ceiling, document_path, folder, load_ladder, make_ladder
from grader.ladder.handed_in import hand_in, load_handed_in
from grader.ladder.host import run_host
from grader.ladder.ladder_render import html, terminal
from grader.ladder.plausible import Here, complaints
from grader.ladder.rungs import Rung, alike, find_reference, find_rungs
from grader.model import LabRef, Result, Verdict, phrase
from grader.results import store
from grader.submission.folder import load_listed, load_submission


def add_options(parser: Parser) -> None:
    parser.describe(
        phrase(
            "Grade the reference rungs; write a table, a page and a document for this GPU model. "
            "Rungs that already have a result are not graded again."
        )
    )
    parser.epilog = parser.language(
        phrase(
            "exit status: 0 all graded, or the file to check is plausible; 1 it is not; 2 wrong "
            "usage; 3 the grader or the machine failed for a rung: the same command tries it again"
        )
    )
    parser.add_argument(
        "folder",
        metavar="DIR",
        nargs="?",
        type=Path,
        help=phrase("folder of rungs (default: reference/LAB here, else in the checkout)"),
    )
    parser.add_argument(
        "--bounds",
        action="store_true",
        help=phrase(
            "say too what each rung can reach at most on an A100 and an RTX 2080 Ti; takes some "
            "seconds for each rung, once for each source"
        ),
    )
    parser.add_argument(
        "--send",
        metavar="FILE",
        type=Path,
        help=phrase(
            "write one file with document, results and the time of every repetition, to hand in"
        ),
    )
    parser.add_argument(
        "--check",
        metavar="FILE",
        type=Path,
        help=phrase("grade nothing; say whether a file that somebody sent is whole and plausible"),
    )
    options.batch(parser, default_lab=phrase("the ladder's own"))


def run(chosen: argparse.Namespace, console: Console) -> int:
    lab_file = find_lab(chosen.lab) if chosen.lab else LADDER_LAB
    lab = load_lab(lab_file)
    reference = find_reference(chosen.folder, lab.id, *alike(lab))
    rungs = find_rungs(reference)
    entrants = [Entrant(student=rung.name, source=reference / rung.name) for rung in rungs]
    if chosen.check:
        return _check(chosen.check, _here(rungs, entrants, lab), console)
    wanted = {entrant.student for entrant in running.chosen(entrants, chosen.only)}
    arch = choose_device(chosen.device, console)
    gpu = gpu_names()[0] if arch else None
    if chosen.send and gpu is None:
        raise UsageError("--send: only a ladder that was measured on a GPU can be sent")
    setup = Setup(
        lab=lab_file,
        sandbox=chosen.sandbox,
        gpu_arch=arch,
        out=folder(chosen.out, gpu),
        report=not chosen.no_report,
        raw=True,
    )
    bench = setup.bench()
    host = run_host(reference)
    tasks = [
        Task(kind="grade", student=entrant.student, source=entrant.source) for entrant in entrants
    ]
    waiting = running.left_over(
        [task for task in tasks if task.student in wanted],
        lab,
        setup,
        console,
        force=chosen.force,
    )
    reports = running.grade_tasks(waiting, lanes(setup.device, chosen.jobs), setup, console)
    this_lab = LabRef(id=lab.id, sha256=lab.sha256)
    results = {result.submission.student: result for result in _stored(tasks, lab, setup)}
    path = document_path(chosen.out, gpu, "" if _is_of_the_default_problem(lab) else lab.id)
    known = _bounds(entrants, wanted, path, bench, console, anew=chosen.bounds)
    ladder = make_ladder(
        rungs,
        results,
        this_lab,
        lab.problem.info(),
        grader=grader.__version__,
        host=host,
        ceilings=known,
    )
    console.print("", terminal(ladder, spoken(console)), "")
    store.write_document(path, ladder)
    say(console, f"result: {path}")
    if setup.report:
        page = path.with_suffix(".html")
        store.write(page, html(ladder, spoken(console)).encode())
        say(console, f"page: {page}")
    if chosen.send:
        sent = hand_in(ladder, results)
        store.write_document(chosen.send, sent)
        say(console, f"to hand in: {chosen.send}")
        for complaint in complaints(sent, _here(rungs, entrants, lab), datetime.now(timezone.utc)):
            say(console, f"not whole: {complaint}")
    failed = any(report.verdict is Verdict.IE for report in reports)
    return exit_status.FAULT if failed else exit_status.DONE


def _here(rungs: tuple[Rung, ...], entrants: Sequence[Entrant], lab: Lab) -> Here:
    main = lab.problem.interface.main
    listed = (load_listed(entrant.source, entrant.student, main) for entrant in entrants)
    sources = {rung.name: each.sha256 for rung, each in zip(rungs, listed, strict=True)}
    return Here(rungs=rungs, sources=sources, lab=lab, grader=grader.__version__)


def _check(file: Path, here: Here, console: Console) -> int:
    """Say why a file that somebody sent is not to be believed, or whose it is."""
    sent = load_handed_in(file)
    found = complaints(sent, here, datetime.now(timezone.utc))
    for complaint in found:
        console.print(Text(f"{one_line(file)}: {complaint}"), soft_wrap=True)
    if found:
        return exit_status.NOT_ACCEPTED
    console.print(terminal(sent.ladder), "")
    words = f"whole and plausible: {len(sent.results)} rungs, {sent.ladder.created[:10]}"
    console.print(Text(f"{one_line(file)}: {words}"), soft_wrap=True)
    return exit_status.DONE


def _bounds(
    entrants: Sequence[Entrant],
    wanted: Collection[str],
    path: Path,
    bench: Bench,
    console: Console,
    *,
    anew: bool,
) -> dict[str, tuple[Ceiling, ...]]:
    """By rung: those of the last document that are of the same source; others only if wanted."""
    last = {step.sha256: step.ceilings for step in load_ladder(path).steps} if path.exists() else {}
    found = {}
    for entrant in entrants:
        submission = load_submission(entrant.source, main=bench.lab.problem.interface.main)
        kept = last.get(submission.sha256, ())
        if anew and not kept and entrant.student in wanted:
            say(console, f"{entrant.student}: bounds")
            kept = ceilings(submission, bench)
        found[entrant.student] = kept
    return found


def _is_of_the_default_problem(lab: Lab) -> bool:
    return lab.problem.info().like(load_lab(LADDER_LAB).problem.info())


def _stored(tasks: list[Task], lab: Lab, setup: Setup) -> Iterator[Result]:
    """The results of exactly these sources by exactly this lab file, from any run."""
    for task in tasks:
        sha256 = load_listed(task.source, task.student, lab.problem.interface.main).sha256
        path = store.document_path(setup.out, lab.id, task.student, sha256, setup.device)
        if not path.exists():
            continue
        result = store.load(path)
        if result.lab == LabRef(id=lab.id, sha256=lab.sha256):
            yield result
