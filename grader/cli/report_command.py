"""``grade report``: show a stored result again, as ``grade`` did, and write its page again."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from grader.base import Rejected
from grader.cli.chosen_lab import LAB, LabName, chosen_lab
from grader.cli.console import DONE, answer, say, speak_as, spoken, status_of
from grader.cli.formats import write_page
from grader.cli.options import OptionGroup, argument, option
from grader.cli.shared_options import (
    NO_REPORT,
    Device,
    Verbosity,
    find_submission,
    results_folder,
    stored_document,
)
from grader.labs import SubmissionError, load_submission, source_texts
from grader.report import terminal
from grader.results import Result, StoreError, kept_sources, store
from ptxsim.text import phrase


def _result(named: str) -> Path:
    return stored_document(named) if named.endswith(".json") else find_submission(named)


class ReportOptions(OptionGroup):
    """Show a stored result again and write its page: that of a document, or that of a submission's
    current files."""

    epilog = (
        "exit status: of a document 0; of a submission that of grade, 3 if there is no such result"
    )

    result: Path = argument(
        "a stored result document, or the folder of a submission", "FILE|SUBMISSION", type=_result
    )
    lab: LabName = LAB
    device: Device = option(
        "where it was graded; auto prefers the GPU's result (default: {default})", default="auto"
    )
    out: Path = results_folder(phrase("where results are (default: {default}/)"))
    job: str | None = option("only the result of this Slurm job", "ID")
    no_report: bool = NO_REPORT
    verbosity: Verbosity


def run(chosen: ReportOptions, console: Console) -> int:
    named = chosen.result.suffix == ".json" or chosen.result.is_file()
    document = chosen.result if named else _find_document(chosen, console)
    result = store.load(document)
    slurm = result.environment.slurm
    if chosen.job and (slurm is None or slurm.job != chosen.job):
        other = phrase("{submission}: the stored result is not of job {job}")
        raise StoreError(other.given(submission=str(chosen.result), job=chosen.job))
    sources = sources_of(document, result)
    console.print(terminal.render(result, sources, spoken(console), chosen.verbosity.detail))
    if not chosen.no_report:
        page = write_page(document, result, sources, spoken(console))
        (say if chosen.verbosity.detail == "verdict" else answer)(console, page)
    return DONE if named else status_of(result)


def _find_document(chosen: ReportOptions, console: Console) -> Path:
    """Raises StoreError where the submission's current files have no result."""
    lab = chosen_lab(chosen.lab)
    speak_as(lab, console)
    try:
        submission = load_submission(chosen.result, lab.problem.interface.main)
    except Rejected as refusal:
        rejected = phrase("{submission}: {why}; grade it to store that")
        why = refusal.message
        raise StoreError(rejected.given(submission=str(chosen.result), why=why)) from None
    for device in ("gpu", "cpu") if chosen.device == "auto" else (chosen.device,):
        who = submission.student
        path = store.document_path(chosen.out, lab.id, who, submission.sha256, device)
        if path.exists():
            return path
    none = phrase("{submission}: no result of these files in {folder}")
    raise StoreError(none.given(submission=str(chosen.result), folder=str(chosen.out)))


def sources_of(document: Path, result: Result) -> dict[str, str]:
    """The sources of a stored result: kept beside it, else unchanged in submissions/, else none."""
    reference = result.submission
    kept = kept_sources(document, reference.files)
    if kept is not None:
        return kept
    try:
        submission = load_submission(Path("submissions") / reference.student, result.problem.main)
    except (SubmissionError, Rejected, OSError):
        return {}
    return source_texts(submission.contents) if submission.sha256 == reference.sha256 else {}
