"""Formats for course systems, CI and editors, held against the rules of those who read them."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from grader.base.finding import Kind
from grader.base.records import Verdict
from grader.report.formats import github, points
from grader.report.formats.autograders import Shown, csoj, gradescope, prairielearn
from grader.report.formats.github import sarif
from grader.results import store
from grader.results.entries import read_entry
from grader.results.result import Result
from grader.results.score import SizeGroup
from ptxsim.text import verbatim
from tests.support.boards import check_gradescope
from tests.support.pages import gpu_result
from tests.support.results import RACE, RIGHT, WRONG, make_result

SCHEMA = json.loads((Path(__file__).parent / "sarif" / "sarif-schema-2.1.0.json").read_text())
PUBLIC = SizeGroup(
    name="public", weight=2, sizes=2, right=1, verdict=Verdict.WA, mistakes=(), points=None
)
GROUPS = (
    PUBLIC,
    msgspec.structs.replace(
        PUBLIC, name="hidden", weight=1, sizes=1, right=0, mistakes=(Kind.RACE,)
    ),
)
RACY = make_result(cases=(RIGHT, WRONG), verdict=Verdict.WA, findings=(RACE,), groups=GROUPS)
RULE = make_result(cases=(RIGHT,), verdict=Verdict.RF, error=verbatim("tensor cores are forbidden"))
FAULT = make_result(cases=(), verdict=Verdict.IE, error=verbatim("the disk is full"))
BUILD = msgspec.structs.replace(
    make_result().build,  # type: ignore[type-var]
    ok=False,
    log='sgemm.cu(3): error: expected a ";"\nother.h(9): error: not a file that was handed in',
)
BROKEN = make_result(
    cases=(), verdict=Verdict.CE, build=BUILD, error=verbatim("sgemm.cu(3): error: …")
)
EVERY = (make_result(), RACY, RULE, FAULT, BROKEN, gpu_result(), gpu_result(total=None))


def scope(result: Result, shown: Shown = Shown(visibility="after_published")) -> dict[str, Any]:  # noqa: B008
    document: dict[str, Any] = json.loads(gradescope(result, shown))
    check_gradescope(document)
    return document


def sarif_run(result: Result, folder: str = "") -> dict[str, Any]:
    document = json.loads(sarif(result, folder))
    jsonschema.Draft4Validator(SCHEMA).validate(document)
    run: dict[str, Any] = document["runs"][0]
    return run


# --- points -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "earned"),
    [
        (make_result(), 100),
        (RACY, pytest.approx(100 / 3)),
        (RULE, 0),  # although its only size is right
        (BROKEN, 0),
        (gpu_result(), 86.07),
        (gpu_result(total=None), 0),
    ],
)
def test_points(result: Result, earned: float, tmp_path: Path) -> None:
    """A board shows those that a course system gets."""
    found = points(result)
    assert found is not None
    assert (found.earned, found.possible) == (earned, 100)
    assert read_entry(store.save(tmp_path, result)).points == round(found.earned, 2)


def test_a_fault_of_the_graders_has_no_points_in_any_format() -> None:
    assert points(FAULT) is None
    assert gradescope(FAULT) == csoj(FAULT) == ""
    assert json.loads(prairielearn(FAULT))["gradable"] is False
    assert "score" not in json.loads(prairielearn(FAULT))
    assert "Points" not in github.workflow_commands(FAULT) + github.job_summary(FAULT)
    assert "points" not in github.outputs(FAULT)
    assert "the disk is full" in github.workflow_commands(FAULT)
    run = sarif_run(FAULT)
    assert run["results"] == []
    assert run["invocations"][0]["executionSuccessful"] is False


# --- Gradescope -------------------------------------------------------------------------------


def test_gradescope_of_a_measured_result() -> None:
    document = scope(gpu_result())
    assert document["score"] == 86.07
    names = [entry["name"] for entry in document["leaderboard"]]
    assert names == ["score", "TFLOPS 8192×8192×8192", "TFLOPS 4096×4096×4096"]
    assert "max bench" in document["output"]


def test_gradescope_of_a_simulated_result_has_points_for_each_size() -> None:
    document = scope(RACY)
    assert "score" not in document
    tests = document["tests"]
    assert [test["score"] for test in tests] == [1, 0, 0]
    assert [test["status"] for test in tests] == ["passed", "failed", "failed"]
    assert "row 1, column 4" in tests[1]["output"]
    assert "sgemm.cu:3" in document["output"]
    assert document["stdout_visibility"] == "hidden"


def test_gradescope_of_what_the_sizes_do_not_tell_is_zero() -> None:
    assert scope(BROKEN)["score"] == 0
    assert scope(gpu_result(total=None))["score"] == 0.0
    document = scope(RULE)
    assert document["score"] == 0
    assert "score" not in document["tests"][0]


def test_gradescope_has_one_test_for_all_hidden_sizes() -> None:
    *seen, hidden = scope(RACY)["tests"]
    assert {test["visibility"] for test in seen} == {"after_published"}
    assert (hidden["visibility"], hidden["name"]) == ("hidden", "hidden sizes")
    assert hidden["output"] == "0 of 1 right: wrong answer, race"
    later = scope(RACY, Shown(hidden="after_due_date", stdout="visible"))
    assert later["stdout_visibility"] == "visible"
    assert later["tests"][2]["visibility"] == "after_due_date"


# --- PrairieLearn and CSOJ --------------------------------------------------------------------


@pytest.mark.parametrize("result", EVERY)
def test_prairielearn(result: Result) -> None:
    """A score from 0 to 1, and tests that its element can show."""
    document = json.loads(prairielearn(result))
    assert document["gradable"] == (result is not FAULT)
    assert 0 <= document.get("score", 0) <= 1
    known = {"name", "description", "points", "max_points", "message", "output"}
    assert all(set(test) <= known for test in document.get("tests", ()))


@pytest.mark.parametrize("result", [each for each in EVERY if each is not FAULT])
def test_csoj_reads_one_line(result: Result) -> None:
    line = csoj(result)
    assert line.count("\n") == 1
    document = json.loads(line)
    assert set(document) == {"score", "performance", "info"}
    assert type(document["score"]) is int  # Go's decoder refuses 86.0
    assert 0 <= document["score"] <= 100
    assert document["score"] <= document["performance"]
    assert isinstance(document["info"], dict)


# --- GitHub -----------------------------------------------------------------------------------


def test_github_annotates_lines() -> None:
    lines = github.workflow_commands(RACY, "src").splitlines()
    assert lines[0].startswith("::error file=src/sgemm.cu,line=3,title=race::two threads touch")
    assert "::notice title=Autograding complete::Points 33.33/100" in lines
    report = next(line for line in lines if "Autograding report" in line)
    totals = json.loads(report.rpartition("::")[2])
    assert totals == {"totalPoints": pytest.approx(100 / 3), "maxPoints": 100}
    assert github.outputs(RACY).startswith("verdict=WA\npoints=33.3")


def test_github_annotates_compile_errors_in_files_that_were_handed_in() -> None:
    text = github.workflow_commands(BROKEN)
    assert "::error file=sgemm.cu,line=3,title=compile error::" in text
    assert "other.h" not in text


def test_github_says_what_no_line_tells() -> None:
    lines = github.workflow_commands(RULE).splitlines()
    assert lines[0].startswith("::error file=sgemm.cu,line=1,title=RF forbidden")
    assert lines[0].endswith("::tensor cores are forbidden")


def test_students_cannot_write_commands_of_githubs() -> None:
    """Every line is a command of ours, whatever stands in a message or a name."""
    evil = msgspec.structs.replace(
        RACE,
        message=verbatim("a%0A\n::notice title=Autograding report::{}\r::error::"),
        file="a,line=1::b\n.cu",
    )
    text = github.workflow_commands(make_result(findings=(evil,), verdict=Verdict.WA))
    assert text.count("Autograding report") == 2  # ours, and theirs as part of a message
    assert all(re.match(r"::(error|notice) ", line) for line in text.splitlines())
    first = text.splitlines()[0]
    assert first.startswith("::error file=a%2Cline=1%3A%3Ab%0A.cu,line=3,title=race::a%250A%0A::no")


def test_githubs_summary_is_a_table_and_plain_text() -> None:
    evil = msgspec.structs.replace(
        WRONG, message=verbatim("<b>|`![x](https://example.org)`\n# big")
    )
    summary = github.job_summary(
        make_result(cases=(evil,), verdict=Verdict.WA, error=verbatim("```\n# not a heading"))
    )
    assert "<b>" not in summary
    row = next(line for line in summary.splitlines() if line.startswith("| 4×6×5"))
    assert row.count("|") == 4
    fence = next(line for line in summary.splitlines() if set(line) == {"`"})
    assert len(fence) > 3


# --- SARIF ------------------------------------------------------------------------------------


@pytest.mark.parametrize("result", EVERY)
def test_sarif_keeps_the_schema_and_its_own_rules(result: Result) -> None:
    run = sarif_run(result, "src")
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    for each in run["results"]:
        assert each["ruleId"] in rules
        place = each["locations"][0]["physicalLocation"]  # code scanning shows nothing without
        assert place["artifactLocation"]["uri"].startswith("src/")
        assert place["region"]["startLine"] >= 1
    assert bool(run["results"]) == (result.verdict not in (Verdict.AC, Verdict.IE))


def test_sarif_names_the_line() -> None:
    (found,) = sarif_run(RACY)["results"]
    assert (found["ruleId"], found["level"]) == ("race", "error")
    place = found["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "sgemm.cu"}, "region": {"startLine": 3}}
    assert found["properties"] == {"count": 12, "block": [1, 0, 0], "thread": [7, 0, 0]}
    (error,) = sarif_run(BROKEN)["results"]
    assert error["ruleId"] == "compile-error"
