"""The parts of a result document that boards, histories and rubrics need."""

from __future__ import annotations

from pathlib import Path

import msgspec

from grader.errors import StoreError, one_line
from grader.model import (
    Dims,
    GpuInfo,
    LabRef,
    ProblemInfo,
    Score,
    SizeGroup,
    Timing,
    Verdict,
    phrase,
    share_right,
)
from grader.model.moments import moment
from grader.results import store


class _Who(msgspec.Struct, frozen=True):
    student: str
    sha256: str
    submitted: str | None = None


class _Where(msgspec.Struct, frozen=True):
    device: str
    gpu: GpuInfo | None


class _Case(msgspec.Struct, frozen=True):
    size: Dims
    amount: int
    verdict: Verdict | None
    timing: Timing | None


class Entry(msgspec.Struct, frozen=True):
    """The fields of one document that many documents are read for; the rest is not decoded."""

    schema: str
    version: int
    created: str
    lab: LabRef
    problem: ProblemInfo
    submission: _Who
    environment: _Where
    cases: tuple[_Case, ...]
    verdict: Verdict
    score: Score | None
    groups: tuple[SizeGroup, ...] = ()

    @property
    def passed(self) -> int:
        """Sizes that are right, hidden ones included."""
        if self.groups:
            return sum(group.right for group in self.groups)
        return sum(case.verdict is Verdict.AC for case in self.cases)

    @property
    def sizes(self) -> int:
        return sum(group.sizes for group in self.groups) if self.groups else len(self.cases)

    @property
    def points(self) -> float:
        """The ranked figure: the score, or in the simulator the percentage of correct sizes."""
        if self.environment.device == "gpu":
            return round(self.score.total, 2) if self.score else 0.0
        if self.groups:
            return round(100 * share_right(self.groups), 2)
        return round(100 * self.passed / len(self.cases), 2) if self.cases else 0.0

    @property
    def fastest(self) -> tuple[float, float] | None:
        """Speeds of the submission and of the baseline, as scored, for the largest timed size."""
        timed = [case for case in self.cases if case.timing and case.timing.runs]
        if not timed:
            return None
        timing = max(timed, key=lambda case: case.amount).timing
        assert timing
        return (
            timing.scored_speed,
            max(run.baseline_speed for run in timing.runs),
        )


def read_entry(path: Path) -> Entry:
    """Raises StoreError that names the file and what is wrong with it."""
    entry = store.load_as(path, Entry)
    try:
        for time in (entry.created, entry.submission.submitted):
            if time is not None:
                moment(time)
    except ValueError as error:
        raise StoreError(
            phrase("{file}: damaged result document: {why}", file=one_line(path), why=str(error))
        ) from None
    return entry
