"""Hold untimed launches to the pace of the timed ones.

An untimed launch could do work for the timed ones. Each may take ten times as long as the timed
launches of its size; if its size is not timed, the slowest pace of the timed sizes counts. The
limit includes another tenth of a second, for loading in a first launch and for thin sizes that keep
only one block busy. docs/verification.md says how far honest launches stay below it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from grader.backends.protocol import CaseOutcome
from grader.model import Finding, Kind, Mnk, Severity

_TIMES_AS_LONG = 10
_ON_TOP_MS = 100.0
_TILE = 256  # a kernel works on whole tiles, however thin the matrices are


def hold_to_pace(outcomes: Sequence[CaseOutcome]) -> tuple[CaseOutcome, ...]:
    """The outcomes, with a finding for each untimed launch that took too long.

    Call it after all measurements. Without a timed case there is no pace, and only the lab's limit
    applies.
    """
    paces = {each.size: _pace(each) for each in outcomes if each.timing}
    if not paces:
        return tuple(outcomes)
    slowest = max(paces.values())
    return tuple(_held(each, paces.get(each.size, slowest)) for each in outcomes)


def _pace(outcome: CaseOutcome) -> float:
    """Milliseconds per operation, in the slowest run or mode."""
    assert outcome.timing
    runs = [run.bench_tflops for run in outcome.timing.runs]
    tflops = min(*runs, outcome.timing.scored_tflops)
    return outcome.size.flops / (tflops * 1e9) / _operations(outcome.size)


def _operations(size: Mnk) -> int:
    m, n, k = (-(-extent // _TILE) * _TILE for extent in (size.m, size.n, size.k))
    return 2 * m * n * k


def _held(outcome: CaseOutcome, pace: float) -> CaseOutcome:
    most = _ON_TOP_MS + _TIMES_AS_LONG * pace * _operations(outcome.size)
    if outcome.untimed_ms is None or outcome.untimed_ms <= most:
        return outcome
    finding = Finding(
        kind=Kind.UNTIMED_WORK,
        severity=Severity.ERROR,
        message=f"a launch that was verified but not timed took {outcome.untimed_ms:.4g} ms; at "
        f"the pace of the timed launches it may take {most:.4g} ms. Do the same work in every call",
    )
    return msgspec.structs.replace(outcome, findings=(*outcome.findings, finding))
