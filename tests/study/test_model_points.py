"""Points by the model: what says so, and where; ``tests/model/test_cheats.py`` grades programs."""

import json

import msgspec
import pytest

from grader.base.errors import LabError
from grader.base.records import Verdict
from grader.course import board_rendering as render
from grader.course.leaderboard import Board, make_boards
from grader.judge.scoring import measures, score_by_model
from grader.labs.lab import Case, Lab, load_lab
from grader.labs.scoring_rules import Scoring, Stretch
from grader.report import html
from grader.report.curve import next_sentence
from grader.report.formats import github, points
from grader.report.formats.autograders import csoj, gradescope, prairielearn
from grader.results import store
from grader.results.entries import ResultEntry
from grader.results.result import Result
from grader.results.score import ByModel, ExpectedSpeed
from grader.study.model_points import Expectations, with_points
from ptxsim.plan import Size
from ptxsim.text import verbatim
from tests.support.boards import check_gradescope
from tests.support.pages import gpu_result, printed
from tests.support.results import make_result

SIZES = (Size.of(m=2048, n=2048, k=2048), Size.of(m=4096, n=4096, k=4096))
ROOF = 66.9  # TFLOPS of an H200 at such sizes


def lab() -> Lab:
    pieces = ((0.1, 40), (0.25, 70), (0.5, 100))
    return msgspec.structs.replace(
        load_lab(),
        performance=tuple(Case(id=str(size), size=size, weight=1) for size in SIZES),
        scoring=Scoring(
            policy="curve",
            measure="model",
            gpu="H200",
            pieces=tuple(Stretch(name=f"{to}", to=to, points=each) for to, each in pieces),
        ),
    )


def result(*most: float, student: str = "alice", **changes: object) -> Result:
    """The most that is expected of each size, as a share of the roofline."""
    shares = zip(SIZES, most, strict=True)
    speeds = {
        str(size): ExpectedSpeed(size=size.dims, low=0.7 * ROOF * share, high=ROOF * share)
        for size, share in shares
    }
    return with_points(make_result(student, **changes), lab(), Expectations(speeds=speeds))


UNGRADED = with_points(
    make_result("bea"), lab(), Expectations(ungraded=verbatim("its blocks differ"))
)


@pytest.mark.parametrize(
    ("most", "total"),
    [((0.09, 0.09), 0), ((0.12, 0.12), 40), ((0.24, 0.26), 55), ((0.6, 0.9), 100)],
)
def test_points_come_in_bands(most: tuple[float, float], total: float) -> None:
    score = result(*most).score

    assert score is not None and (score.total, score.max) == (total, 100)


def test_what_is_wrong_has_no_points_and_a_fault_of_ours_no_score() -> None:
    wrong = with_points(make_result(verdict=Verdict.WA), lab(), None)
    fault = with_points(make_result(verdict=Verdict.IE), lab(), None)

    assert (
        wrong.score == score_by_model(lab(), Verdict.WA, {})
        and wrong.score
        and wrong.score.total == 0
    )
    assert wrong.by_model == ByModel(gpu="H200") and fault.score is fault.by_model is None


def test_everything_says_that_nothing_was_measured() -> None:
    found = result(0.24, 0.26)
    said = (
        "Score ≈ 55.00 max.100, by the model of an H200: nothing was measured\n"
        "  2048×2048×2048: ≈ 11.2 to 16.1 TFLOPS expected; the most is 24.0 % of the roofline"
    )
    document = json.loads(gradescope(found))

    check_gradescope(document)
    assert document["score"] == 55 and "leaderboard" not in document
    assert all("score" not in each for each in document["tests"])
    for text in (document["output"], printed(found), github.job_summary(found)):
        assert said in text
    page = html.render(found, {})
    assert "≈ 55.00" in page and "by the model of an H200: nothing was measured" in page
    assert found == msgspec.json.decode(store.encode(found), type=Result)


def test_what_cannot_be_judged_is_no_zero() -> None:
    why = "not gradable for speed: its blocks differ"

    assert points(UNGRADED) is None and UNGRADED.verdict is Verdict.AC
    assert gradescope(UNGRADED) == csoj(UNGRADED) == ""
    assert json.loads(prairielearn(UNGRADED))["gradable"] is False
    assert why in json.loads(prairielearn(UNGRADED))["format_errors"]
    assert why in printed(UNGRADED) and why in html.render(UNGRADED, {})
    assert "Points" not in github.job_summary(UNGRADED)


def board_of(*results: Result) -> tuple[Board, ...]:
    entries = [msgspec.json.decode(store.encode(each), type=ResultEntry) for each in results]
    return make_boards(entries)


def test_a_board_never_mixes_them_with_others() -> None:
    own = result(0.24, 0.26), UNGRADED, result(0.6, 0.6, student="cem")
    measured, simulated, modelled = board_of(gpu_result("alice"), *own, make_result("dan"))

    assert str(modelled.title) == "sgemm · ≈ H200, by the model, not measured"
    assert measured.gpu == "NVIDIA H200" and simulated.gpu is None
    rows = [(row.rank, row.student, row.points) for row in modelled.rows]
    assert rows == [(1, "cem", 100.0), (2, "alice", 55.0), (None, "bea", None)]
    page = render.html([modelled], None)
    assert "≈ 55.00" in page and "not gradable" in page and "Nothing was measured" in page
    assert "≈ H200" in render.table_csv([modelled], None)
    assert render.board_shares(modelled) == {"cem": 1.0, "alice": 0.55}


def test_the_next_band_is_named_with_the_same_caution() -> None:
    assert str(next_sentence(result(0.24, 0.26))).startswith(
        "≈ The next points, 70 in all, begin at 18.1 TFLOPS at 4096×4096×4096, 1.04 times the most"
    )
    assert "no more points" in str(next_sentence(result(0.6, 0.6)))


def test_a_gpu_refuses_such_a_lab() -> None:
    with pytest.raises(LabError, match="grade with: --device cpu"):
        measures(lab(), "NVIDIA H200", ())
