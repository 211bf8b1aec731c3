"""Programs that mean to please the model alone: what it gives them, and what an H200 does.

``python -m benchmarks.model_cheats`` measures them.
"""

from functools import cache

import msgspec
import pytest

from benchmarks.model_cheats import FOLDER, names, size_of
from grader.base import gpus
from grader.judge.program import GradingContext
from grader.labs.lab import Case
from grader.labs.scoring_rules import Scoring, Stretch
from grader.labs.submission import load_submission
from grader.model.calibration import FITTED
from grader.model.records import Explanation
from grader.report.formatting import SENTENCES
from grader.results.result import Result
from grader.run.protocol import quietly
from grader.study import grade_and_explain
from grader.study.explaining import explain_sizes
from ptxsim.text import Message
from tests.support.explained import roomy
from tests.support.files import table
from tests.support.places import ROOT

H200 = gpus.named("H200")
ROWS = [tuple(map(str, row)) for row in table(__file__, "cheats.txt")]
PRICED = [row for row in ROWS if row[3][0].isdigit()]
DOUBTED = [row for row in ROWS if not row[3][0].isdigit()]


def test_every_cheat_has_a_row() -> None:
    assert [row[0] for row in ROWS] == list(names())
    assert {*names()} == {file.stem for file in FOLDER.glob("*.cuh")} - {"common"}
    for name in names():
        text = (FOLDER / f"{name}.cuh").read_text()
        assert "\n// Stopped by: " in text or "\n// Open: " in text, name


@cache
def explained() -> dict[str, Explanation]:
    context = msgspec.structs.replace(roomy(), card=H200)
    places = [place for place, name in enumerate(names()) if name in {row[0] for row in PRICED}]
    sizes = [size_of(place) for place in places]
    found = explain_sizes(load_submission(FOLDER, "sgemm.cu"), sizes, context, "sm_90")
    return {
        names()[place]: each
        for place, each in zip(places, found, strict=True)
        if isinstance(each, Explanation)
    }


@pytest.mark.sampled
@pytest.mark.parametrize("row", PRICED, ids=lambda row: row[0])
def test_the_most_that_is_expected(row: tuple[str, ...]) -> None:
    (bound,) = explained()[row[0]].bounds

    assert bound.expected[1] <= 1.03 * float(row[3])


def lab_of_the_model(place: int) -> GradingContext:
    shared = roomy()
    lab = msgspec.structs.replace(
        shared.lab,
        architectures=("sm_90",),
        cpu=(Case(id="cpu-0", size=size_of(place, 128, 0)),),
        correctness=(),
        performance=(Case(id="timed", size=size_of(place)),),
        scoring=Scoring(
            policy="curve",
            measure="model",
            gpu="H200",
            pieces=(
                Stretch(name="a tenth", points=50, to=0.1),
                Stretch(name="half", points=100, to=0.5),
            ),
        ),
    )
    return msgspec.structs.replace(shared, lab=lab)


def graded(name: str) -> Result:
    return grade_and_explain(FOLDER, lab_of_the_model(names().index(name)), quietly).result


@pytest.mark.sampled
@pytest.mark.parametrize("row", DOUBTED, ids=lambda row: row[0])
def test_what_counts_cannot_stand_for_gets_no_points(row: tuple[str, ...]) -> None:
    result = graded(row[0])

    assert result.verdict.value == "AC" and result.score is None
    assert result.by_model is not None and isinstance(result.by_model.ungraded, Message)
    assert row[3] in str(result.by_model.ungraded)
    assert "at 1024×1024×" in str(result.by_model.ungraded)


@pytest.mark.sampled
def test_honest_work_beside_them_is_trusted() -> None:
    result = graded("copies_by_the_host")

    assert result.by_model is not None and result.by_model.ungraded is None
    assert result.score is not None and result.score.total == 50
    (curve,) = result.score.curves
    assert 0.1 < curve.position < 0.5 and curve.measure == "model" and curve.expected


def test_the_page_names_every_resource_and_constant() -> None:
    page = (ROOT / "docs" / "model.md").read_text(encoding="utf-8")
    rows = {line.split(" | ")[0].removeprefix("| ") for line in page.splitlines()}

    assert set(SENTENCES.names("resource")) <= rows
    for name, factor in FITTED.slower.items():
        assert f"{factor:g}" in page, name
    table = (ROOT / "docs" / "cheats.md").read_text(encoding="utf-8")
    for name, *cells in ROWS:
        measured, was = (cell.replace("-", "–") for cell in cells[:2])
        assert f"| [{name}](../tests/model/cheats/{name}.cuh) | {measured} | {was} | " in table
