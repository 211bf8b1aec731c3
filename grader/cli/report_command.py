"""``grade report``: show a stored result again, as ``grade`` did, and write its page again."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from grader.base import Language, Rejected
from grader.cli.console import DONE, answer, say, speak_as, spoken, status_of
from grader.cli.defaults import chosen_lab
from grader.labs import SubmissionError, load_submission, source_texts
from grader.report import html, terminal
from grader.results import Result, StoreError, kept_sources, store, stored_profile
from ptxsim.text import Message, phrase


def run(chosen: argparse.Namespace, console: Console) -> int:
    named = chosen.result.suffix == ".json" or chosen.result.is_file()
    document = chosen.result if named else _find_document(chosen, console)
    result = store.load(document)
    slurm = result.environment.slurm
    if chosen.job and (slurm is None or slurm.job != chosen.job):
        other = phrase("{submission}: the stored result is not of job {job}")
        raise StoreError(other.given(submission=str(chosen.result), job=chosen.job))
    sources = sources_of(document, result)
    console.print(terminal.render(result, sources, spoken(console), chosen.detail))
    if not chosen.no_report:
        page = write_page(document, result, sources, spoken(console))
        (say if chosen.detail == "verdict" else answer)(console, page)
    return DONE if named else status_of(result)


def _find_document(chosen: argparse.Namespace, console: Console) -> Path:
    """Raises StoreError where the submission's current files have no result."""
    lab = chosen_lab(chosen)
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


def write_page(
    document: Path, result: Result, sources: dict[str, str], language: Language
) -> Message:
    """Write the student's page beside the result document; return where. Raises StoreError."""
    page = document.with_suffix(".html")
    store.write(page, html.render(result, sources, language, stored_profile(document)).encode())
    return phrase("report: {file}", file=str(page))


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
