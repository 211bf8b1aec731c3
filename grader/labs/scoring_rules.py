"""``scoring`` in a lab file: how measured times become points.

The policies oj, linear and log are short forms. ``curve`` names its pieces: between two checkpoints
points grow linearly, logarithmically or exponentially. Its checkpoints stand in one of three
measures: the ratio to the baseline, the ratio to a rung of the reference ladder, or milliseconds
for each size and GPU model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from msgspec import Meta

from grader.model import Record, Shape

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


WORDS = {
    "scoring.runs": "an integer from 1 to 100",
    "scoring.cap": "a number > 0",
    "scoring.checkpoints": "a list of {ratio: 0.5, score: 60}",
    "scoring.checkpoints[].ratio": "a number > 0",
    "scoring.checkpoints[].score": "a number ≥ 0",
    "scoring.rung": "the name of a rung's folder, such as 16_float4",
    "scoring.start": "where the first piece begins, such as {at: 0, points: 0}",
    "scoring.start.at": "a ratio ≥ 0",
    "scoring.start.points": "a number ≥ 0",
    "scoring.pieces": "a list of {name: start, to: 0.5, points: 60}",
    "scoring.pieces[].name": "at most 40 characters",
    "scoring.pieces[].points": "a number ≥ 0",
    "scoring.pieces[].to": "a ratio > 0",
    "scoring.pieces[].rate": "a number",
    "scoring.milliseconds": "a list of {gpu: NVIDIA H200, size: [M, N, K], at: [200, 50, 22]}",
    "scoring.milliseconds[].gpu": "the GPU's model as its driver names it, such as NVIDIA H200",
    "scoring.milliseconds[].size": "one of the performance sizes",
    "scoring.milliseconds[].at": "a list of milliseconds > 0",
    "scoring.milliseconds[].at[]": "milliseconds > 0",
}
SECTIONS: dict[str, type[Record]] = {
    "scoring": Scoring,
    "scoring.checkpoints[]": Checkpoint,
    "scoring.start": Start,
    "scoring.pieces[]": Stretch,
    "scoring.milliseconds[]": Milliseconds,
}


# --- checks across fields ---------------------------------------------------------------------


def contradictions(
    scoring: Scoring, sizes: Sequence[tuple[int, ...] | int], *, hidden: bool
) -> Iterator[str]:
    """Mistakes that no single field shows. sizes: those of ``performance``; hidden: whether some
    that the file does not name are timed, too."""
    if scoring.policy == "curve":
        yield from _wrong_curve(scoring, hidden=hidden)
        yield from _wrong_milliseconds(scoring, sizes)
        return
    for name in ("rung", "start", "pieces", "milliseconds"):
        if getattr(scoring, name) != getattr(Scoring(), name):
            yield f"scoring.{name}: the policy {scoring.policy!r} has none; policy: curve has"
    if scoring.measure != "baseline":
        yield f"scoring.measure: the policy {scoring.policy!r} is a ratio to the baseline"
    yield from _wrong_checkpoints(scoring)


def _wrong_checkpoints(scoring: Scoring) -> Iterator[str]:
    if scoring.policy == "oj":
        if scoring.checkpoints:
            yield "scoring.checkpoints: the policy 'oj' has none; remove them or change the policy"
        return
    if len(scoring.checkpoints) < 2:
        yield f"scoring.checkpoints: the policy {scoring.policy!r} needs at least 2"
    for i in range(1, len(scoring.checkpoints)):
        if scoring.checkpoints[i].ratio <= scoring.checkpoints[i - 1].ratio:
            yield f"scoring.checkpoints[{i}].ratio: expected more than checkpoint {i - 1}'s ratio"


def _wrong_curve(scoring: Scoring, *, hidden: bool) -> Iterator[str]:
    if scoring.checkpoints:
        yield "scoring.checkpoints: the policy 'curve' has pieces instead; write them there"
    if not scoring.pieces:
        yield "scoring.pieces: missing; the policy 'curve' needs at least one"
    if scoring.measure == "rung" and scoring.rung is None:
        yield "scoring.rung: missing; measure: rung needs the name of a rung's folder"
    if scoring.measure != "rung" and scoring.rung is not None:
        yield "scoring.rung: only measure: rung has one; remove it or change the measure"
    if scoring.measure != "baseline" and hidden:
        yield (
            "scoring.measure: hidden sizes are timed, and only the baseline is measured at them; "
            "take measure: baseline"
        )
    at, points = scoring.start.at, scoring.start.points
    names: set[str] = set()
    for i, piece in enumerate(scoring.pieces):
        where = f"scoring.pieces[{i}]"
        if piece.name in names:
            yield f"{where}.name: {piece.name!r} is taken by another piece"
        names.add(piece.name)
        if piece.points < points:
            yield f"{where}.points: expected at least {points:g}, where the piece begins"
        yield from _wrong_rate(piece, where)
        if scoring.measure == "ms":
            if piece.to is not None:
                yield f"{where}.to: measure: ms has scoring.milliseconds instead; remove it"
        elif piece.to is None:
            yield f"{where}.to: missing; expected a ratio > {at:g}, where the piece begins"
        elif piece.to <= at:
            yield f"{where}.to: expected more than {at:g}, where the piece begins"
        at, points = piece.to or at, piece.points
    if scoring.pieces and points <= scoring.start.points:
        yield "scoring.pieces: no piece gives a point; the last must end above scoring.start.points"


def _wrong_rate(piece: Stretch, where: str) -> Iterator[str]:
    rate = piece.rate
    if piece.shape == "linear":
        if rate is not None:
            yield f"{where}.rate: a linear piece has none; remove it or name a shape"
    elif rate is None:
        yield f"{where}.rate: missing; the shape {piece.shape!r} needs one, such as 1.5"
    elif piece.shape == "log" and not 0 < rate <= 1e9:
        yield f"{where}.rate: expected a number > 0, got {rate:g}"
    elif piece.shape == "exp" and not (rate and abs(rate) <= _MOST_RATE):
        yield f"{where}.rate: expected a number from -100 to 100 that is not 0, got {rate:g}"


def _wrong_milliseconds(scoring: Scoring, sizes: Sequence[tuple[int, ...] | int]) -> Iterator[str]:
    table = scoring.milliseconds
    if scoring.measure != "ms":
        if table:
            yield "scoring.milliseconds: only measure: ms has them; remove them"
        return
    if scoring.start.at:
        yield "scoring.start.at: measure: ms has scoring.milliseconds instead; remove it"
    if not table:
        yield "scoring.milliseconds: missing; measure: ms needs one entry for each size and GPU"
    seen: dict[tuple[str, object], int] = {}
    for i, each in enumerate(table):
        where = f"scoring.milliseconds[{i}]"
        if each.size not in sizes:
            yield f"{where}.size: {_shown(each.size)} is none of the performance sizes"
        if (each.gpu, each.size) in seen:
            first = seen[each.gpu, each.size]
            yield f"{where}: the same GPU and size as scoring.milliseconds[{first}]"
        seen[each.gpu, each.size] = i
        if len(each.at) != len(scoring.pieces) + 1:
            wanted = len(scoring.pieces) + 1
            yield f"{where}.at: expected {wanted} times: the start, and the end of every piece"
        for k in range(1, len(each.at)):
            if each.at[k] >= each.at[k - 1]:
                before = each.at[k - 1]
                yield f"{where}.at[{k}]: expected less than {before:g}: more points, less time"
    for gpu in dict.fromkeys(each.gpu for each in table):
        for size in sizes:
            if (gpu, size) not in seen:
                yield f"scoring.milliseconds: nothing for {_shown(size)} on {gpu}; add an entry"


def _shown(size: tuple[int, ...] | int) -> str:
    return str(list(size) if isinstance(size, tuple) else size)
