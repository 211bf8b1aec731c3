"""``grade ladder``: grade every reference rung, write the table and the page; resumes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from rich.console import Console

import grader
from grader import results
from grader.base import Verdict
from grader.cli import class_grading as many
from grader.cli.console import DONE, FAULT, say, spoken
from grader.cli.devices import choose_device
from grader.cli.options import OptionGroup, argument, flag, option
from grader.cli.shared_options import Batch
from grader.judge import GradingContext
from grader.labs import LADDER_LAB, Entrant, Lab, find_lab, load_lab, load_listed, load_submission
from grader.results import LabRef, Result
from grader.run import gpu_names
from grader.study import Setup, Task, ceilings, course_cards, ladder_render, lanes, run_host
from ptxsim.text import phrase


class LadderOptions(OptionGroup):
    """Grade the reference rungs; write a table, a page and a document for this GPU model. Rungs
    that already have a result are not graded again."""

    epilog = (
        "exit status: 0 all graded; 2 wrong usage; 3 the grader or the machine failed for a rung: "
        "the same command tries it again"
    )

    folder: Path | None = argument(
        "folder of rungs (default: reference/LAB here, else in the checkout)", "DIR"
    )
    bounds: bool = flag(
        "say too what each rung can reach at most on an A100 and an RTX 2080 Ti; takes some "
        "seconds for each rung, once for each source"
    )
    lab: str | None = option(
        "a lab file, or one of the labs that grade labs lists (default: {default})",
        "LAB",
        unset=phrase("the ladder's own"),
    )
    batch: Batch


def run(chosen: LadderOptions, console: Console) -> int:
    batch = chosen.batch
    lab_file = find_lab(chosen.lab) if chosen.lab else LADDER_LAB
    lab = load_lab(lab_file)
    reference = results.find_reference(chosen.folder, lab.id, *results.alike(lab))
    rungs = results.find_rungs(reference)
    entrants = [Entrant(student=rung.name, source=reference / rung.name) for rung in rungs]
    wanted = {each.student for each in many.chosen_entrants(entrants, batch.only)}
    arch = choose_device(batch.device, console)
    gpu = gpu_names()[0] if arch else None
    setup = Setup(
        lab=lab_file,
        sandbox=batch.sandbox,
        gpu_arch=arch,
        out=results.folder(batch.out, gpu),
        report=not batch.no_report,
        language=spoken(console).code,
    )
    context = setup.context()
    course_cards()  # raises for a wrong one, before anything is compiled
    host = run_host(reference)
    tasks = [Task.grading(each) for each in entrants if each.student in wanted]
    waiting = many.left_over(tasks, lab, setup, console, force=batch.force)
    reports = many.grade_tasks(waiting, lanes(setup.device, batch.jobs), setup, console)
    default = lab.problem.info().like(load_lab(LADDER_LAB).problem.info())
    path = results.document_path(batch.out, gpu, "" if default else lab.id)
    ladder = results.make_ladder(
        rungs,
        {result.submission.student: result for result in _stored(entrants, lab, setup)},
        LabRef(id=lab.id, sha256=lab.sha256),
        lab.problem.info(),
        grader=grader.__version__,
        host=host,
        ceilings=_bounds(entrants, wanted if chosen.bounds else (), path, context, console),
    )
    console.print("", ladder_render.terminal(ladder, spoken(console)), "")
    results.store.write_document(path, ladder)
    say(console, phrase("result: {file}", file=str(path)))
    if setup.report:
        page = path.with_suffix(".html")
        results.store.write(page, ladder_render.html(ladder, spoken(console)).encode())
        say(console, phrase("page: {page}", page=str(page)))
    return FAULT if any(report.verdict is Verdict.IE for report in reports) else DONE


def _bounds(
    entrants: Sequence[Entrant],
    wanted: Collection[str],
    path: Path,
    context: GradingContext,
    console: Console,
) -> dict[str, tuple[results.Ceiling, ...]]:
    """Ceilings by rung: the last document's for an unchanged source, new ones for ``wanted``."""
    steps = results.load_ladder(path).steps if path.exists() else ()
    last = {step.sha256: step.ceilings for step in steps}
    found = {}
    for entrant in entrants:
        submission = load_submission(entrant.source, main=context.lab.problem.interface.main)
        kept = last.get(submission.sha256, ())
        if not kept and entrant.student in wanted:
            say(console, phrase("{rung}: bounds", rung=entrant.student))
            kept = ceilings(submission, context)
        found[entrant.student] = kept
    return found


def _stored(entrants: Sequence[Entrant], lab: Lab, setup: Setup) -> Iterator[Result]:
    """The results of exactly these sources by exactly this lab file, from any run."""
    ours = LabRef(id=lab.id, sha256=lab.sha256)
    for each in entrants:
        sha256 = load_listed(each.source, each.student, lab.problem.interface.main).sha256
        path = results.store.document_path(setup.out, lab.id, each.student, sha256, setup.device)
        if path.exists() and (result := results.store.load(path)).lab == ours:
            yield result
