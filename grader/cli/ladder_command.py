"""``grade ladder``: grade every reference rung, write the table and the page; resumes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

import grader
from grader.backends.probe import gpu_names
from grader.cli import exit_status, options, running
from grader.cli.device import choose_device
from grader.cli.notices import say
from grader.course.class_run.class_worker import Setup, Task
from grader.course.class_run.pool import lanes
from grader.course.class_run.roll import Entrant
from grader.labs.lab import LADDER_LAB, Lab, find_lab, load_lab
from grader.ladder.document import document_path, folder, make_ladder
from grader.ladder.host import run_host
from grader.ladder.ladder_render import html, terminal
from grader.ladder.rungs import find_reference, find_rungs
from grader.model import LabRef, Result, Verdict
from grader.results import store
from grader.submission.folder import load_listed


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Grade the reference rungs; write a table, a page and a document for this GPU model. "
        "Rungs that already have a result are not graded again."
    )
    parser.epilog = (
        "exit status: 0 all graded; 2 wrong usage; 3 the grader or the machine "
        "failed for a rung: the same command tries it again"
    )
    parser.add_argument(
        "folder",
        metavar="DIR",
        nargs="?",
        type=Path,
        help="folder of rungs (default: reference/LAB here, else in the checkout)",
    )
    options.batch(parser, default_lab="the ladder's own")


def run(chosen: argparse.Namespace, console: Console) -> int:
    lab_file = find_lab(chosen.lab) if chosen.lab else LADDER_LAB
    reference = find_reference(chosen.folder, load_lab(lab_file).id)
    rungs = find_rungs(reference)
    entrants = [Entrant(student=rung.name, source=reference / rung.name) for rung in rungs]
    wanted = {entrant.student for entrant in running.chosen(entrants, chosen.only)}
    arch = choose_device(chosen.device, console)
    gpu = gpu_names()[0] if arch else None
    setup = Setup(
        lab=lab_file,
        sandbox=chosen.sandbox,
        gpu_arch=arch,
        out=folder(chosen.out, gpu),
        report=not chosen.no_report,
    )
    lab = setup.bench().lab
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
    ladder = make_ladder(
        rungs, results, this_lab, lab.problem.info(), grader=grader.__version__, host=host
    )
    console.print("", terminal(ladder), "")
    path = document_path(chosen.out, gpu, "" if _is_of_the_default_problem(lab) else lab.id)
    store.write_document(path, ladder)
    say(console, f"result: {path}")
    if setup.report:
        page = path.with_suffix(".html")
        store.write(page, html(ladder).encode())
        say(console, f"page: {page}")
    failed = any(report.verdict is Verdict.IE for report in reports)
    return exit_status.FAULT if failed else exit_status.DONE


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
