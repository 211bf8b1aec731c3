"""``grade result``: what is stored for a submission as it is now, told as ``grade`` told it."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from grader.errors import Rejected, StoreError
from grader.grading.pipeline import read_sources
from grader.labs.lab import load_lab
from grader.model import Result, Verdict
from grader.report import terminal
from grader.results import store
from grader.submission.folder import load_submission

STATUS = {Verdict.AC: 0, Verdict.IE: 3}  # of every other verdict: 1


def run(arguments: list[str], console: Console) -> int:
    options = _parser().parse_args(arguments)
    lab = load_lab(options.lab)
    try:
        submission = load_submission(options.submission)
    except Rejected as refusal:
        raise StoreError(f"{options.submission}: {refusal}; grade it to have that stored") from None
    devices = ("gpu", "cpu") if options.device == "auto" else (options.device,)
    paths = [
        store.document_path(options.out, lab.id, submission.student, submission.sha256, device)
        for device in devices
    ]
    found = next((path for path in paths if path.exists()), None)
    if found is None:
        raise StoreError(f"{options.submission}: no result of these files in {options.out}")
    result = store.load(found)
    slurm = result.environment.slurm
    if options.job and (slurm is None or slurm.job != options.job):
        raise StoreError(f"{options.submission}: the stored result is not of job {options.job}")
    console.print(terminal.render(result, read_sources(submission)))
    return status(result)


def status(result: Result) -> int:
    """The exit status of a grading with this result."""
    return STATUS.get(result.verdict, 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="grade result",
        description="Show the stored result of a submission's files as they are now.",
        epilog="exit status: as grade's own; 3 when there is no such result",
    )
    add = parser.add_argument
    add("submission", metavar="SUBMISSION", type=Path)
    add("--lab", metavar="FILE", type=Path, help="lab file (default: the SGEMM lab)")
    add("--device", choices=("auto", "gpu", "cpu"), default="auto", help="auto: the GPU's first")
    add("--out", metavar="DIR", type=Path, default=Path("results"), help="where results are")
    add("--job", metavar="ID", help="only what this job of Slurm recorded")
    return parser
