"""A curve: pieces between checkpoints, from a position to points and back.

Within a piece, u runs from 0 at its start to 1 at its end, and the share of its points is

- linear: u
- exp with the rate r: (e^(r·u) − 1) / (e^r − 1); for r > 0 the last points are the cheapest
- log with the rate r: ln(1 + r·u) / ln(1 + r); the first points are the cheapest. It is the mirror
  image of exp with the rate ln(1 + r).

A position is a ratio, which grows, or milliseconds, which fall. Beyond the ends, the points are
those of the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from grader.model import Piece


def points_at(pieces: Sequence[Piece], position: float) -> float:
    """The points of a position."""
    for piece in pieces:
        along = (position - piece.start) / (piece.end - piece.start)
        if along < 0:
            return piece.low
        if along <= 1:
            return piece.low + (piece.high - piece.low) * _share(piece, along)
    return pieces[-1].high


def position_of(pieces: Sequence[Piece], points: float) -> float | None:
    """The first position that gives these points; None if none does."""
    for piece in pieces:
        if points <= piece.low:
            return piece.start
        if points <= piece.high:
            along = _along(piece, (points - piece.low) / (piece.high - piece.low))
            return piece.start + (piece.end - piece.start) * along
    return None


def most(pieces: Sequence[Piece]) -> float:
    return max(piece.high for piece in pieces)


def _share(piece: Piece, along: float) -> float:
    if piece.shape == "exp":
        return math.expm1(piece.rate * along) / math.expm1(piece.rate)
    if piece.shape == "log":
        return math.log1p(piece.rate * along) / math.log1p(piece.rate)
    return along


def _along(piece: Piece, share: float) -> float:
    """The inverse of ``_share``."""
    if piece.shape == "exp":
        return math.log1p(share * math.expm1(piece.rate)) / piece.rate
    if piece.shape == "log":
        return math.expm1(share * math.log1p(piece.rate)) / piece.rate
    return share
