"""Groups, marks and regrades: what an instructor does with the results of a class."""

import csv
import json
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from grader.base.errors import LabError, UsageError
from grader.base.language import ENGLISH
from grader.base.records import Verdict
from grader.course.leaderboard import make_boards
from grader.course.roster import Parties, read_roster
from grader.course.rubric import read_sheet
from grader.labs.course_rules import read_rubric, read_weights
from grader.labs.lab import DEFAULT_LAB, load_lab
from grader.results import store
from grader.results.entries import read_entries, read_index
from grader.results.result import LabRef
from grader.results.score import Score, Share
from tests.support.boards import check_gradescope, grade, keep, rows_of
from tests.support.catalogues import assert_chinese
from tests.support.files import beside, values
from tests.support.pages import gpu_result
from tests.support.results import SHA, WRONG

RUBRIC = beside(__file__, "rubric.yaml")
ROSTER = beside(__file__, "roster.csv")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A class: ada has 80 points, a group 70, a name like a formula 90; one is missing."""
    for student, total in (("ada", 80), ("team", 70), ("=eq", 90)):
        keep(tmp_path / "results", student, total)
    (tmp_path / "roster.csv").write_text(ROSTER)
    (tmp_path / "rubric.yaml").write_text(RUBRIC)
    return tmp_path


OPTIONS = ("course", "rubric", "--roster", "roster.csv", "--rubric", "rubric.yaml", "--to", "made")


def filled(place: Path, cells: Mapping[str, Mapping[str, str]]) -> Path:
    """The sheet with cells filled in, by student and column."""
    rows = rows_of((place / "made" / "marks.csv").read_text(encoding="utf-8-sig"))
    path = place / "filled.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        for row in rows:
            writer.writerow(row | cells.get(row["student"], {}))
    return path


MARKS = {
    "ada": {"q1 (of 10)": "10", "q2 (of 30)": "20", "comment": "well\nreasoned"},
    "team": {"q1 (of 10)": "5", "q2 (of 30)": "15.5", "q2 comment": "<b>no</b>, why?"},
    "'=eq": {"q1 (of 10)": "0"},
}


# --- groups -----------------------------------------------------------------------------------


def parties(place: Path, text: str) -> Parties:
    (place / "people.csv").write_text(text)
    return Parties(read_roster(place / "people.csv"))


@pytest.mark.parametrize("folder", ["team", "ben", "cy", "ben+cy"])
def test_one_submission_counts_for_all_members(tmp_path: Path, folder: str) -> None:
    keep(tmp_path, folder, 70)
    keep(tmp_path, "ada", 80)
    known = parties(tmp_path, ROSTER)
    (board,) = make_boards(known.merged(read_entries(tmp_path)[0])[0], roster=known.roster)
    ranks = [(row.rank, row.student) for row in board.rows if row.kind != "baseline"]
    assert ranks == [(1, "ada"), (2, "team"), (None, "=eq"), (None, "gone")]
    assert [person.student for person in known.members("team")] == ["ben", "cy"]
    assert known.roster["team"].name == "Ben, Cy"


def test_the_best_of_what_members_handed_in_counts(tmp_path: Path) -> None:
    keep(tmp_path, "ben", 70)
    keep(tmp_path, "cy", 75, attempt=1)
    known = parties(tmp_path, ROSTER)
    (board,) = make_boards(known.merged(read_entries(tmp_path)[0])[0])
    (row,) = board.rows[1:]
    assert (row.student, row.points, row.history) == ("team", 75, (70, 75))


def test_gradescopes_groups_need_no_column(tmp_path: Path) -> None:
    keep(tmp_path, "ben+cy", 70)
    keep(tmp_path, "x+y", 60)  # nobody of the roster: a name like any other
    known = parties(tmp_path, "student\nben\ncy\n")
    entries = known.merged(read_entries(tmp_path)[0])[0]
    assert {person.student for person in known.members("ben+cy")} == {"ben", "cy"}
    (board,) = make_boards(entries, roster=known.roster)
    assert [row.student for row in board.rows[1:]] == ["ben+cy", "x+y"]  # nobody is missing


@pytest.mark.parametrize(
    ("folders", "complaints", "missing"),
    [
        (("ben", "ben+cy"), ["ben+cy as a group: ben handed in alone"], ["a", "cy"]),
        (("a+ben", "ben+cy"), ["a+ben as a group: ben ", "ben+cy as a group: ben "], ["a", "ben"]),
        (("ben", "ben+ben"), ["ben+ben as a group: ben "], ["a", "cy"]),
        (("ben", "ben+x"), [], ["a", "cy"]),  # x is nobody of the roster
        (("ben", "a+cy"), [], []),
    ],
)
def test_a_name_that_overlaps_stops_no_board(
    tmp_path: Path, folders: tuple[str, ...], complaints: list[str], missing: list[str]
) -> None:
    for folder in folders:
        keep(tmp_path, folder, 70)
    known = parties(tmp_path, "student\na\nben\ncy\n")
    entries, told = known.merged(read_entries(tmp_path)[0])
    assert len(told) == len(complaints)
    assert all(str(line).startswith(words) for line, words in zip(told, complaints, strict=True))
    (board,) = make_boards(entries, roster=known.roster)
    assert {row.student for row in board.rows if row.rank} == set(folders)
    assert [row.student for row in board.rows if row.kind == "missing"][:2] == missing


def test_overlapping_names_in_every_command(place: Path) -> None:
    for student in ("eve+ada", "eve+team"):
        keep(place / "results", student, 60)
    (place / "roster.csv").write_text(ROSTER + "eve,Eve,\n")
    for words in (
        ("leaderboard",),
        ("export", "csv", "--to", "x.csv"),
        ("course", "rubric", "--rubric", "rubric.yaml", "--to", "made"),
    ):
        done = grade(*words, "--roster", "roster.csv", cwd=place)
        assert done.returncode == 0, done.stderr
        (line,) = (line for line in done.stderr.splitlines() if "eve+ada" in line)
        assert "as a group: ada handed in alone" in line and "column 'group'" in line
    students = [row["student"] for row in rows_of((place / "x.csv").read_text("utf-8-sig"))]
    assert {"ada", "eve+ada", "eve"} <= set(students)
    assert (place / "made" / "eve+ada.html").exists()


def test_a_gradebook_and_a_roster_complete_each_other(place: Path) -> None:
    (place / "times.csv").write_text("student,submitted,due\nada,2026-02-01,2026-01-01\nteam,,\n")
    (place / "book.csv").write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section,SGEMM (1)\nLovelace,9,s9,ada,A,\n"
    )
    both = ("--roster", "times.csv", "--roster", "book.csv")
    canvas = ("export", "canvas", "--assignment", "SGEMM", "--to", "-")
    done = grade(*canvas, *both, cwd=place)
    assert done.returncode == 0, done.stderr
    assert "Lovelace,9,s9,ada,A,80.00" in done.stdout and "team" not in done.stdout
    assert "skipped: team: no ID in Canvas's gradebook" in done.stderr
    done = grade("export", "csv", *both, cwd=place)
    row = next(row for row in rows_of(done.stdout) if row["student"] == "ada")
    assert (row["name"], row["late"]) == ("Lovelace", "yes")
    assert grade(*canvas, *both[:2], cwd=place).returncode == 2
    (place / "other.csv").write_text("student,due\nada,2026-01-02\n")
    done = grade("leaderboard", *both, "--roster", "other.csv", cwd=place)
    assert done.returncode == 2 and "other.csv: due of ada" in done.stderr


def test_without_times_of_hand_in_nobody_is_called_late(place: Path) -> None:
    keep(place / "late", "ada", 80, attempt=9, submitted=())
    due = ("--due", "2026-01-05T00:00Z,late=5%/day", "--out", "late")
    done = grade("leaderboard", *due, cwd=place)
    assert done.returncode == 0 and "days late" not in done.stdout and "80.00" in done.stdout
    assert "student and submitted: --roster" in done.stderr
    (place / "times.csv").write_text("student,submitted\nada,2026-01-06T12:00Z\n")
    done = grade("leaderboard", *due, "--roster", "times.csv", cwd=place)
    assert "2 days late" in done.stdout and done.stderr == ""


def test_a_group_has_the_latest_due_date_of_its_members(tmp_path: Path) -> None:
    known = parties(tmp_path, "student,group,due\na,g,2026-01-05\nb,g,2026-01-09\nc,g,\n")
    assert (due := known.roster["g"].due) and due.day == 9
    with pytest.raises(UsageError, match="also the name of a student"):
        parties(tmp_path, "student,group\na,b\nb,\n")


# --- rubric and marks -------------------------------------------------------------------------


def test_from_sheet_to_grades(place: Path) -> None:
    done = grade(*OPTIONS, cwd=place)
    assert done.returncode == 0, done.stderr
    sheet = (place / "made" / "marks.csv").read_text(encoding="utf-8-sig")
    assert "ada,Ada,,AC,80.0,80.0,100.0,,,,,," in sheet
    assert 'team,"Ben, Cy",ben cy,AC,70.0' in sheet and "gone,Gone,,,,,,missing" in sheet
    assert "____ of 30 points" in (place / "made" / "team.html").read_text()
    assert (place / "made" / "ada.html").stat().st_mode & 0o077 == 0
    again = grade(*OPTIONS, cwd=place)
    assert again.returncode == 2 and "marks.csv is there already" in again.stderr

    made = filled(place, MARKS)
    exports = ("--csv", "grades.csv", "--gradescope", "scope")
    done = grade(*OPTIONS, "--marks", made, *exports, "--points", "20", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "60 % measured, 40 % report" in done.stdout and "graded: 2, not graded: 2" in done.stdout
    rows = rows_of((place / "grades.csv").read_text("utf-8").split("\ufeff")[1])
    grades = {row["student"]: (row["grade"], row["missing"]) for row in rows}
    team = 60 * 0.7 + 40 * 20.5 / 40
    assert grades == {
        "ada": (f"{(60 * 0.8 + 40 * 0.75) / 5:.1f}", ""),
        "ben": (f"{team / 5:.1f}", ""),
        "cy": (f"{team / 5:.1f}", ""),
        "'=eq": ("", "not marked: q2"),
        "gone": ("", "no result; not marked"),
    }
    document = json.loads((place / "scope" / "team.json").read_text())
    check_gradescope(document)
    assert document["score"] == round(team / 5, 2)
    assert [test.get("score") for test in document["tests"][-2:]] == [5, 15.5]
    assert document["tests"][-1]["output"] == "<b>no</b>, why?"
    page = (place / "made" / "team.html").read_text()
    assert "15.5 of 30 points" in page and "&lt;b&gt;no&lt;/b&gt;, why?" in page
    done = grade(*OPTIONS, "--marks", made, "--weights", "measured=1,report=0", cwd=place)
    assert "graded: 3, not graded: 1" in done.stdout  # what counts nothing may be missing


def test_grades_for_canvas(place: Path) -> None:
    (place / "roster.csv").write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section,group\n"
        "    Points Possible,,,,,\nAda,11,s1,ada,A,\nBen,12,s2,ben,A,team\nCy,13,s3,cy,A,team\n"
    )
    assert grade(*OPTIONS, cwd=place).returncode == 0
    made = filled(place, MARKS)
    options = ("--canvas", "up.csv", "--assignment", "SGEMM (1)", "--points", "50")
    done = grade(*OPTIONS, "--marks", made, *options, cwd=place)
    assert done.returncode == 0, done.stderr
    rows = list(csv.reader((place / "up.csv").open(newline="", encoding="utf-8")))
    assert rows[0][5] == "SGEMM (1)" and rows[1][5] == "50"
    points = {row[1]: row[5] for row in rows[2:]}
    assert points == {"11": "39.00", "12": "31.25", "13": "31.25"}


SHEET = "student,q1 (of 10),q2 (of 30),comment\n"


@pytest.mark.parametrize(("text", "words"), values(__file__, "marks_mistakes.txt"))
def test_a_mistake_in_the_marks_is_one_line(place: Path, text: str, words: str) -> None:
    (place / "marks.csv").write_text(text.replace("$SHEET", SHEET))
    rubric = read_rubric(place / "rubric.yaml")
    with pytest.raises(UsageError) as caught:
        read_sheet(place / "marks.csv", rubric, {"ada", "=eq"})
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (RUBRIC.replace("points: 10", "points: 0"), "questions[0].points: expected a number > 0"),
        (RUBRIC.replace("q2", "Q1"), "questions[1].id: 'Q1' is taken by questions[0]"),
        (RUBRIC.replace("60", "0").replace("40", "0"), "weights: both are 0"),
        (RUBRIC.replace("report: 40", "human: 40"), "weights.human: unknown key"),
        ("questions: []\n", "questions: expected a list of {id: q1"),
    ],
)
def test_a_mistake_in_the_rubric_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "rubric.yaml"
    path.write_text(text)
    with pytest.raises(LabError, match=re.escape(words)):
        read_rubric(path)
    path.write_text(DEFAULT_LAB.read_text() + "rubric:\n" + textwrap.indent(text, "  "))
    with pytest.raises(LabError, match=re.escape(f"rubric.{words}")):
        load_lab(path)


def test_a_rubric_in_the_lab_file_changes_no_result(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    text = DEFAULT_LAB.read_text() + "rubric:\n" + textwrap.indent(RUBRIC, "  ")
    path.write_text(text)
    one = load_lab(path)
    assert one.rubric and one.rubric.points == 40
    path.write_text(text.replace("points: 30", "points: 20"))
    assert load_lab(path).sha256 == one.sha256


@pytest.mark.parametrize("text", ["", "measured=60", "measured=1,report=x", "measured=0,report=0"])
def test_weights_on_the_command_line(text: str) -> None:
    assert ENGLISH(read_weights("measured=3, report=1").words) == "75 % measured, 25 % report"
    with pytest.raises(ValueError, match="measured=60,report=40"):
        read_weights(text)


# --- regrading --------------------------------------------------------------------------------


OTHER = LabRef(id="sgemm", sha256="f" * 64)


def regraded(out: Path, student: str, total: float | None, **changes: object) -> None:
    """The student's result again, by another lab file."""
    (before,) = read_index(out).of(student)
    again = gpu_result(student, total, created="2026-02-01T12:00:00+00:00", lab=OTHER, **changes)
    who = store.load(before.path).submission
    store.save(out, msgspec.structs.replace(again, submission=who))


