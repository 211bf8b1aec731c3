"""``grade result``: show the stored result of a submission's current files, as ``grade`` did."""

from __future__ import annotations

import argparse

from rich.console import Console

from grader.cli import exit_status, options
from grader.cli.parser import Parser
from grader.cli.speaking import speak_as, spoken
from grader.errors import Rejected, StoreError
from grader.labs.lab import find_lab, load_lab
from grader.model import phrase
from grader.report import terminal
from grader.results import store
from grader.submission.folder import load_submission, source_texts


def add_options(parser: Parser) -> None:
    parser.describe(phrase("Show the stored result of a submission's current files."))
    parser.epilog = parser.language(
        phrase("exit status: that of grade; 3 if there is no such result")
    )
    options.submission(parser)
    options.lab(parser)
    options.device(parser, phrase("where it was graded; auto prefers the GPU's result"))
    options.out(parser, phrase("where results are"))
    parser.add_argument("--job", metavar="ID", help=phrase("only the result of this Slurm job"))


def run(chosen: argparse.Namespace, console: Console) -> int:
    lab = load_lab(find_lab(chosen.lab))
    speak_as(lab, console)
    try:
        submission = load_submission(chosen.submission, lab.problem.interface.main)
    except Rejected as refusal:
        raise StoreError(
            phrase(
                "{submission}: {why}; grade it to store that",
                submission=str(chosen.submission),
                why=refusal.message,
            )
        ) from None
    devices = ("gpu", "cpu") if chosen.device == "auto" else (chosen.device,)
    paths = [
        store.document_path(chosen.out, lab.id, submission.student, submission.sha256, device)
        for device in devices
    ]
    found = next((path for path in paths if path.exists()), None)
    if found is None:
        raise StoreError(
            phrase(
                "{submission}: no result of these files in {folder}",
                submission=str(chosen.submission),
                folder=str(chosen.out),
            )
        )
    result = store.load(found)
    slurm = result.environment.slurm
    if chosen.job and (slurm is None or slurm.job != chosen.job):
        raise StoreError(
            phrase(
                "{submission}: the stored result is not of job {job}",
                submission=str(chosen.submission),
                job=chosen.job,
            )
        )
    console.print(terminal.render(result, source_texts(submission.contents), spoken(console)))
    return exit_status.of(result)
