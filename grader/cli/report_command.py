"""``grade report FILE``: show a stored result again, and write its page again."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from grader.cli import exit_status
from grader.cli.notices import say
from grader.cli.parser import Parser
from grader.cli.speaking import spoken
from grader.errors import Rejected, SubmissionError
from grader.model import Result, phrase
from grader.report import html, terminal
from grader.results import store
from grader.results.profiles import stored_profile
from grader.results.sources import kept_sources
from grader.submission.folder import load_submission, source_texts


def add_options(parser: Parser) -> None:
    parser.describe(phrase("Show a stored result again and write its page."))
    parser.add_argument("file", metavar="FILE", type=Path, help=phrase("a stored result document"))


def run(chosen: argparse.Namespace, console: Console) -> int:
    result = store.load(chosen.file)
    sources = sources_of(chosen.file, result)
    console.print(terminal.render(result, sources, spoken(console)))
    write_page(chosen.file, result, sources, console)
    return exit_status.DONE


def write_page(document: Path, result: Result, sources: dict[str, str], console: Console) -> None:
    """The student's page, beside the result document. Raises StoreError."""
    page = document.with_suffix(".html")
    shown = html.render(result, sources, spoken(console), stored_profile(document))
    store.write(page, shown.encode())
    say(console, phrase("report: {file}", file=str(page)))


def sources_of(document: Path, result: Result) -> dict[str, str]:
    """The sources of a stored result: kept beside it, else in submissions/ if they are still
    exactly those, else none."""
    reference = result.submission
    kept = kept_sources(document, reference.files)
    if kept is not None:
        return kept
    try:
        submission = load_submission(Path("submissions") / reference.student, result.problem.main)
    except (SubmissionError, Rejected, OSError):
        return {}
    return source_texts(submission.contents) if submission.sha256 == reference.sha256 else {}
