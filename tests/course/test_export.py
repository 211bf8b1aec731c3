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
from grader.course.parties import Parties
from grader.course.roster import read_roster
from grader.errors import UsageError
from grader.model import Result
from grader.results import store
from tests.support.boards import grade, keep
from tests.support.formats import check_gradescope
from tests.support.pages import gpu_result
from tests.support.results import make_result

CANVAS = '''\
Student,ID,SIS User ID,SIS Login ID,Section,SGEMM (12345),Current Score
    Points Possible,,,,,100,(read only)
"Davis, Jr., ""Al""",11,s1,al,Lab A,,
张伟,12,s2,wei,Lab A,55,
=cmd(),13,s3,eq,Lab B,,
Missing One,14,s4,gone,Lab B,70,
'''


def board(*results: Result) -> Board:
    entries = [msgspec.json.decode(store.encode(result), type=Entry) for result in results]
    return make_boards(entries)[0]


def test_canvas(tmp_path: Path) -> None:
    file = tmp_path / "gradebook.csv"
    file.write_text(CANVAS, encoding="utf-8")
    roster = read_roster(file)
    found = board(gpu_result("al", 80.0), gpu_result("wei", None), gpu_result("eq", 90.5))
    shares = export.board_shares(found)
    text = export.canvas(shares, Parties(roster), 'SGEMM, "fast" (12345)', 20)
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
        export.canvas({"al": 0.8}, Parties(read_roster(file)), "SGEMM", 100)


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "results"
    kept = keep(out, "al", 80)
    path = store.result_path(out, kept).relative_to(tmp_path)
    (tmp_path / "gradebook.csv").write_text(CANVAS, encoding="utf-8")
    done = grade("export", "gradescope", path, cwd=tmp_path)
    check_gradescope(json.loads(done.stdout))
    line = grade("export", "csoj", path, cwd=tmp_path).stdout
    assert json.loads(line)["score"] == 80
    assert json.loads(grade("export", "prairielearn", path, cwd=tmp_path).stdout)["score"] == 0.8
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
