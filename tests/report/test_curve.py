"""The curve on the page and in the terminal: pure functions of a result."""

from __future__ import annotations

import re

import msgspec
import pytest

from grader.base.language import ENGLISH
from grader.base.records import Verdict
from grader.base.result import Result
from grader.judge import scoring
from grader.labs.lab import Case, find_lab, load_lab
from grader.labs.scoring_rules import Scoring
from grader.report import curve, html
from ptxsim.records import Size
from tests.support.pages import gpu_result, printed, timed

SHIPPED = load_lab(find_lab("sgemm-curve")).scoring


def result(rules: Scoring, *speeds: tuple[int, float]) -> Result:
    """Timed sizes of these edges, beside a baseline of 50 TFLOPS."""
    cases = [
        Case(id=f"performance-{edge}", size=Size.of(m=edge, n=edge, k=edge)) for edge, _ in speeds
    ]
    results = tuple(timed(edge, speed, 50.0) for edge, speed in speeds)
    score = scoring.score(Verdict.AC, cases, results, rules)
    return gpu_result(cases=results, score=score)


def test_the_next_points_of_the_published_rule() -> None:
    """100·ratio: five points are five hundredths of cuBLAS."""
    shown = result(Scoring(), (8192, 40.0))
    assert "The next 5 points, to 85.00: 42.5 TFLOPS at 8192×8192×8192, 2.5 more" in printed(shown)


@pytest.mark.parametrize(
    ("speed", "speeds_for"),
    [
        (24.0, 28.4),  # across the checkpoint, into the bent piece: 62.6 points
        (50.0, 52.5),
        (58.0, 60.0),  # 4 points are left
    ],
)
def test_the_next_points_of_the_shipped_curve(speed: float, speeds_for: float) -> None:
    shown = result(SHIPPED, (8192, speed))
    ahead = curve.next_points(shown)
    assert ahead is not None and shown.score is not None
    pieces = scoring.beside_the_baseline(SHIPPED).pieces
    there = scoring.points_at(pieces, ahead.speed / 50)
    assert there == pytest.approx(min(shown.score.total + 5, 120), abs=0.01)
    assert ahead.speed == pytest.approx(speeds_for, rel=0.001)


def test_several_sizes_get_faster_together() -> None:
    shown = result(Scoring(), (4096, 20.0), (8192, 30.0))  # 40 and 60 points
    said = str(curve.next_sentence(shown))
    assert "33 TFLOPS at 8192×8192×8192, 3 more than now, and the same 10.0 % at the other" in said


def test_there_is_an_end() -> None:
    shown = result(SHIPPED, (8192, 80.0))
    assert curve.next_points(shown) is None
    assert "no more points to gain: 120 are the most" in str(curve.next_sentence(shown))
    assert not curve.next_sentence(gpu_result(total=None))


def test_the_page_draws_the_curve_with_the_submission_on_it() -> None:
    shown = result(SHIPPED, (4096, 37.5), (8192, 25.0))
    page = html.render(shown, {})
    assert page == html.render(shown, {})
    assert all(f">{piece.name}</text>" in page for piece in SHIPPED.pieces)
    picture = page[page.index("The curve of points") :]
    picture = picture[: picture.index("</svg>")]
    assert "4096×4096×4096: 72.83 points; 8192×8192×8192: 60.00 points" in picture
    path = re.search(r'polyline points="([^"]+)"', picture)
    assert path is not None
    line = [tuple(map(float, each.split(","))) for each in path[1].split()]
    assert [x for x, _ in line] == sorted(x for x, _ in line)
    assert [y for _, y in line] == sorted((y for _, y in line), reverse=True)
    own = re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="5" class="point"', picture)
    # 120 points are the top, at y = 16, and none the bottom, at 216.
    heights = sorted(216 - float(y) for _, y in own)
    assert heights == pytest.approx([100, 200 * 72.83 / 120], abs=0.1)
    assert "The next 5 points" in page


def test_older_documents_have_no_curve() -> None:
    assert curve.pictures(gpu_result(), ENGLISH) == ()
    bare = msgspec.structs.replace(gpu_result(), score=None)
    assert "The curve of points" not in html.render(bare, {})
