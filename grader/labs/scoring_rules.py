"""``scoring`` in a lab file: how measured times become points.

The policies oj, linear and log are short forms. ``curve`` names its pieces: between two checkpoints
points grow linearly, logarithmically or exponentially. Its checkpoints stand in one of three
measures: the ratio to the baseline, the ratio to a rung of the reference ladder, or milliseconds
for each size and GPU model.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from msgspec import Meta

from grader.base import Shape
from grader.labs.yaml_file import at, show_size, wanted
from ptxsim.message import Message, phrase
from ptxsim.records import Record

Positive = Annotated[float, Meta(gt=0, le=1e9)]  # the bound keeps infinity out
NotNegative = Annotated[float, Meta(ge=0, le=1e9)]
Name = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,40}$")]
_MOST_RATE = 100.0  # of exp: its square is still a number


class Checkpoint(Record):
    ratio: Positive  # submission's speed / baseline's
    score: NotNegative


class Start(Record):
    """Where the first piece begins."""

    at: NotNegative = 0  # a ratio
    points: NotNegative = 0


class Stretch(Record):
    """One piece of a curve; it begins where the one before it ends."""

    name: Name
    points: NotNegative  # at its end
    to: Positive | None = None  # the ratio at its end; none in milliseconds
    shape: Shape = "linear"
    rate: float | None = None  # how bent it is; none of a straight piece


class Milliseconds(Record):
    """The checkpoints of one size on one GPU model: the start, then the end of every piece."""

    gpu: Name
    size: tuple[int, ...] | int
    at: tuple[Positive, ...]


class Scoring(Record):
    """How times become a score. ``checkpoints`` belong to the policies linear and log; ``measure``,
    ``rung``, ``start``, ``pieces`` and ``milliseconds`` to the policy curve."""

    policy: Literal["oj", "linear", "log", "curve"] = "oj"
    runs: Annotated[int, Meta(ge=1, le=100)] = 3
    cap: Positive = 100
    checkpoints: tuple[Checkpoint, ...] = ()
    measure: Literal["baseline", "rung", "ms"] = "baseline"
    rung: Name | None = None  # its folder's name
    start: Start = Start()
    pieces: tuple[Stretch, ...] = ()
    milliseconds: tuple[Milliseconds, ...] = ()


_IN_MILLISECONDS = phrase("measure: ms has scoring.milliseconds instead; remove it")


# --- checks across fields ---------------------------------------------------------------------


def contradictions(
    scoring: Scoring, sizes: Sequence[tuple[int, ...] | int], *, hidden: bool
) -> Iterator[Message]:
    """Mistakes that no single field shows. sizes: those of ``performance``; hidden: whether some
    that the file does not name are timed, too."""
    if scoring.policy == "curve":
        yield from _wrong_curve(scoring, hidden=hidden)
        yield from _wrong_milliseconds(scoring, sizes)
        return
    policy = repr(scoring.policy)
    for name in ("rung", "start", "pieces", "milliseconds"):
        if getattr(scoring, name) != getattr(Scoring(), name):
            only = phrase("the policy {policy} has none; policy: curve has", policy=policy)
            yield at(f"scoring.{name}", only)
    if scoring.measure != "baseline":
        ratio = phrase("the policy {policy} is a ratio to the baseline", policy=policy)
        yield at("scoring.measure", ratio)
    yield from _wrong_checkpoints(scoring)


def _wrong_checkpoints(scoring: Scoring) -> Iterator[Message]:
    field = "scoring.checkpoints"
    if scoring.policy == "oj":
        if scoring.checkpoints:
            yield at(field, phrase("the policy 'oj' has none; remove them or change the policy"))
        return
    if len(scoring.checkpoints) < 2:
        policy = repr(scoring.policy)
        yield at(field, phrase("the policy {policy} needs at least 2", policy=policy))
    for i in range(1, len(scoring.checkpoints)):
        if scoring.checkpoints[i].ratio <= scoring.checkpoints[i - 1].ratio:
            more = phrase("expected more than checkpoint {before}'s ratio", before=i - 1)
            yield at(f"{field}[{i}].ratio", more)


def _wrong_curve(scoring: Scoring, *, hidden: bool) -> Iterator[Message]:
    if scoring.checkpoints:
        instead = phrase("the policy 'curve' has pieces instead; write them there")
        yield at("scoring.checkpoints", instead)
    if not scoring.pieces:
        yield at("scoring.pieces", phrase("missing; the policy 'curve' needs at least one"))
    if scoring.measure == "rung" and scoring.rung is None:
        yield at("scoring.rung", phrase("missing; measure: rung needs the name of a rung's folder"))
    if scoring.measure != "rung" and scoring.rung is not None:
        only = phrase("only measure: rung has one; remove it or change the measure")
        yield at("scoring.rung", only)
    if scoring.measure != "baseline" and hidden:
        ratio = phrase(
            "hidden sizes are timed, and only the baseline is measured at them; take measure: "
            "baseline"
        )
        yield at("scoring.measure", ratio)
    begins, points = scoring.start.at, scoring.start.points
    names: set[str] = set()
    for i, piece in enumerate(scoring.pieces):
        where = f"scoring.pieces[{i}]"
        if piece.name in names:
            taken = phrase("{name} is taken by another piece", name=repr(piece.name))
            yield at(f"{where}.name", taken)
        names.add(piece.name)
        if piece.points < points:
            more = phrase("expected at least {least:g}, where the piece begins", least=points)
            yield at(f"{where}.points", more)
        yield from _wrong_rate(piece, where)
        if scoring.measure == "ms":
            if piece.to is not None:
                yield at(f"{where}.to", _IN_MILLISECONDS)
        elif piece.to is None:
            words = phrase("a ratio > {least:g}, where the piece begins", least=begins)
            yield at(f"{where}.to", phrase("missing; expected {words}", words=words))
        elif piece.to <= begins:
            more = phrase("expected more than {least:g}, where the piece begins", least=begins)
            yield at(f"{where}.to", more)
        begins, points = piece.to or begins, piece.points
    if scoring.pieces and points <= scoring.start.points:
        none = phrase("no piece gives a point; the last must end above scoring.start.points")
        yield at("scoring.pieces", none)


def _wrong_rate(piece: Stretch, where: str) -> Iterator[Message]:
    rate, field = piece.rate, f"{where}.rate"
    if piece.shape == "linear":
        if rate is not None:
            yield at(field, phrase("a linear piece has none; remove it or name a shape"))
    elif rate is None:
        shape = repr(piece.shape)
        yield at(field, phrase("missing; the shape {shape} needs one, such as 1.5", shape=shape))
    elif piece.shape == "log" and not 0 < rate <= 1e9:
        yield at(field, wanted(phrase("a number > 0"), f"{rate:g}"))
    elif piece.shape == "exp" and not (rate and abs(rate) <= _MOST_RATE):
        yield at(field, wanted(phrase("a number from -100 to 100 that is not 0"), f"{rate:g}"))


def _wrong_milliseconds(
    scoring: Scoring, sizes: Sequence[tuple[int, ...] | int]
) -> Iterator[Message]:
    table, field = scoring.milliseconds, "scoring.milliseconds"
    if scoring.measure != "ms":
        if table:
            yield at(field, phrase("only measure: ms has them; remove them"))
        return
    if scoring.start.at:
        yield at("scoring.start.at", _IN_MILLISECONDS)
    if not table:
        yield at(field, phrase("missing; measure: ms needs one entry for each size and GPU"))
    seen: dict[tuple[str, object], int] = {}
    for i, each in enumerate(table):
        where = f"{field}[{i}]"
        if each.size not in sizes:
            none = phrase("{size} is none of the performance sizes", size=show_size(each.size))
            yield at(f"{where}.size", none)
        if (each.gpu, each.size) in seen:
            first = f"{field}[{seen[each.gpu, each.size]}]"
            yield at(where, phrase("the same GPU and size as {entry}", entry=first))
        seen[each.gpu, each.size] = i
        if len(each.at) != len(scoring.pieces) + 1:
            times = phrase(
                "expected {count} times: the start, and the end of every piece",
                count=len(scoring.pieces) + 1,
            )
            yield at(f"{where}.at", times)
        for k in range(1, len(each.at)):
            if each.at[k] >= each.at[k - 1]:
                less = phrase(
                    "expected less than {before:g}: more points, less time", before=each.at[k - 1]
                )
                yield at(f"{where}.at[{k}]", less)
    for gpu, size in itertools.product(dict.fromkeys(each.gpu for each in table), sizes):
        if (gpu, size) not in seen:
            nothing = phrase(
                "nothing for {size} on {gpu}; add an entry", size=show_size(size), gpu=gpu
            )
            yield at(field, nothing)