def test_a_regrade_keeps_what_it_replaces_and_says_why(tmp_path: Path) -> None:
    out = tmp_path / "results"
    halved = Score(total=40, max=100, policy="linear", shares=())
    light, heavy = (
        Score(
            total=total,
            max=100,
            policy="oj",
            shares=(Share(case="performance-0", weight=weight), Share(case="x", weight=1)),
        )
        for total, weight in ((80, 1), (70, 3))
    )
    for student in ("same", "scored", "broken", "slower", "waiting"):
        keep(out, student, 80)
    keep(out, "weighed", 80, score=light)
    regraded(out, "weighed", 80, score=heavy)
    regraded(out, "same", 80)
    regraded(out, "scored", 80, score=halved)
    regraded(out, "broken", None, verdict=Verdict.WA, cases=(WRONG,))
    regraded(out, "slower", 60)
    entries, complaints = read_entries(out)
    assert len(entries) == 6 and complaints == []  # boards show only the present ones
    assert len(store.former(out, "sgemm")) == 5
    done = grade("course", "regrade", "--csv", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = {row["student"]: row for row in rows_of(done.stdout)}
    assert rows.keys() == {"scored", "broken", "slower", "waiting", "weighed"}
    assert "other weights of the timed sizes" in rows["weighed"]["reasons"]
    assert "scoring oj → linear" in rows["scored"]["reasons"]
    assert (rows["scored"]["points_before"], rows["scored"]["points_after"]) == ("80.0", "40.0")
    assert "verdict AC → WA at 4×6×5, a size that the lab did not have" in rows["broken"]["reasons"]
    assert "timed again at 8192×8192×8192: 80.0 % → 60.0 % of cuBLAS" in rows["slower"]["reasons"]
    assert rows["waiting"]["reasons"] == "no result with the new lab file yet"
    shown = grade("course", "regrade", cwd=tmp_path).stdout
    assert "5 changed, 1 did not" in shown and "lab file ffffffffffff: 5 graded" in shown
    assert_chinese(grade("course", "regrade", "--language", "zh", cwd=tmp_path).stdout)
    back = grade("course", "regrade", "--before", "fff", "--after", SHA[:8], cwd=tmp_path)
    assert "scoring linear → oj" in " ".join(back.stdout.split())
    wrong = grade("course", "regrade", "--before", "abc", cwd=tmp_path)
    assert wrong.returncode == 2 and "abc: no results by this lab file" in wrong.stderr


def test_other_rules_of_time_change_what_counts(tmp_path: Path) -> None:
    keep(tmp_path / "results", "ada", 80, attempt=9)
    text = DEFAULT_LAB.read_text()
    late = 'time: {due: "2026-01-09T12:00Z", late: {percent: %d}}\n'
    for name, percent in (("old", 10), ("new", 25)):
        (tmp_path / f"{name}.yaml").write_text(text + late % percent)
    sha256 = load_lab(tmp_path / "new.yaml").sha256
    assert load_lab(tmp_path / "old.yaml").sha256 == sha256
    result = gpu_result("ada", 80, lab=LabRef(id="sgemm", sha256=sha256))
    who = msgspec.structs.replace(result.submission, submitted=("2026-01-10T13:00Z",))
    result = msgspec.structs.replace(result, submission=who, created="2026-01-10T13:00Z")
    store.save(tmp_path / "results", result)
    which = ("--before", "old.yaml", "--after", "new.yaml", "--csv", "-")
    done = grade("course", "regrade", *which, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = rows_of(done.stdout)
    assert (row["points_before"], row["points_after"]) == ("80.0", "80.0")
    assert (row["adjusted_before"], row["adjusted_after"]) == ("64.0", "40.0")
    assert row["reasons"] == "late work loses 40 instead of 16 (2 days late)"
