"""From measured cases to a score, by the lab's policy.

``oj``: the published judge's rule, 100 · max(own speed) / max(baseline's speed), at most the cap.
``linear`` and ``log``: linear interpolation between the lab's checkpoints (ratio → score), over the
ratio or its logarithm; beyond the ends, the score of the end. The score of several sizes is their
weighted mean.

If the repetitions of a size have two speeds (``Timing.modes``), every policy takes the slower.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from grader.labs.lab import Case, Scoring
from grader.model import CaseResult, Score, Share, Timing, Verdict


def score(
    verdict: Verdict, cases: Sequence[Case], results: Sequence[CaseResult], scoring: Scoring
) -> Score | None:
    """The submission's score; 0 unless it is accepted, None if no case is timed."""
    weights = {case.id: case.weight for case in cases}
    highest = _highest(scoring)
    if not weights:
        return None
    shares = tuple(Share(case=id_, weight=weight) for id_, weight in weights.items())
    if verdict is not Verdict.AC:
        return Score(total=0.0, max=highest, policy=scoring.policy, shares=shares)
    timed = {r.id: r.timing for r in results if r.timing is not None}
    if set(timed) != set(weights):
        return None
    total = sum(weights.values())
    earned = sum(w * points(timed[id_], scoring) for id_, w in weights.items()) / total
    return Score(total=round(earned, 2), max=highest, policy=scoring.policy, shares=shares)


def points(timing: Timing, scoring: Scoring) -> float:
    """The points for one size."""
    if scoring.policy == "oj":
        baseline = max(run.baseline_speed for run in timing.runs)
        return min(100 * timing.scored_speed / baseline, scoring.cap)
    scale = math.log if scoring.policy == "log" else float
    marks = sorted((scale(c.ratio), c.score) for c in scoring.checkpoints)
    at = scale(timing.scored_ratio)
    if at <= marks[0][0]:
        return marks[0][1]
    for (x0, y0), (x1, y1) in itertools.pairwise(marks):
        if at <= x1:
            return y0 + (y1 - y0) * (at - x0) / (x1 - x0)
    return marks[-1][1]


def _highest(scoring: Scoring) -> float:
    if scoring.policy == "oj":
        return scoring.cap
    return max(checkpoint.score for checkpoint in scoring.checkpoints)
