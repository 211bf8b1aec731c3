"""Exports, held against the rules of the systems that read them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import msgspec
import pytest

from grader.course import export
from grader.course.leaderboard.ranking import Board, Entry, make_boards
from grader.course.roster import read_roster
from grader.errors import UsageError
from grader.model import Result, Verdict
from grader.results import store
from tests.support.boards import grade, keep
from tests.support.pages import gpu_result
from tests.support.results import RACE, RIGHT, WRONG, make_result

VISIBILITIES = {"hidden", "after_due_date", "after_published", "visible"}
FORMATS = {"text", "html", "simple_format", "md", "ansi"}
CANVAS = '''\
Student,ID,SIS User ID,SIS Login ID,Section,SGEMM (12345),Current Score
    Points Possible,,,,,100,(read only)
"Davis, Jr., ""Al""",11,s1,al,Lab A,,
张伟,12,s2,wei,Lab A,55,
=cmd(),13,s3,eq,Lab B,,
Missing One,14,s4,gone,Lab B,70,
'''


def check_gradescope(document: dict[str, object]) -> None:
    """Gradescope's rules for results.json."""
    top = {
        *("score", "execution_time", "output", "output_format", "visibility"),
        *("stdout_visibility", "extra_data", "tests", "leaderboard"),
    }
    assert set(document) <= top
    assert document["visibility"] in VISIBILITIES
    assert document["stdout_visibility"] in VISIBILITIES
    assert document["output_format"] in FORMATS
    tests = document["tests"]
    assert isinstance(tests, list)
    assert "score" in document or (tests and all("score" in test for test in tests))
    fields = {
        *("name", "number", "score", "max_score", "status", "output", "output_format"),
        *("tags", "visibility", "extra_data"),
    }
    for test in tests:
        assert set(test) <= fields
        assert test["status"] in ("passed", "failed")
        assert test["visibility"] in VISIBILITIES
    for entry in document.get("leaderboard", []):  # type: ignore[attr-defined]
        assert set(entry) == {"name", "value", "order"}
        assert entry["order"] in ("asc", "desc")


def gradescope(result: Result) -> dict[str, object]:
    document: dict[str, object] = json.loads(export.gradescope(result, "after_published"))
    check_gradescope(document)
    return document


def test_gradescope_of_a_measured_result() -> None:
    document = gradescope(gpu_result())
    assert document["score"] == 86.07
    names = [entry["name"] for entry in document["leaderboard"]]  # type: ignore[attr-defined]
    assert names == ["score", "TFLOPS 8192×8192×8192", "TFLOPS 4096×4096×4096"]
    assert "max bench" in str(document["output"])


def test_gradescope_of_a_simulated_result_has_points_for_each_size() -> None:
    document = gradescope(make_result(cases=(RIGHT, WRONG), verdict=Verdict.WA, findings=(RACE,)))
    assert "score" not in document
    tests = document["tests"]
    assert isinstance(tests, list)
    assert [(test["score"], test["status"]) for test in tests] == [(1, "passed"), (0, "failed")]
    assert "row 1, column 4" in tests[1]["output"]
    assert "sgemm.cu:3" in str(document["output"])


def test_gradescope_of_what_never_ran_is_zero() -> None:
    assert gradescope(make_result(cases=(), verdict=Verdict.CE, error="no"))["score"] == 0
    assert gradescope(gpu_result(total=None))["score"] == 0.0


def test_a_fault_of_the_graders_is_never_a_zero() -> None:
    with pytest.raises(UsageError, match="IE"):
        export.gradescope(make_result(verdict=Verdict.IE, cases=()), "visible")


def board(*results: Result) -> Board:
    entries = [msgspec.json.decode(store.encode(result), type=Entry) for result in results]
    return make_boards(entries)[0]


def test_canvas(tmp_path: Path) -> None:
    file = tmp_path / "gradebook.csv"
    file.write_text(CANVAS, encoding="utf-8")
    roster = read_roster(file)
    found = board(gpu_result("al", 80.0), gpu_result("wei", None), gpu_result("eq", 90.5))
    text = export.canvas(found, roster, 'SGEMM, "fast" (12345)', 20)
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[0][5] == 'SGEMM, "fast" (12345)'
    assert rows[1] == ["    Points Possible", "", "", "", "", "20"]
    assert sorted(rows[2:]) == [
        ["=cmd()", "13", "s3", "eq", "Lab B", "18.10"],
        ['Davis, Jr., "Al"', "11", "s1", "al", "Lab A", "16.00"],
        ["张伟", "12", "s2", "wei", "Lab A", "0.00"],
    ]
    assert "Missing One" not in text  # a blank would clear the 70 given by hand


def test_canvas_needs_ids(tmp_path: Path) -> None:
    file = tmp_path / "roster.csv"
    file.write_text("student\nal\n")
    with pytest.raises(UsageError, match="no Canvas IDs"):
        export.canvas(board(gpu_result("al")), read_roster(file), "SGEMM", 100)


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "results"
    kept = keep(out, "al", 80)
    path = store.result_path(out, kept).relative_to(tmp_path)
    (tmp_path / "gradebook.csv").write_text(CANVAS, encoding="utf-8")
    done = grade("export", "gradescope", path, cwd=tmp_path)
    check_gradescope(json.loads(done.stdout))
    canvas = ("export", "canvas", "--assignment", "SGEMM (12345)")
    done = grade(*canvas, "--roster", "gradebook.csv", "--to", "up.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "80.00" in (tmp_path / "up.csv").read_text(encoding="utf-8")
    assert grade(*canvas, cwd=tmp_path).returncode == 2
    assert json.loads(grade("export", "json", cwd=tmp_path).stdout)[0]["gpu"] == "NVIDIA H200"
    assert "al" in grade("export", "csv", cwd=tmp_path).stdout
    store.save(out, make_result("al"))
    done = grade(*canvas, "--roster", "gradebook.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "several boards" in done.stderr
