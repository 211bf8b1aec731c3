"""What a device that runs launch plans gets, and what it tells the judge.

``simulator.device.CpuDevice`` and ``gpu.device.GpuDevice`` run plans with fresh inputs and verify
the results. Each is a context manager: leaving it ends every process that it started.
"""

from __future__ import annotations

from collections.abc import Callable

from grader.backends.statistics import Clocked
from grader.errors import GraderError, Rejected
from grader.model import (
    ErrorStats,
    Finding,
    LineCount,
    Message,
    Plan,
    Record,
    Size,
    Timing,
    Verdict,
    verbatim,
)

Progress = Callable[[str, str], None]  # the stage, and how far it is


class PlannedCase(Record):
    """A case of the lab with the launches that the submission makes for its size."""

    id: str
    plan: Plan


class CaseOutcome(Record):
    """What happened when one case ran, or why it did not run. The judge gives the verdict."""

    id: str
    size: Size
    refused: Verdict | None  # an earlier stage ended this case; ``message`` says why
    message: Message  # of the refusal, the stop or the verification; empty when all is well
    stopped: str | None  # "time", "deadlock" or "crash": the GPU's context broke
    seconds: float | None  # wall
    error: ErrorStats | None  # null when refused or stopped
    findings: tuple[Finding, ...]
    lines: tuple[LineCount, ...]
    printed: str  # by device printf, cut to a readable length
    timing: Timing | None = None  # of the cases that are timed
    untimed_ms: float | None = None  # on a GPU: the launch that was verified, or warmed up, only
    clocks: tuple[tuple[Clocked, Clocked], ...] = ()  # of each repetition: submission, baseline


class Finished(Record, tag="finished"):
    """A worker's reply about one case."""

    outcome: CaseOutcome


class Failed(Record, tag="failed"):
    """A worker's reply: the grader's fault or the machine's, in one line."""

    message: Message

    @staticmethod
    def of(error: Exception) -> Failed:
        own = error.message if isinstance(error, GraderError) else verbatim(str(error))
        return Failed(message=own)


class Done(Record, tag="done"):
    """A worker's last reply to a job: every case has an answer, or was skipped on purpose."""


def refused(case_id: str, size: Size, refusal: Rejected) -> CaseOutcome:
    """The outcome of a case that never ran because a stage refused it."""
    return CaseOutcome(
        id=case_id,
        size=size,
        refused=refusal.verdict,
        message=refusal.message,
        stopped=None,
        seconds=None,
        error=None,
        findings=refusal.findings,
        lines=(),
        printed="",
    )
