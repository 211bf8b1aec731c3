"""``scoring`` in a lab file: how measured times become points.

The policy oj is a short form. ``curve`` names its pieces: between two checkpoints points grow
linearly or exponentially. Its checkpoints stand in one of five measures: the ratio to the
baseline, the share of the GPU's roofline, the ratio to a rung of the reference ladder,
milliseconds for each size and GPU model, or the share of a GPU's roofline that the model of speeds
expects without one.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from msgspec import Meta

from grader.base import gpus
from grader.labs.yaml_file import at, say, show_size, wanted, wrong
from ptxsim.plan import Record
from ptxsim.text import Message

Positive = Annotated[float, Meta(gt=0, le=1e9)]  # the bound keeps infinity out
NotNegative = Annotated[float, Meta(ge=0, le=1e9)]
Name = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,40}$")]
CurveShape = Literal["linear", "exp"]
_MOST_RATE = 100.0  # of exp: its square is still a number


class Start(Record):
    """Where the first piece begins."""

    at: NotNegative = 0  # a ratio
    points: NotNegative = 0


class Stretch(Record):
    """One piece of a curve; it begins where the one before it ends."""

    name: Name
    points: NotNegative  # at its end
    to: Positive | None = None  # the ratio at its end; none in milliseconds
    shape: CurveShape = "linear"
    rate: float | None = None  # how bent it is; none of a straight piece


class Milliseconds(Record):
    """The checkpoints of one size on one GPU model: the start, then the end of every piece."""

    gpu: Name
    size: tuple[int, ...] | int
    at: tuple[Positive, ...]


class Scoring(Record):
    """How times become a score. ``measure``, ``rung``, ``gpu``, ``start``, ``pieces`` and
    ``milliseconds`` belong to the policy curve."""

    policy: Literal["oj", "curve"] = "oj"
    runs: Annotated[int, Meta(ge=1, le=100)] = 3
    cap: Positive = 100
    measure: Literal["baseline", "roofline", "rung", "ms", "model"] = "baseline"
    rung: Name | None = None  # its folder's name
    gpu: Name | None = None  # of the measure model: the card that it is asked about
    start: Start = Start()
    pieces: tuple[Stretch, ...] = ()
    milliseconds: tuple[Milliseconds, ...] = ()


# --- checks across fields ---------------------------------------------------------------------


def contradictions(
    scoring: Scoring, sizes: Sequence[tuple[int, ...] | int], capability: int, *, hidden: bool
) -> Iterator[Message]:
    """Mistakes that no single field shows. sizes: those of ``performance``; capability: that the
    simulator compiles for; hidden: whether some sizes are timed that the file does not name."""
    if scoring.policy == "curve":
        yield from _wrong_curve(scoring, hidden=hidden)
        yield from _wrong_card(scoring, capability)
        yield from _wrong_milliseconds(scoring, sizes)
        return
    policy = repr(scoring.policy)
    for name in ("rung", "gpu", "start", "pieces", "milliseconds"):
        if getattr(scoring, name) != getattr(Scoring(), name):
            yield wrong(f"scoring.{name}", "scoring.only-curve", policy=policy)
    if scoring.measure != "baseline":
        yield wrong("scoring.measure", "scoring.ratio", policy=policy)


def _wrong_curve(scoring: Scoring, *, hidden: bool) -> Iterator[Message]:
    if not scoring.pieces:
        yield wrong("scoring.pieces", "scoring.no-pieces")
    if scoring.measure == "rung" and scoring.rung is None:
        yield wrong("scoring.rung", "scoring.no-rung")
    if scoring.measure != "rung" and scoring.rung is not None:
        yield wrong("scoring.rung", "scoring.only-rung")
    if scoring.measure in ("rung", "ms", "model") and hidden:
        yield wrong("scoring.measure", "scoring.hidden-ratio")
    begins, points = scoring.start.at, scoring.start.points
    names: set[str] = set()
    for i, piece in enumerate(scoring.pieces):
        where = f"scoring.pieces[{i}]"
        if piece.name in names:
            yield wrong(f"{where}.name", "scoring.piece-taken", name=repr(piece.name))
        names.add(piece.name)
        if piece.points < points:
            yield wrong(f"{where}.points", "scoring.at-least", least=points)
        yield from _wrong_rate(piece, f"{where}.rate")
        if scoring.measure == "ms":
            if piece.to is not None:
                yield wrong(f"{where}.to", "scoring.in-milliseconds")
        elif piece.to is None:
            yield wrong(f"{where}.to", "scoring.no-end", words=say("scoring.end", least=begins))
        elif piece.to <= begins:
            yield wrong(f"{where}.to", "scoring.more-than", least=begins)
        begins, points = piece.to or begins, piece.points
    if scoring.pieces and points <= scoring.start.points:
        yield wrong("scoring.pieces", "scoring.no-point")


def _wrong_card(scoring: Scoring, capability: int) -> Iterator[Message]:
    field, named = "scoring.gpu", scoring.gpu
    if scoring.measure != "model":
        if named is not None:
            yield wrong(field, "scoring.only-model")
    elif named is None:
        yield wrong(field, "scoring.no-card")
    elif (card := gpus.find(named)) is None:
        alike = (gpu.name for gpu in gpus.known() if gpu.capability == capability)
        names = ", ".join(alike) or "-"
        yield wrong(field, "scoring.unknown-card", gpu=repr(named), names=names)
    elif card.capability != capability:
        yield wrong(field, "scoring.other-card", gpu=card.name, arch=card.capability)


def _wrong_rate(piece: Stretch, field: str) -> Iterator[Message]:
    rate = piece.rate
    if piece.shape == "linear":
        if rate is not None:
            yield wrong(field, "scoring.linear-rate")
    elif rate is None:
        yield wrong(field, "scoring.no-rate", shape=repr(piece.shape))
    elif not (rate and abs(rate) <= _MOST_RATE):
        yield at(field, wanted(say("scoring.exp-rate"), f"{rate:g}"))


def _wrong_milliseconds(
    scoring: Scoring, sizes: Sequence[tuple[int, ...] | int]
) -> Iterator[Message]:
    table, field = scoring.milliseconds, "scoring.milliseconds"
    if scoring.measure != "ms":
        if table:
            yield wrong(field, "scoring.only-ms")
        return
    if scoring.start.at:
        yield wrong("scoring.start.at", "scoring.in-milliseconds")
    if not table:
        yield wrong(field, "scoring.no-entry")
    seen: dict[tuple[str, object], int] = {}
    for i, each in enumerate(table):
        where = f"{field}[{i}]"
        if each.size not in sizes:
            yield wrong(f"{where}.size", "scoring.no-size", size=show_size(each.size))
        if (each.gpu, each.size) in seen:
            yield wrong(where, "scoring.same", entry=f"{field}[{seen[each.gpu, each.size]}]")
        seen[each.gpu, each.size] = i
        if len(each.at) != len(scoring.pieces) + 1:
            yield wrong(f"{where}.at", "scoring.times", count=len(scoring.pieces) + 1)
        for k, (before, time) in enumerate(itertools.pairwise(each.at), 1):
            if time >= before:
                yield wrong(f"{where}.at[{k}]", "scoring.less-than", before=before)
    for gpu, size in itertools.product(dict.fromkeys(each.gpu for each in table), sizes):
        if (gpu, size) not in seen:
            yield wrong(field, "scoring.nothing-for", size=show_size(size), gpu=gpu)
