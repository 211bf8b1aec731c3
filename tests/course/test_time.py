"""Due dates, grace and penalties: raw points stay, adjusted ones stand beside them."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from grader.base.errors import LabError
from grader.base.language import language
from grader.base.records import moment
from grader.course import board_rendering as render
from grader.course.leaderboard import Row, make_boards
from grader.course.roster import Parties, read_roster
from grader.labs.course_rules import Late, TimeRules, due_rule, lateness
from grader.labs.lab import load_lab
from grader.results.entries import read_entries
from tests.support.boards import grade, keep, rows_of
from tests.support.files import beside, table, values

WHEN = "2026-01-02T12:00:00+00:00"
DUE = moment(WHEN)
FIVE_A_DAY = TimeRules(due=WHEN, late=Late(percent=5, most=40))


@pytest.mark.parametrize(("loses", "grace", "late", "points"), values(__file__, "late_work.txt"))
def test_what_late_work_loses(
    loses: dict[str, Any], grace: float, late: dict[str, float], points: float
) -> None:
    rules = TimeRules(grace_minutes=grace, late=Late(**loses) if loses else None)
    found = lateness(DUE + timedelta(**late), DUE, rules, 80.0)
    assert (found.lost if found else 0.0) == pytest.approx(points)


def test_zones_count() -> None:
    due = moment("2026-03-31T23:59:00+08:00")
    assert lateness(moment("2026-03-31T15:59:00Z"), due, FIVE_A_DAY, 100) is None
    late = lateness(moment("2026-03-31T17:00:00+01:00"), due, FIVE_A_DAY, 100)
    assert late is not None and str(late.words) == "1 day late"


# --- boards -----------------------------------------------------------------------------------


def rows(
    out: Path, choice: str = "best", rules: TimeRules = FIVE_A_DAY, **more: object
) -> dict[str, Row]:
    (board,) = make_boards(read_entries(out)[0], choice, rules=rules, **more)  # type: ignore[arg-type]
    return {row.student: row for row in board.rows}


def test_raw_and_adjusted_points_stand_in_boards_and_exports(tmp_path: Path) -> None:
    keep(tmp_path, "ann", 80, attempt=1)  # graded at noon of January 2, when work is due
    keep(tmp_path, "bob", 82, attempt=3)  # two days later
    found = (board,) = make_boards(read_entries(tmp_path)[0], rules=FIVE_A_DAY)
    ann, bob = (row for row in board.rows if row.kind == "student")
    assert (ann.student, ann.points, ann.adjusted, str(ann.lateness)) == ("ann", 80, 80, "")
    assert (bob.points, bob.adjusted, str(bob.lateness), bob.rank) == (82, 73.8, "2 days late", 2)

    table = rows_of(render.table_csv(found, None))
    row = next(each for each in table if each["student"] == "bob")
    assert (row["points"], row["adjusted_points"]) == ("82.0", "73.8")
    assert (row["late"], row["lateness"]) == ("yes", "2 days late")
    document = json.loads(render.board_json(found))
    row = next(each for each in document[0]["rows"] if each["student"] == "bob")
    assert (row["points"], row["adjusted"], row["lateness"]) == (82, 73.8, "2 days late")
    assert "late_days" not in row  # only a term has them
    page = render.html(found, None)
    assert "82.00" in page and "73.80" in page and "2 days late" in page
    assert "迟交 2 天" in render.html(found, None, language("zh_CN"))

    book = tmp_path / "gradebook.csv"
    book.write_text("Student,ID,SIS User ID,SIS Login ID,Section\nBob,1,s,bob,A\n")
    people = Parties(read_roster(book))
    canvas, _ = render.canvas(render.board_shares(board), people, "SGEMM (1)", 100)
    assert "bob,A,73.80" in canvas

    hidden = render.for_students(found, str.upper)
    names = [(row.rank, row.student, row.adjusted) for row in hidden[0].rows if row.rank]
    assert names == [(1, "BOB", 82), (2, "ANN", 80)]  # a penalty would tell who was late
    assert "late" not in "".join(str(row.lateness) for row in hidden[0].rows)


def test_which_attempt_counts(tmp_path: Path) -> None:
    for attempt, total in ((0, 50), (1, 60), (2, 62), (4, 90), (5, 40)):
        keep(tmp_path, "ann", total, attempt=attempt)
    keep(tmp_path, "bob", 70, attempt=3)
    keep(tmp_path, "bob", 75, attempt=6)
    for choice, ann, bob in (
        ("best", (90, 76.5), (70, 63.0)),  # three days late, and still the best
        ("latest", (40, 32.0), (75, 56.25)),
        ("last-before-deadline", (60, 60), (70, 63.0)),  # bob: nothing in time
    ):
        found = rows(tmp_path, choice)
        assert (found["ann"].points, found["ann"].adjusted) == ann, choice
        assert (found["bob"].points, found["bob"].adjusted) == bob, choice
    grace = TimeRules(due=WHEN, grace_minutes=24 * 60, late=Late(percent=5))
    assert rows(tmp_path, "last-before-deadline", grace)["ann"].points == 62


def test_a_students_own_date_goes_before_the_labs(tmp_path: Path) -> None:
    keep(tmp_path, "ann", 80, attempt=3)
    keep(tmp_path, "bob", 80, attempt=3)
    file = tmp_path / "roster.csv"
    file.write_text("student,due\nann,2026-01-09T12:00:00Z\nbob,\n")
    found = rows(tmp_path, roster=read_roster(file))
    assert (found["ann"].adjusted, found["bob"].adjusted) == (80, 72)


# --- the lab file and --due -------------------------------------------------------------------

LAB = beside(__file__, "late.yaml")


def load(place: Path, text: str = LAB) -> TimeRules:
    file = place / "lab.yaml"
    file.write_text(text)
    rules = load_lab(file).time
    assert rules is not None
    return rules


def test_the_lab_file_and_due_say_the_same(tmp_path: Path) -> None:
    rules = load(tmp_path)
    assert rules.due_at == DUE
    assert rules.late == Late(percent=5, per="day", started="hour", most=40)
    said = due_rule("2026-01-02T12:00Z,grace=15m,late=5%/day,most=40%")
    assert (said.due_at, said.grace_minutes) == (DUE, 15)
    assert said.late == Late(percent=5, per="day", most=40)
    assert due_rule("2026-01-02T12:00Z, late=2/hour, grace=1h").late == Late(points=2, per="hour")


def test_another_date_is_not_another_lab(tmp_path: Path) -> None:
    """Nothing is graded again because work is due a day later."""
    load(tmp_path)
    first = load_lab(tmp_path / "lab.yaml").sha256
    load(tmp_path, LAB.replace("2026-01-02", "2026-01-03"))
    assert load_lab(tmp_path / "lab.yaml").sha256 == first
    load(tmp_path, LAB.replace("cpu: [[1, 1, 1]]", "cpu: [[2, 1, 1]]"))
    assert load_lab(tmp_path / "lab.yaml").sha256 != first


@pytest.mark.parametrize(("old", "new", "words"), table(__file__, "time_mistakes.txt"))
def test_a_mistake_is_one_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in LAB
    with pytest.raises(LabError) as caught:
        load(tmp_path, LAB.replace(old, new, 1))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("rule", "words"), values(__file__, "due_mistakes.txt"))
def test_a_wrong_rule_on_the_command_line(rule: str, words: str) -> None:
    with pytest.raises(ValueError) as caught:
        due_rule(rule)
    assert words in str(caught.value)


def test_the_command_takes_the_rules_of_a_lab_file_or_of_due(tmp_path: Path) -> None:
    keep(tmp_path / "results", "ann", 80, attempt=0)
    keep(tmp_path / "results", "ann", 90, attempt=3)
    load(tmp_path)

    def csv_row(*options: str) -> dict[str, str]:
        done = grade("export", "csv", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        table = rows_of(done.stdout)
        return next(row for row in table if row["student"] == "ann")

    assert csv_row()["points"] == "90.0"
    assert csv_row("--lab", "lab.yaml")["points"] == "80.0"
    row = csv_row("--due", "2026-01-02T12:00Z,late=5%/day")
    assert (row["points"], row["adjusted_points"]) == ("90.0", "81.0")
    done = grade("leaderboard", "--due", "2026-01-02T12:00Z,late=5", cwd=tmp_path)
    assert done.returncode == 2
    assert "not understood" in done.stderr and "Traceback" not in done.stderr


def test_times_have_a_day_and_else_utc() -> None:
    assert moment("2026-01-02") == datetime.fromisoformat("2026-01-02T00:00:00+00:00")
    assert moment("2026-01-05") == moment("2026-01-05T01:00:00+01:00")
