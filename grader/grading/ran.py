from __future__ import annotations

from grader.errors import MachineError, OutOfTime, Rejected
from grader.judging import rulings
from grader.model import (
    BuildInfo,
    CaseResult,
    Explanation,
    Finding,
    GpuInfo,
    KernelLaunch,
    LineCount,
    Message,
    Record,
    Score,
    SizeGroup,
    Verdict,
)


class Ran(Record):
    """The results of the stages, as far as they ran."""

    verdict: Verdict
    error: Message | None = None
    build: BuildInfo | None = None
    cases: tuple[CaseResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    lines: tuple[LineCount, ...] = ()
    printed: str = ""
    launches: tuple[KernelLaunch, ...] = ()
    gpu: GpuInfo | None = None
    score: Score | None = None
    explanation: Explanation | None = None
    groups: tuple[SizeGroup, ...] = ()


ENDINGS = (Rejected, OutOfTime, MachineError, OSError)  # of a grading that cannot go on


def ended(failure: Rejected | OutOfTime | MachineError | OSError) -> Ran:
    """What is left of a grading that ``failure`` ended."""
    if isinstance(failure, OSError):  # such as a full disk or a deleted folder
        failure = MachineError.of(failure)
    verdict, error = rulings.of_failure(failure), failure.message
    if isinstance(failure, Rejected):
        return Ran(verdict=verdict, error=error, build=failure.build, findings=failure.findings)
    return Ran(verdict=verdict, error=error)
