"""The score: points, the curve that they come from, and groups of sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from grader.model.base import Verdict
from grader.model.finding import Kind
from ptxsim.records import Record

Shape = Literal["linear", "log", "exp"]
Measure = Literal["baseline", "rung", "ms"]


class Share(Record):
    """What one timed size counts in the score, against the other sizes."""

    case: str  # id
    weight: float


class Piece(Record):
    """A part of a curve between two checkpoints."""

    name: str  # "" of a policy that names none
    shape: Shape
    rate: float  # 0 of a linear piece
    start: float  # a ratio, or milliseconds, which fall
    end: float
    low: float  # points at the start
    high: float  # points at the end


class SizeCurve(Record):
    """The curve of one timed size, and the submission's place on it."""

    case: str  # id
    position: float  # in the curve's measure
    points: float
    measure: Measure  # what positions are: a ratio to the baseline or to a rung, or milliseconds
    rung: str | None  # that of the measure rung
    pieces: tuple[Piece, ...]  # each begins where the one before it ends


class Score(Record):
    total: float
    max: float
    policy: str
    shares: tuple[Share, ...] = ()  # () in older documents
    curves: tuple[SizeCurve, ...] = ()  # of the sizes that are not hidden; () before version 7


class SizeGroup(Record):
    """The public or the hidden sizes together: all that anybody is told of hidden ones."""

    name: Literal["public", "hidden"]
    weight: float  # against the other group's
    sizes: int  # how many count; 0: the hidden ones are not known here
    right: int
    verdict: Verdict | None  # of this group; null: not run
    mistakes: tuple[Kind, ...]  # kinds of the errors found at hidden sizes
    points: float | None  # of the group, from its timed sizes; of hidden ones a whole number


def share_right(groups: Sequence[SizeGroup]) -> float:
    """The weighted share of sizes that are right, of the groups that are known."""
    known = [group for group in groups if group.sizes]
    return sum(group.weight * group.right / group.sizes for group in known) / sum(
        group.weight for group in known
    )
