"""Times → points: the yardstick of each timed size, and a score. The curves: results/score.py."""

import difflib
from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

from grader import base
from grader.labs import Case, CurveShape, Lab, Scoring
from grader.problems import Problem
from grader.results import (
    ExpectedSpeed,
    LabRef,
    Ladder,
    Measure,
    Piece,
    ResultEntry,
    Score,
    Share,
    SizeCurve,
    Timing,
    mean_points,
    most,
    points_at,
)
from ptxsim.plan import Record, Size
from ptxsim.text import phrase


class Yardstick(Record):
    """Unit and curve that turn the times of one size into points."""

    pieces: tuple[Piece, ...]
    measure: Measure = "baseline"
    rung: str | None = None
    rung_ratio: float = 1.0  # the rung's speed / the baseline's, at this size
    ms_at_unit_speed: float = 0.0  # what a call takes at a speed of 1
    roof: float = 0.0  # the speed that the roofline allows at this size


Yardsticks = Mapping[str, Yardstick]  # by the case's id


def measures(lab: Lab, gpu: str, ladders: Sequence[Ladder]) -> Yardsticks:
    """Return the yardsticks of all timed cases.

    Raises LabError, one line, if the lab or the ladders say nothing of this GPU model.
    """
    scoring = lab.scoring
    if scoring.measure == "model":
        raise base.LabError.saying(
            "scoring.measure: the model gives points where nothing is measured; grade with: "
            "--device cpu"
        )
    if scoring.policy != "curve" or scoring.measure == "baseline":
        return {case.id: beside_the_baseline(scoring) for case in lab.timed}
    if scoring.measure == "ms":
        return {case.id: _in_milliseconds(scoring, case, lab.problem, gpu) for case in lab.timed}
    if scoring.measure == "roofline":
        return {case.id: _below_the_roofline(scoring, case, lab.problem, gpu) for case in lab.timed}
    assert scoring.rung is not None
    pieces = _pieces(scoring)
    return {
        case.id: Yardstick(
            pieces=pieces,
            measure="rung",
            rung=scoring.rung,
            rung_ratio=_rung_ratio(lab.problem, gpu, ladders, scoring.rung, case.size.dims),
        )
        for case in lab.timed
    }


def beside_the_baseline(scoring: Scoring) -> Yardstick:
    """That of the ratio to the baseline, which is the same at every size and on every GPU."""
    if scoring.policy == "curve":
        return Yardstick(pieces=_pieces(scoring))
    marks = [(0.0, 0.0), (scoring.cap / 100, scoring.cap)]
    return Yardstick(pieces=_between(marks, [("", "linear", 0.0)]))


def _below_the_roofline(scoring: Scoring, case: Case, problem: Problem, gpu: str) -> Yardstick:
    """Its figures are the data sheet's: a driver's clocks may differ between two equal cards."""
    card = base.gpus.find(gpu)
    if card is None:
        raise base.LabError.saying(
            "scoring.measure: no data sheet is known of {gpu}, so its roofline is not; take "
            "measure: baseline, or another GPU",
            gpu=gpu,
        )
    roof = problem.at(case.size).roofline(card)
    return Yardstick(pieces=_pieces(scoring), measure="roofline", roof=roof)


def _in_milliseconds(scoring: Scoring, case: Case, problem: Problem, gpu: str) -> Yardstick:
    extents = case.size.extents
    size = extents if len(extents) > 1 else extents[0]
    for each in scoring.milliseconds:
        if each.gpu == gpu and each.size == size:
            ms = problem.amount(case.size) / problem.unit.scale * 1e3
            return Yardstick(pieces=_pieces(scoring, each.at), measure="ms", ms_at_unit_speed=ms)
    known = ", ".join(dict.fromkeys(each.gpu for each in scoring.milliseconds))
    raise base.LabError.saying(
        "scoring.milliseconds: the lab has times for {known}, none for {gpu}; add entries for it",
        known=known,
        gpu=gpu,
    )


def _pieces(scoring: Scoring, at: Sequence[float] = ()) -> tuple[Piece, ...]:
    """at: where they begin and end, if these are no ratios."""
    at = at or (scoring.start.at, *(piece.to or 0.0 for piece in scoring.pieces))
    points = (scoring.start.points, *(piece.points for piece in scoring.pieces))
    kinds = [(each.name, each.shape, each.rate or 0.0) for each in scoring.pieces]
    return _between(list(zip(at, points, strict=False)), kinds)


def _between(
    marks: Sequence[tuple[float, float]], kinds: Sequence[tuple[str, CurveShape, float]]
) -> tuple[Piece, ...]:
    """marks: position and points. kinds: name, shape and rate of the piece between two of them."""
    return tuple(
        Piece(name=name, shape=shape, rate=rate, start=start, end=end, low=low, high=high)
        for (name, shape, rate), ((start, low), (end, high)) in zip(
            kinds, pairwise(marks), strict=True
        )
    )


# --- points -----------------------------------------------------------------------------------


