"""What ``grade class`` does: which submissions and devices, the grading, the board at the end."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.text import Text

from grader.backends.probe import VisibleGpu
from grader.cli import exit_status, running
from grader.cli.boards import known_ladders, reference_names
from grader.cli.device import choose_device, choose_gpus
from grader.cli.hidden_command import known_hidden
from grader.cli.notices import skipped
from grader.cli.readiness import ready
from grader.course.class_run.class_worker import Report, Setup, Task
from grader.course.class_run.manifest import read_manifest, read_part, write_manifest
from grader.course.class_run.pool import lanes
from grader.course.class_run.roll import call_roll
from grader.course.leaderboard import board_render as render
from grader.course.leaderboard.ranking import make_boards, read_entries
from grader.errors import UsageError, one_line
from grader.labs.lab import Lab, find_lab, load_lab
from grader.model import Verdict


def grade_class(chosen: argparse.Namespace, console: Console) -> int:
    lab_file = find_lab(chosen.lab)
    main = load_lab(lab_file).problem.interface.main
    roll, complaints = call_roll(chosen.folder, main)
    skipped(complaints, console)
    entrants = running.chosen(roll, chosen.only)
    if chosen.manifest:
        names = set(read_manifest(chosen.manifest).part(*read_part(chosen.part)))
        entrants = [entrant for entrant in entrants if entrant.student in names]
    gpus = _gpus(chosen, console)
    setup = Setup(
        lab=lab_file,
        sandbox=chosen.sandbox,
        gpu_arch=gpus[0].arch if gpus else _architecture(chosen, console),
        out=chosen.out,
        report=not chosen.no_report,
        ladders=known_ladders(chosen.out, console),
    )
    bench = setup.bench()  # reports a fault of the lab or the machine, once
    lab = bench.lab
    known_hidden(lab)
    if not chosen.plan and not chosen.compile:
        ready(bench, chosen.sandbox)
    tasks = [
        Task(
            kind="grade",
            student=entrant.student,
            source=entrant.source,
            submitted=entrant.submitted,
        )
        for entrant in entrants
    ]
    waiting = running.left_over(tasks, lab, setup, console, force=chosen.force)
    if chosen.plan:
        write_manifest(chosen.plan, [task.student for task in waiting])
        print(len(waiting))
        return exit_status.DONE
    if chosen.compile:
        return _compile(waiting, setup, chosen.jobs, console)
    working = lanes(setup.device, chosen.jobs, gpus)
    reports = running.grade_tasks(waiting, working, setup, console)
    _summary(reports, lab, setup, console, board=chosen.manifest is None)
    if any(report.verdict is Verdict.IE for report in reports):
        return exit_status.FAULT
    left_out = complaints and chosen.manifest is None
    return exit_status.WRONG_USAGE if left_out else exit_status.DONE


def _architecture(chosen: argparse.Namespace, console: Console) -> str | None:
    """The architecture that kernels run on. Planning and compiling need no GPU."""
    if chosen.compile or (chosen.plan and chosen.device == "gpu"):
        return chosen.compile or "sm_80"
    return choose_device(chosen.device, console)


def _gpus(chosen: argparse.Namespace, console: Console) -> tuple[VisibleGpu, ...]:
    """Those that --gpus names; () without it."""
    if chosen.gpus is None:
        return ()
    if chosen.device == "cpu":
        raise UsageError("--gpus: with --device cpu there is nothing to measure on; leave one out")
    if chosen.plan or chosen.compile:
        raise UsageError("--gpus: --plan and --compile use no GPU; leave it out")
    return choose_gpus(chosen.gpus, console)


def _show_board(lab: Lab, setup: Setup, console: Console) -> None:
    entries, complaints = read_entries(setup.out)
    skipped(complaints, console)
    ours = [entry for entry in entries if entry.lab.id == lab.id]
    if ours:
        rules = lab.time
        boards = make_boards(
            ours,
            rules.attempts if rules else "best",
            due=rules.due_at if rules else None,
            rules=rules,
            references=reference_names(),
            ladders=setup.ladders,
        )
        console.print("", render.terminal(boards, None))


def _compile(tasks: Sequence[Task], setup: Setup, jobs: int, console: Console) -> int:
    """Compile into the build cache, for the GPUs that will grade."""
    compiling = [msgspec.structs.replace(task, kind="compile") for task in tasks]
    running.grade_tasks(compiling, lanes("cpu", jobs), setup, console)
    return exit_status.DONE


# --- at the end -------------------------------------------------------------------------------


def _summary(
    reports: Sequence[Report], lab: Lab, setup: Setup, console: Console, *, board: bool
) -> None:
    if board:
        _show_board(lab, setup, console)
    counts = Counter(report.verdict for report in reports)
    told = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
    console.print(Text(f"graded now: {len(reports)}" + (f" ({told})" if told else "")))
    faults = [report.task.student for report in reports if report.verdict is Verdict.IE]
    if faults:
        console.print(
            Text(
                f"the grader failed for {', '.join(map(one_line, faults))}: no result is stored; "
                "the same command tries again",
                style="bold yellow",
            ),
            soft_wrap=True,
        )
