"""From measured cases to a score, by the lab's policy. Every policy is a curve (``curve.py``).

``oj``: the published judge's rule, 100 · max(own speed) / max(baseline's speed), at most the cap.
``linear`` and ``log``: between the lab's checkpoints (ratio → score), over the ratio or its
logarithm. ``curve``: the lab's own pieces. The score of several sizes is their weighted mean; of
public and hidden sizes, the weighted mean of the two groups.

If the repetitions of a size have two speeds (``Timing.modes``), every policy takes the slower.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from grader.errors import LabError
from grader.judging.curve import most, points_at
from grader.labs.lab import Case, Scoring
from grader.model import (
    CaseResult,
    Dims,
    Measure,
    Piece,
    Record,
    Score,
    Share,
    SizeCurve,
    Timing,
    Verdict,
    phrase,
)
from grader.problems.problem import Problem


class Yardstick(Record):
    """What the positions of one size are measured in, and the curve over them."""

    pieces: tuple[Piece, ...]
    measure: Measure = "baseline"
    rung: str | None = None
    rung_ratio: float = 1.0  # the rung's speed / the baseline's, at this size
    ms_at_unit_speed: float = 0.0  # what a call takes at a speed of 1


Yardsticks = Mapping[str, Yardstick]  # by the case's id
RungRatio = Callable[[str, Dims], float]  # of a rung's name, at a size


def yardsticks(
    scoring: Scoring, cases: Sequence[Case], problem: Problem, gpu: str, rung_ratio: RungRatio
) -> Yardsticks:
    """Of all cases. gpu: its model; rung_ratio: of a rung on it.

    Raises LabError if the lab says nothing of this GPU model, and what ``rung_ratio`` raises.
    """
    if scoring.policy != "curve" or scoring.measure == "baseline":
        return {case.id: beside_the_baseline(scoring) for case in cases}
    if scoring.measure == "ms":
        return {case.id: _in_milliseconds(scoring, case, problem, gpu) for case in cases}
    assert scoring.rung is not None
    pieces = _pieces(scoring, _ratios(scoring))
    return {
        case.id: Yardstick(
            pieces=pieces,
            measure="rung",
            rung=scoring.rung,
            rung_ratio=rung_ratio(scoring.rung, case.size.dims),
        )
        for case in cases
    }


def beside_the_baseline(scoring: Scoring) -> Yardstick:
    """That of the ratio to the baseline, which is the same at every size and on every GPU."""
    if scoring.policy == "curve":
        return Yardstick(pieces=_pieces(scoring, _ratios(scoring)))
    return Yardstick(pieces=_short_form(scoring))


def _in_milliseconds(scoring: Scoring, case: Case, problem: Problem, gpu: str) -> Yardstick:
    extents = case.size.extents
    size = extents if len(extents) > 1 else extents[0]
    for each in scoring.milliseconds:
        if each.gpu == gpu and each.size == size:
            ms = problem.amount(case.size) / problem.unit.scale * 1e3
            return Yardstick(pieces=_pieces(scoring, each.at), measure="ms", ms_at_unit_speed=ms)
    known = ", ".join(dict.fromkeys(each.gpu for each in scoring.milliseconds))
    raise LabError(
        phrase(
            "scoring.milliseconds: the lab has times for {known}, none for {gpu}; add entries for "
            "it",
            known=known,
            gpu=gpu,
        )
    )


def _ratios(scoring: Scoring) -> Sequence[float]:
    return (scoring.start.at, *(piece.to or 0.0 for piece in scoring.pieces))


def _pieces(scoring: Scoring, at: Sequence[float]) -> tuple[Piece, ...]:
    points = (scoring.start.points, *(piece.points for piece in scoring.pieces))
    return tuple(
        Piece(
            name=piece.name,
            shape=piece.shape,
            rate=piece.rate or 0.0,
            start=at[i],
            end=at[i + 1],
            low=points[i],
            high=points[i + 1],
        )
        for i, piece in enumerate(scoring.pieces)
    )


def _short_form(scoring: Scoring) -> tuple[Piece, ...]:
    """The curve of the policies oj, linear and log."""
    if scoring.policy == "oj":
        marks = [(0.0, 0.0), (scoring.cap / 100, scoring.cap)]
    else:
        marks = sorted((each.ratio, each.score) for each in scoring.checkpoints)
    log = scoring.policy == "log"
    return tuple(
        Piece(
            name="",
            shape="log" if log else "linear",
            # ln(x / start) / ln(end / start), written over u
            rate=end / start - 1 if log else 0.0,
            start=start,
            end=end,
            low=low,
            high=high,
        )
        for (start, low), (end, high) in itertools.pairwise(marks)
    )


# --- points -----------------------------------------------------------------------------------


def score(
    verdict: Verdict,
    cases: Sequence[Case],
    results: Sequence[CaseResult],
    scoring: Scoring,
    by: Yardsticks | None = None,
) -> Score | None:
    """The score of sizes that everybody may see; 0 unless ``verdict``, theirs, is AC. None if no
    case is timed. by: None for ratios to the baseline."""
    if not cases:
        return None
    by = by or {case.id: beside_the_baseline(scoring) for case in cases}
    highest = max(most(by[case.id].pieces) for case in cases)
    shares = tuple(Share(case=case.id, weight=case.weight) for case in cases)
    if verdict is not Verdict.AC:
        return Score(total=0.0, max=highest, policy=scoring.policy, shares=shares)
    timed = {each.id: each.timing for each in results if each.timing is not None}
    curves = tuple(
        _placed(id_, timing, scoring, by[id_]) for id_, timing in timed.items() if id_ in by
    )
    earned = weighted({curve.case: curve.points for curve in curves}, cases)
    if earned is None:
        return None
    return Score(
        total=round(earned, 2), max=highest, policy=scoring.policy, shares=shares, curves=curves
    )


def weighted(points: Mapping[str, float], cases: Sequence[Case]) -> float | None:
    """The weighted mean of the cases' points; None unless all have some."""
    if not cases or set(points) != {case.id for case in cases}:
        return None
    total = sum(case.weight for case in cases)
    return sum(case.weight * points[case.id] for case in cases) / total


def points(timing: Timing, scoring: Scoring, by: Yardstick | None = None) -> float:
    """The points for one size. by: None for the ratio to the baseline."""
    by = by or beside_the_baseline(scoring)
    return points_at(by.pieces, _position(timing, scoring, by))


def _placed(id_: str, timing: Timing, scoring: Scoring, by: Yardstick) -> SizeCurve:
    position = _position(timing, scoring, by)
    return SizeCurve(
        case=id_,
        position=position,
        points=points_at(by.pieces, position),
        measure=by.measure,
        rung=by.rung,
        pieces=by.pieces,
    )


def _position(timing: Timing, scoring: Scoring, by: Yardstick) -> float:
    """Where a measured size stands on its curve."""
    if by.measure == "ms":
        return by.ms_at_unit_speed / timing.scored_speed
    if scoring.policy == "oj":
        return timing.scored_speed / max(run.baseline_speed for run in timing.runs)
    return timing.scored_ratio / by.rung_ratio
