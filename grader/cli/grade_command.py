"""``grade SUBMISSION…``: grade, show and store; the default command."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
from rich.console import Console

import grader
from grader.base import UsageError, gpus, moment
from grader.cli import ahead
from grader.cli.chosen_lab import LAB, LabName, chosen_lab, known_hidden
from grader.cli.console import aside, speak_as
from grader.cli.options import OptionGroup, flag, option
from grader.cli.shared_options import (
    CARD,
    DEVICE,
    NO_REPORT,
    OUT,
    SANDBOX,
    SUBMISSION,
    Device,
    Verbosity,
)
from grader.labs import Lab, revealed
from grader.sandbox import Mode

_VERSION = f"grade {grader.__version__}"

Format = Literal["json", "github", "sarif", "gradescope", "prairielearn", "csoj"]


def _moment(text: str) -> str:
    return moment(text).isoformat(timespec="seconds")


class GradeOptions(OptionGroup):
    """Grade CUDA submissions: compile, run, verify, and point at bugs."""

    submissions: tuple[Path, ...] = SUBMISSION
    lab: LabName = LAB
    reveal: bool = flag(
        "show hidden sizes, which requires their seed file, and withheld help; store nothing"
    )
    device: Device = DEVICE
    gpu: gpus.Gpu | None = CARD
    out: Path = OUT
    json: bool = flag("print each result document on stdout, as one line")
    format: Format | None = option(
        "what a CI reads on stdout in the same call; else use grade export",
        "json|github|csoj|prairielearn",
    )
    submitted: str | None = option(
        "when it was handed in, ISO 8601 with a zone; the result keeps it", "TIME", type=_moment
    )
    memory_mb: int | None = option(
        "no process may have more memory than this (default: limits.memory_mb of the lab)", "N"
    )
    no_report: bool = NO_REPORT
    verbosity: Verbosity
    sandbox: Mode = SANDBOX
    version: bool = flag("show the version and exit", "-V", action="version", version=_VERSION)

    @property
    def written_as(self) -> Format | None:
        return self.format or ("json" if self.json else None)


def run(chosen: GradeOptions, console: Console) -> int:
    if chosen.device != "cpu":
        ahead.start_driver()
    if chosen.written_as not in (None, "json") and len(chosen.submissions) > 1:
        raise UsageError.saying("--format {name}: name one submission", name=chosen.written_as)
    lab = _lab(chosen)
    speak_as(lab, console)
    if chosen.written_as:  # stdout is that other program's; but see formats.show
        console = aside(console)
    from grader.cli.devices import standby  # what --help does not need

    with standby(chosen.device, lab) as gpu:
        # Not before: the GPU's worker loads its libraries while these are loaded.
        from grader.cli.grading import grade_each

        return grade_each(chosen, lab, console, gpu)


def _lab(chosen: GradeOptions) -> Lab:
    lab = chosen_lab(chosen.lab)
    if chosen.reveal:
        known_hidden(lab)
        lab = revealed(lab)
    if chosen.memory_mb:
        least = min(lab.limits.memory_mb, chosen.memory_mb)
        limits = msgspec.structs.replace(lab.limits, memory_mb=least)
        lab = msgspec.structs.replace(lab, limits=limits)
    return lab
