"""What became of one size, made by hand, for the tests of the judge."""

from __future__ import annotations

import msgspec

from grader.base.finding import Finding
from grader.labs.lab import Case
from grader.run.protocol import CaseOutcome
from grader.run.statistics import Pair, summarise
from ptxsim.message import verbatim
from tests.support.product import speed
from tests.support.results import RIGHT


def outcome(
    case: Case,
    *findings: Finding,
    wrong: int = 0,
    times: tuple[float, float] | None = None,
    **changes: object,
) -> CaseOutcome:
    """It ran to its end, unless ``stopped`` is among the changes. times: milliseconds of submission
    and baseline, in each of six repetitions."""
    plain = CaseOutcome(
        id=case.id,
        size=case.size,
        refused=None,
        message=verbatim(f"{wrong} of 6 elements are wrong" if wrong else ""),
        stopped=None,
        seconds=1.0,
        error=None,
        findings=findings,
        lines=(),
        printed="",
    )
    if not changes.get("stopped"):
        assert RIGHT.error
        changes["error"] = msgspec.structs.replace(RIGHT.error, wrong=wrong)
    if times:
        pairs = [[Pair(bench_ms=times[0], baseline_ms=times[1])] * 6]
        changes["timing"] = summarise(pairs, speed(case.size))
    return msgspec.structs.replace(plain, **changes)
