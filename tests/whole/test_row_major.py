"""The row-major lab: its starter and rungs are right, and code for the other layout is told so."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import pytest

from grader.base.records import Verdict
from grader.base.result import Result
from grader.cli.new_command import find_starter
from grader.judge.pipeline import grade
from grader.judge.program import GradingContext
from grader.labs.lab import load_lab, shipped_labs
from grader.run.protocol import quietly
from tests.support.bench import bench
from tests.support.places import ROOT

RUNGS = sorted((ROOT / "reference" / "sgemm-row").glob("*_*"))


@cache
def row_major() -> GradingContext:
    return msgspec.structs.replace(bench(), lab=load_lab(shipped_labs()["sgemm-row"]))


def graded(folder: Path, explain: bool = False) -> Result:
    return grade(folder, msgspec.structs.replace(row_major(), explain=explain), quietly).result


@pytest.mark.sampled
@pytest.mark.parametrize("folder", RUNGS, ids=lambda rung: rung.name)
def test_a_rung_is_right_without_a_finding(folder: Path) -> None:
    result = graded(folder)
    assert result.verdict is Verdict.AC, result.error
    assert result.findings == ()


@pytest.mark.sampled
def test_the_starter_is_right_and_hears_about_its_loads() -> None:
    result = graded(find_starter(ROOT, row_major().lab), explain=True)
    assert result.verdict is Verdict.AC
    assert result.explanation
    first = str(result.explanation.advice[0].message)
    assert "a warp's load touches" in first and "lanes that read neighbours in memory" in first


@pytest.mark.sampled
def test_code_for_the_other_layout_is_told_so() -> None:
    result = graded(ROOT / "starter")
    assert result.verdict is Verdict.WA
    words = "B was read as if column-major: B is row-major, B[p*n + j]; C came out transposed"
    assert any(words in str(case.message) for case in result.cases)