def score(
    verdict: base.Verdict,
    cases: Sequence[Case],
    times: Mapping[str, Timing | ExpectedSpeed | None],
    scoring: Scoring,
    yardsticks: Yardsticks | None = None,
) -> Score | None:
    """The score of sizes that everybody may see; 0 unless ``verdict``, theirs, is AC. None if no
    case is timed. times: by case. yardsticks: None for ratios to the baseline."""
    if not cases:
        return None
    yardsticks = yardsticks or {case.id: beside_the_baseline(scoring) for case in cases}
    highest = max(most(yardsticks[case.id].pieces) for case in cases)
    shares = tuple(Share(case=case.id, weight=case.weight) for case in cases)
    if verdict is not base.Verdict.AC:
        return Score(total=0.0, max=highest, policy=scoring.policy, shares=shares)
    curves = tuple(
        place(timing, scoring, yardsticks[case], case)
        for case, timing in times.items()
        if timing is not None and case in yardsticks
    )
    earned = mean_points({curve.case: curve.points for curve in curves}, shares)
    if earned is None:
        return None
    return Score(
        total=round(earned, 2), max=highest, policy=scoring.policy, shares=shares, curves=curves
    )


def rescored(entry: ResultEntry, lab: Lab, ladders: Sequence[Ladder]) -> ResultEntry | None:
    """Return a stored result as this version of its lab file scores it, by its verdict and times;
    None where these are not of the sizes that count, so that it has to be graded again."""
    known = {Size(dims=case.size): case.timing for case in entry.cases}
    asked = (*lab.correctness, *lab.performance) if entry.environment.device == "gpu" else lab.cpu
    same = not known or known.keys() == {case.size for case in asked}
    if (
        lab.hidden
        or entry.groups
        or entry.by_model
        or lab.scoring.gpu
        or not same
        or not entry.problem.like(lab.problem.info())
    ):
        return None  # of hidden sizes no times are stored, of the model's no counts
    found = entry.score
    if found is not None and entry.gpu is not None:
        try:
            yardsticks = measures(lab, entry.gpu, ladders)
        except base.LabError:  # it says nothing of this GPU model
            return None
        times = {case.id: known.get(case.size) for case in lab.performance}
        found = score(entry.verdict, lab.performance, times, lab.scoring, yardsticks)
    return msgspec.structs.replace(entry, lab=LabRef(id=lab.id, sha256=lab.sha256), score=found)


def place(
    timing: Timing | ExpectedSpeed,
    scoring: Scoring,
    yardstick: Yardstick | None = None,
    case: str = "",
) -> SizeCurve:
    """A measured or expected size on its curve. yardstick: None for the ratio to the baseline."""
    yardstick = yardstick or beside_the_baseline(scoring)
    if isinstance(timing, ExpectedSpeed):
        position = timing.high / yardstick.roof
    elif yardstick.measure == "ms":
        position = yardstick.ms_at_unit_speed / timing.scored_speed
    elif yardstick.measure == "roofline":
        position = timing.scored_speed / yardstick.roof
    elif scoring.policy == "oj":
        position = timing.scored_speed / timing.baseline_speed
    else:
        position = timing.scored_ratio / yardstick.rung_ratio
    return SizeCurve(
        case=case,
        position=position,
        points=points_at(yardstick.pieces, position),
        measure=yardstick.measure,
        rung=yardstick.rung,
        pieces=yardstick.pieces,
        expected=timing if isinstance(timing, ExpectedSpeed) else None,
    )


def score_by_model(
    lab: Lab, verdict: base.Verdict, expected: Mapping[str, ExpectedSpeed]
) -> Score | None:
    """Score what nobody measured, in bands: a piece gives its points where the most that is
    expected reaches its end. expected: by case."""
    card = base.gpus.named(lab.scoring.gpu or "").name
    yardsticks = {}
    for case in lab.performance:
        found = _below_the_roofline(lab.scoring, case, lab.problem, card)
        steps = (msgspec.structs.replace(each, shape="step", rate=0.0) for each in found.pieces)
        yardsticks[case.id] = msgspec.structs.replace(found, measure="model", pieces=tuple(steps))
    return score(verdict, lab.performance, expected, lab.scoring, yardsticks)


def _rung_ratio(
    problem: Problem, gpu: str, ladders: Sequence[Ladder], rung: str, size: base.Dims
) -> float:
    """From the first ladder that has the figure: those measured here come before shipped ones."""
    task = problem.info()
    alike = [each for each in ladders if each.problem.like(task)]
    here = [each for each in alike if each.timed_on(gpu)]
    if not here:
        known = ", ".join(dict.fromkeys(each.gpu.name for each in alike if each.gpu))
        missing = phrase(
            "scoring.rung: no ladder was measured on {gpu}; measure one there with: grade ladder"
        )
        if known:
            missing = phrase(
                "scoring.rung: no ladder was measured on {gpu}, only on {known}; measure one there "
                "with: grade ladder"
            )
        raise base.LabError(missing.given(gpu=gpu, known=known))
    steps = [step for ladder in here for step in ladder.steps if step.rung.name == rung]
    if not steps:
        names = [step.rung.name for step in here[0].steps]
        guess = difflib.get_close_matches(rung, names, 1) or names[-1:]
        raise base.LabError.saying(
            "scoring.rung: no rung is named {name}; did you mean {other}?",
            name=repr(rung),
            other=repr(guess[0]),
        )
    for step in steps:
        if speed := step.at(size):
            return speed.ratio
    timed = ", ".join(dict.fromkeys(base.size_text(each) for each in here[0].sizes))
    raise base.LabError.saying(
        "scoring.rung: {rung} was not timed at {size} on {gpu}; time one of {timed}, or "
        "measure the ladder with such a lab file",
        rung=rung,
        size=base.size_text(size),
        gpu=gpu,
        timed=timed,
    )
