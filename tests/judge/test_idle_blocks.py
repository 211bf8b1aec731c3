"""Grids of many more blocks than a matrix needs, without a GPU."""

from pathlib import Path

import pytest

from grader.base.finding import Kind
from grader.base.records import Verdict
from grader.labs.lab import Case
from grader.run.protocol import quietly
from grader.study import grade_and_explain
from ptxsim.plan import Size
from tests.support.bench import bench, limited, of_lab
from tests.support.commands import hand_in
from tests.support.files import beside

SIZES = ((32, 48, 16), (33, 64, 9), (96, 160, 128))
CASES = tuple(
    Case(id=f"cpu-{at}", size=Size.of(m=m, n=n, k=k)) for at, (m, n, k) in enumerate(SIZES)
)
LAB = limited(of_lab(bench(), cpu=CASES, performance=()), simulate_s=0.2)
SAYS = (
    "2100 of 2112 blocks store nothing: the grid has 64 × 33 blocks, but a block computes 16 × 16 "
)


@pytest.mark.parametrize(
    ("columns", "rows", "verdict"),
    [("(n + T - 1) / T", "(m + T - 1) / T", Verdict.AC), ("n", "m", Verdict.TLE)],
)
def test_a_grid_that_is_not_divided_is_named_before_it_takes_all_the_time(
    columns: str, rows: str, verdict: Verdict, tmp_path: Path
) -> None:
    folder = hand_in(tmp_path / "eve", beside(__file__, "grid.cu", columns=columns, rows=rows))
    result = grade_and_explain(folder, LAB, quietly).result
    assert result.verdict is verdict, (result.error, result.findings)
    if verdict is Verdict.AC:
        assert not result.findings
        return
    (found,) = result.findings
    assert found.kind is Kind.IDLE_BLOCKS and SAYS in str(found.message), found
    assert "4 × 3 are enough" in str(found.message)
    assert result.explanation is None or not result.explanation.advice
    late = result.cases[-1]
    assert late.verdict is Verdict.TLE and "store nothing" in str(late.message)
    assert late.seconds is None  # it was not even begun
