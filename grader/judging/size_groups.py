"""Public and hidden sizes as groups. A hidden group says how many sizes are right, the verdict, one
kind of mistake and whole points: nothing else of a hidden size leaves this module.

Code under test chooses what goes wrong at which size. A line, a message, a value or a time would
be a channel through which it could tell the size. So would several kinds of mistakes: each would be
a bit, and a program can make them all at once. So one kind is kept, and no count. Points are
rounded, because code can choose how long it takes.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from grader.backends.protocol import CaseOutcome
from grader.errors import Rejected
from grader.judging import scoring
from grader.judging.verdicts import judge_cases, overall, weightiest
from grader.labs.lab import Case, Hidden, Lab
from grader.model import (
    CaseResult,
    Finding,
    Kind,
    Score,
    SizeGroup,
    Verdict,
)


def public_group(hidden: Hidden, results: Sequence[CaseResult], score: Score | None) -> SizeGroup:
    return SizeGroup(
        name="public",
        weight=hidden.public_weight,
        sizes=len(results),
        right=_right(results),
        verdict=overall(results),
        mistakes=(),
        points=score.total if score else None,
    )


def hidden_group(
    cases: Sequence[Case],
    outcomes: Sequence[CaseOutcome],
    lab: Lab,
    by: scoring.Yardsticks | None = None,
) -> SizeGroup:
    """by: for the points of the timed cases; None where nothing is timed."""
    assert lab.hidden is not None
    results = judge_cases(cases, outcomes, lab.problem, lab.rules)
    verdict = overall(results)
    return SizeGroup(
        name="hidden",
        weight=lab.hidden.weight,
        sizes=len(cases),
        right=_right(results),
        verdict=verdict,
        mistakes=_mistakes([each for outcome in outcomes for each in outcome.findings]),
        points=_points(verdict, results, lab, by) if by is not None else None,
    )


def _points(
    verdict: Verdict, results: Sequence[CaseResult], lab: Lab, by: scoring.Yardsticks
) -> float | None:
    assert lab.hidden is not None
    score = scoring.score(verdict, lab.hidden.performance, results, lab.scoring, by)
    return float(round(score.total)) if score else None


def not_run(hidden: Hidden, sizes: int) -> SizeGroup:
    """sizes: 0 where the seed is not at hand."""
    return SizeGroup(
        name="hidden",
        weight=hidden.weight,
        sizes=sizes,
        right=0,
        verdict=None,
        mistakes=(),
        points=None,
    )


def refused(hidden: Hidden, sizes: int, refusal: Rejected) -> SizeGroup:
    """Of a submission that a stage rejected for its hidden sizes."""
    return gone_wrong(not_run(hidden, sizes), refusal.verdict, refusal.findings)


def gone_wrong(group: SizeGroup, verdict: Verdict, findings: Sequence[Finding]) -> SizeGroup:
    """The group after something else than its sizes' runs went wrong."""
    points = None if group.points is None else 0.0
    return msgspec.structs.replace(
        group, verdict=verdict, mistakes=_mistakes(findings), points=points
    )


def _mistakes(findings: Sequence[Finding]) -> tuple[Kind, ...]:
    kind = weightiest(findings)
    return () if kind is None else (kind,)


def combined(score: Score | None, public: SizeGroup, hidden: SizeGroup) -> Score | None:
    """The score of both groups by their weights; the public one if nothing hidden is timed."""
    if score is None or hidden.points is None:
        return score
    both = public.weight + hidden.weight
    total = (public.weight * score.total + hidden.weight * hidden.points) / both
    return msgspec.structs.replace(score, total=round(total, 2))


def _right(results: Sequence[CaseResult]) -> int:
    return sum(result.verdict is Verdict.AC for result in results)
