"""Curves of points: exact values of the shipped one, and what every curve must keep."""

from __future__ import annotations

import math

import msgspec
import pytest

from grader.base.errors import LabError
from grader.base.explanation import Piece, Score
from grader.base.records import Verdict
from grader.base.result import CaseResult, Run, Timing
from grader.judge import scoring
from grader.judge.scoring import measures, points_at
from grader.labs.lab import Case, Lab, find_lab, load_lab
from grader.labs.scoring_rules import Milliseconds, Scoring, Start, Stretch
from grader.results.ladders import shipped_ladders
from ptxsim.records import Size
from tests.support.pages import timed
from tests.support.product import shipped_ladder

SHIPPED = load_lab(find_lab("sgemm-curve")).scoring
PARITY = SHIPPED.pieces[1].rate


def shipped(ratio: float) -> float:
    return points_at(scoring.beside_the_baseline(SHIPPED).pieces, ratio)


def near_cublas(u: float) -> float:
    """The formula of the course."""
    return 60 + 40 * (math.e ** (1.5 * u) - 1) / (math.e**1.5 - 1)


@pytest.mark.parametrize(
    ("ratio", "points"),
    [
        (0.0, 0.0),
        (0.125, 15.0),
        (0.25, 30.0),
        (0.5, 60.0),
        (0.625, near_cublas(0.25)),
        (0.75, near_cublas(0.5)),
        (0.75, 72.83285203298428),
        (0.999, near_cublas(0.998)),
        (1.0, 100.0),
        (1.05, 105.0),
        (1.2, 120.0),
        (7.0, 120.0),
    ],
)
def test_the_shipped_curve_gives_the_courses_points(ratio: float, points: float) -> None:
    assert shipped(ratio) == pytest.approx(points, abs=1e-9)


SHAPES = [("linear", 0.0), ("exp", 1.5), ("exp", -3.0), ("exp", 40.0), ("log", 0.5), ("log", 1e6)]


@pytest.mark.parametrize(("shape", "rate"), SHAPES)
@pytest.mark.parametrize(("start", "end"), [(0.2, 0.9), (80.0, 25.0)])
def test_a_piece_grows_between_its_ends_and_back(
    shape: str, rate: float, start: float, end: float
) -> None:
    piece = Piece(name="", shape=shape, rate=rate, start=start, end=end, low=10, high=70)  # type: ignore[arg-type]
    spots = [start + (end - start) * i / 50 for i in range(51)]
    points = [points_at([piece], spot) for spot in spots]
    assert points == sorted(points)
    assert (points[0], points[-1]) == (10, pytest.approx(70))


def test_log_mirrors_exp_of_the_logarithm_of_its_rate() -> None:
    rate = 6.0
    log = Piece(name="", shape="log", rate=rate, start=0, end=1, low=0, high=1)
    exp = Piece(name="", shape="exp", rate=math.log1p(rate), start=0, end=1, low=0, high=1)
    for u in (0.1, 0.4, 0.8):
        assert points_at([exp], points_at([log], u)) == pytest.approx(u)


# --- measures ---------------------------------------------------------------------------------

PIECES = (
    Stretch(name="first", points=60),
    Stretch(name="second", points=100, shape="log", rate=2.0),
)
SIZE = Size.of(m=8192, n=8192, k=8192)
PLAIN = Timing(runs=(), ratio=1.0, ratio_ci=(0.0, 9.0), noise=0.01, samples=9)


def lab(rules: Scoring) -> Lab:
    return msgspec.structs.replace(load_lab(), scoring=rules)


def test_milliseconds_of_a_size_on_a_gpu_model() -> None:
    times = Milliseconds(gpu="NVIDIA H200", size=(8192, 8192, 8192), at=(100.0, 40.0, 20.0))
    rules = Scoring(policy="curve", measure="ms", pieces=PIECES, milliseconds=(times,))
    # 2·8192³ operations in 70 ms: half of the way from 100 ms to 40 ms.
    score = scored(rules, "NVIDIA H200", 2 * 8192**3 / 70e-3 / 1e12)
    assert (score.total, score.max) == (30, 100)
    assert score.curves[0].position == pytest.approx(70)
    with pytest.raises(LabError, match=r"scoring.milliseconds: .*NVIDIA H200, none for Tesla T4"):
        measures(lab(rules), "Tesla T4", ())


def case(speed: float) -> CaseResult:
    """The default lab's timed size, at this speed beside a baseline of 50."""
    timing = msgspec.structs.replace(
        PLAIN, runs=(Run(speed=speed, baseline_speed=50.0),), ratio=speed / 50
    )
    return msgspec.structs.replace(timed(8192, 1.0, 50.0), id="performance-0", timing=timing)


def scored(rules: Scoring, gpu: str, speed: float) -> Score:
    by = measures(lab(rules), gpu, shipped_ladders())
    score = scoring.score(Verdict.AC, load_lab().performance, [case(speed)], rules, by)
    assert score is not None
    return score


def test_the_ratio_to_a_rung_comes_from_its_gpus_ladder() -> None:
    ladder = shipped_ladder()
    assert ladder.gpu is not None
    step = next(each for each in ladder.steps if each.at(SIZE.dims))
    figure = step.at(SIZE.dims)
    assert figure is not None
    pieces = (
        Stretch(name="up to the rung", to=1, points=80),
        Stretch(name="beyond", to=2, points=90),
    )
    rules = Scoring(policy="curve", measure="rung", rung=step.rung.name, pieces=pieces)
    for times, points in ((0.5, 40), (1.0, 80), (1.5, 85), (3.0, 90)):
        score = scored(rules, ladder.gpu.name, 50 * figure.ratio * times)
        assert score.total == pytest.approx(points, abs=0.01)
        assert (score.curves[0].measure, score.curves[0].rung) == ("rung", step.rung.name)


@pytest.mark.parametrize(
    ("rung", "gpu", "size", "words"),
    [
        (None, "Tesla T4", SIZE, "scoring.rung: no ladder was measured on Tesla T4, only on N"),
        ("99_best", None, SIZE, "scoring.rung: no rung is named '99_best'; did you mean"),
        (None, None, Size.of(m=8, n=8, k=8), "was not timed at 8×8×8 on NVIDIA H200; time one of"),
    ],
)
def test_a_rung_without_a_figure_is_one_clear_line(
    rung: str | None, gpu: str | None, size: Size, words: str
) -> None:
    name = rung or shipped_ladder().steps[0].rung.name
    rules = Scoring(policy="curve", measure="rung", rung=name, pieces=PIECES, start=Start())
    other = msgspec.structs.replace(lab(rules), performance=(Case(id="a", size=size),))
    with pytest.raises(LabError) as caught:
        measures(other, gpu or "NVIDIA H200", shipped_ladders())
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
