"""A score and its curves: pieces between checkpoints, from a position to points.

Within a piece, u runs from 0 at its start to 1 at its end, and the share of its points is

- linear: u
- exp with the rate r: (e^(r·u) − 1) / (e^r − 1); for r > 0 the last points are the cheapest
- step, where the model of speeds gives them: 0 before the end

A position is a ratio, which grows, or milliseconds, which fall. Beyond the ends, the points are
those of the end.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from grader.base import Dims, Kind, Verdict
from grader.labs import CurveShape
from ptxsim.plan import Record
from ptxsim.text import Message

Measure = Literal["baseline", "roofline", "rung", "ms", "model"]


class Share(Record):
    """Weight of one timed size in the score, against the other sizes."""

    case: str  # id
    weight: float


class Piece(Record):
    """A part of a curve between two checkpoints."""

    name: str  # "" of a policy that names none
    shape: CurveShape | Literal["step"]
    rate: float  # 0 of a linear piece
    start: float  # a ratio, or milliseconds, which fall
    end: float
    low: float  # points at the start
    high: float  # points at the end


class ExpectedSpeed(Record):
    """Speed that the model expects of a size, at least and at most."""

    size: Dims
    low: float
    high: float


class SizeCurve(Record):
    """The curve of one timed size, and the submission's place on it."""

    case: str  # id
    position: float  # in the curve's measure
    points: float
    # Positions: a ratio to the baseline, the roofline or a rung, or milliseconds; of the model the
    # share of the roofline that it expects at most.
    measure: Measure
    rung: str | None  # that of the measure rung
    pieces: tuple[Piece, ...]  # each begins where the one before it ends
    expected: ExpectedSpeed | None = None  # null where the speed was measured


class ByModel(Record):
    """Points that the model of speeds gives: nothing was measured."""

    gpu: str  # asked about
    ungraded: Message | None = None  # why it gives none to what is right


class Score(Record):
    total: float
    max: float
    policy: str
    shares: tuple[Share, ...] = ()
    curves: tuple[SizeCurve, ...] = ()  # of the sizes that are not hidden

    @property
    def of_roofline(self) -> dict[str, float]:
        """The shares of the roofline, by the case's id, where points follow them."""
        return {each.case: each.position for each in self.curves if each.measure == "roofline"}


class SizeGroup(Record):
    """The public or the hidden sizes together: all that anybody is told of hidden ones."""

    name: Literal["public", "hidden"]
    weight: float  # against the other group's
    sizes: int  # how many count; 0: the hidden ones are not known here
    right: int = 0
    verdict: Verdict | None = None  # of this group; null: not run
    mistakes: tuple[Kind, ...] = ()  # kinds of the errors found at hidden sizes
    points: float | None = None  # of the group, from its timed sizes; of hidden ones a whole number


# --- points ------------------------------------------------------------------------------------


def points_at(pieces: Sequence[Piece], position: float) -> float:
    for piece in pieces:
        along = (position - piece.start) / (piece.end - piece.start)
        if along < 0:
            return piece.low
        if along <= 1:
            return piece.low + (piece.high - piece.low) * _share(piece, along)
    return pieces[-1].high


def most(pieces: Sequence[Piece]) -> float:
    return max(piece.high for piece in pieces)


def _share(piece: Piece, along: float) -> float:
    if piece.shape == "step":
        return float(along >= 1)
    if piece.shape == "exp":
        return math.expm1(piece.rate * along) / math.expm1(piece.rate)
    return along


def weighted_mean(pairs: Iterable[tuple[float, float]]) -> float:
    """Return the mean of values; each pair is a weight and a value."""
    known = list(pairs)
    return sum(weight * value for weight, value in known) / sum(weight for weight, _ in known)


def mean_points(points: Mapping[str, float], shares: Sequence[Share]) -> float | None:
    """Return the points of all timed sizes together; None unless each has some."""
    if not shares or set(points) != {share.case for share in shares}:
        return None
    return weighted_mean((share.weight, points[share.case]) for share in shares)


def points_of(
    device: str,
    verdict: Verdict,
    sizes: Sequence[Verdict | None],
    groups: Sequence[SizeGroup],
    score: Score | None,
) -> float:
    """Return the points of a result: the score, or without one in the simulator, which cannot time
    anything, the percentage of right sizes."""
    if device == "gpu" or score:
        return score.total if score else 0.0
    if not sizes or not sizes_tell(verdict, sizes, groups):
        return 0.0
    if known := [group for group in groups if group.sizes]:
        return 100 * weighted_mean((group.weight, group.right / group.sizes) for group in known)
    return 100 * weighted_mean((1, each is Verdict.AC) for each in sizes)


def sizes_tell(
    verdict: Verdict, sizes: Sequence[Verdict | None], groups: Sequence[SizeGroup]
) -> bool:
    """Whether the sizes tell the verdict. A broken rule, for example, concerns all of them."""
    known = [*sizes, *(group.verdict for group in groups if group.sizes)]
    return all(each is Verdict.AC for each in known) == (verdict is Verdict.AC)
