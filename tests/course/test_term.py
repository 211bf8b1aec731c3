"""A term: course.yaml, late days, the lowest dropped, and a total that is only ever added up."""

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.base.errors import LabError, UsageError
from grader.base.language import ENGLISH
from grader.base.records import moment
from grader.course import term
from grader.course.board_rendering import for_students
from grader.labs.course_rules import Late, TimeRules, lateness
from grader.labs.lab import load_term
from grader.results.entries import read_entries
from tests.support.boards import grade, keep, rows_of
from tests.support.commands import hand_in, one_line
from tests.support.files import beside, table, values
from tests.support.pages import gpu_result
from tests.support.results import make_result

COURSE = beside(__file__, "course.yaml")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A term of two labs, which lose a tenth a day, and results of both."""
    for name in ("one", "two"):
        sizes = "correctness: [[1, 1, 1]]\nperformance: [{mnk: [8, 8, 8]}]\ncpu: [[2, 3, 5]]\n"
        (tmp_path / f"{name}.yaml").write_text(
            f"id: {name}\n{sizes}time: {{late: {{percent: 10}}}}\n"
        )
    (tmp_path / "broken.yaml").write_text("id: broken\n")
    (tmp_path / "course.yaml").write_text(COURSE)
    (tmp_path / "class.csv").write_text("student,name\nann,Ann Lee\nbob,\ncy,\ndora,\n")
    return tmp_path


def graded(place: Path, lab: str, student: str, total: float, day: int, **more: object) -> None:
    """day: of January, at noon, when it was handed in."""
    of_lab = msgspec.structs.replace(make_result().lab, id=lab)
    keep(place / "results", student, total, attempt=day - 1, lab=of_lab, **more)  # type: ignore[arg-type]


def added(place: Path) -> dict[str, dict[str, str]]:
    """The gradebook as a spreadsheet has it, by student."""
    known, labs = load_term(place / "course.yaml")
    boards, people, _ = term.term_boards(known, labs, read_entries(place / "results")[0])
    text = term.table_csv(term.add_up(boards, known, people))
    return {row["student"]: row for row in rows_of(text)}


# --- the arithmetic ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shares", "weights", "drop", "percent", "which"), values(__file__, "sums.txt")
)
def test_a_sum_by_hand(
    shares: list[float], weights: list[float], drop: int, percent: float, which: list[int]
) -> None:
    total, dropped = term.weigh(shares, weights, drop)
    assert 100 * total == pytest.approx(percent)
    assert sorted(dropped) == which


@given(
    st.lists(st.tuples(st.floats(0, 1.2), st.floats(0.1, 9)), min_size=1, max_size=9),
    st.integers(0, 9),
    st.floats(0.1, 50),
)
def test_dropping_never_lowers_a_total_and_weights_have_no_scale(
    labs: list[tuple[float, float]], drop: int, scale: float
) -> None:
    shares, weights = zip(*labs, strict=True)
    total, dropped = term.weigh(shares, weights, drop)
    assert total <= term.weigh(shares, weights, drop + 1)[0] + 1e-9
    assert len(dropped) == min(drop, len(shares) - 1)
    scaled = [scale * weight for weight in weights]
    assert term.weigh(shares, scaled, drop)[0] == pytest.approx(total)


@pytest.mark.parametrize(
    ("loses", "grace", "late", "bank", "used", "points"), values(__file__, "late_days.txt")
)
def test_late_days_move_the_date(
    loses: dict[str, Any], grace: float, late: dict[str, float], bank: int, used: int, points: float
) -> None:
    rules = TimeRules(grace_minutes=grace, late=Late(**loses) if loses else None)
    due = moment("2026-01-02T12:00:00Z")
    found = lateness(due + timedelta(**late), due, rules, 80.0, bank)
    days, lost = (found.days, found.lost) if found else (0, 0)
    assert (days, lost) == (used, pytest.approx(points))


# --- boards -----------------------------------------------------------------------------------


def test_days_are_spent_in_the_order_of_dates_and_the_rest_falls_under_the_labs_rule(
    place: Path,
) -> None:
    graded(place, "one", "ann", 80, day=4)  # two days late: covered
    graded(place, "two", "ann", 90, day=12)  # three days late: one is left
    graded(place, "one", "bob", 60, day=2)
    graded(place, "two", "bob", 70, day=12)  # covered
    graded(place, "one", "cy", 50, day=1)
    found = added(place)
    ann = found["ann"]
    assert (ann["full name"], ann["one"], ann["two"]) == ("Ann Lee", "80.00", "72.00")
    assert (ann["late days"], ann["total"]) == ("3", "80.00")
    assert ann["marks"] == ("one: 2 late days used; two: 2 days late, 1 late day used, not counted")
    assert (found["bob"]["two"], found["bob"]["late days"], found["bob"]["total"]) == (
        *("70.00", "3", "70.00"),
    )
    cy, dora = found["cy"], found["dora"]
    assert (cy["two"], cy["total"], cy["marks"]) == ("missing", "50.00", "two: not counted")
    assert (dora["one"], dora["two"], dora["total"], dora["rank"]) == (
        *("missing", "missing", "0.00", "4"),
    )
    assert [found[name]["rank"] for name in ("ann", "bob", "cy")] == ["1", "2", "3"]


def test_other_weights_and_dates_need_no_grading(place: Path) -> None:
    for student, one, two in (("ann", 80, 40), ("bob", 50, 100)):
        graded(place, "one", student, one, day=1)
        graded(place, "two", student, two, day=9)
    (place / "course.yaml").write_text(COURSE.replace("drop_lowest: 1", "drop_lowest: 0"))
    found = added(place)  # (3 · 80 + 40) / 4, (3 · 50 + 100) / 4
    assert [found[name]["total"] for name in ("ann", "bob")] == ["70.00", "62.50"]
    text = (place / "course.yaml").read_text()
    (place / "course.yaml").write_text(text.replace("weight: 3", "weight: 1"))
    found = added(place)
    assert [found[name]["total"] for name in ("ann", "bob")] == ["60.00", "75.00"]
    assert [found[name]["rank"] for name in ("ann", "bob")] == ["2", "1"]
    (place / "course.yaml").write_text(
        text.replace("01-09T", "01-07T").replace("_days: 3", "_days: 0")
    )
    assert added(place)["bob"]["two"] == "80.00"  # two days late by the new date


def test_a_lab_that_nobody_handed_in_yet_does_not_count(place: Path) -> None:
    graded(place, "one", "ann", 80, day=1)
    found = added(place)
    assert "two" not in found["ann"]
    assert (found["ann"]["total"], found["bob"]["total"]) == ("80.00", "0.00")


def test_a_groups_work_counts_for_every_member_and_takes_days_of_each(place: Path) -> None:
    """cy used a day before the group needs two: it has what the one with fewest has left."""
    (place / "pairs.csv").write_text("student,group\nbob,team\ncy,team\n")
    text = COURSE.replace("late_days: 3", "late_days: 2").replace(
        "drop_lowest: 1", "drop_lowest: 0"
    )
    second = text.rindex("[class.csv]")
    (place / "course.yaml").write_text(text[:second] + "[class.csv, pairs.csv]}\n")
    graded(place, "one", "bob", 60, day=2)
    graded(place, "one", "cy", 60, day=3)
    graded(place, "two", "team", 100, day=11)
    found = added(place)
    assert "team" not in found
    assert [found[name]["two"] for name in ("bob", "cy")] == ["90.00", "90.00"]
    assert [found[name]["late days"] for name in ("bob", "cy")] == ["1", "2"]


def test_results_of_a_gpu_go_before_the_simulators_and_two_gpus_are_an_error(place: Path) -> None:
    graded(place, "one", "ann", 80, day=1)
    here = msgspec.structs.replace(make_result().environment, gpu=None)
    graded(place, "one", "bob", None, day=1, environment=here)
    assert added(place)["ann"]["one"] == "80.00"
    other = msgspec.structs.replace(gpu_result().environment.gpu, name="NVIDIA A100")
    graded(place, "one", "ann", 70, day=1, gpu=other)
    with pytest.raises(UsageError, match="one: results of several GPUs; keep"):
        added(place)


def test_the_board_for_students_tells_nothing_of_lateness(place: Path) -> None:
    graded(place, "one", "ann", 80, day=9)  # seven days late, three of them covered
    graded(place, "two", "ann", 100, day=9)
    known, labs = load_term(place / "course.yaml")
    boards, people, _ = term.term_boards(known, labs, read_entries(place / "results")[0])
    private = term.html(term.add_up(boards, known, people), known, ENGLISH)
    assert "Ann Lee" in private and "48.00" in private and "4 days late" in private
    board = term.add_up(for_students(boards, str.upper), known, {})
    page = term.html(board, known, ENGLISH)
    assert "ANN" in page and "80.00" in page
    assert "late" not in page[page.index("<main") : page.index("<script")]
    assert not any(name in page for name in ("Ann Lee", "dora", "DORA"))


# --- course.yaml and the command --------------------------------------------------------------


@pytest.mark.parametrize(("old", "new", "words"), table(__file__, "term_mistakes.txt"))
def test_a_mistake_is_one_line(
    place: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, words: str
) -> None:
    monkeypatch.chdir(place)
    assert old in COURSE
    Path("course.yaml").write_text(COURSE.replace(old, new, 1))
    with pytest.raises(LabError) as caught:
        load_term(Path("course.yaml"))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_command_grades_one_lab_and_adds_up(place: Path) -> None:
    hand_in(place / "handed" / "ann")
    hand_in(place / "handed" / "bob", "int x = ;")
    course = ("class", "--course", "course.yaml", "--device", "cpu")
    one_line(grade(*course, cwd=place), 0, "no such results in results")
    one_line(grade("class", cwd=place), 2, "name a folder of submissions, or a term to add up")
    done = grade(*course, "handed", cwd=place)
    one_line(done, 2, "--lab: sgemm is no lab of course.yaml: one, two")
    done = grade(*course, "handed", "--lab", "two.yaml", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "graded now: 2 (1 AC, 1 CE)" in done.stdout
    book = (place / "results" / "course" / "gradebook.csv").read_text("utf-8-sig")
    assert {row["student"]: row["total"] for row in rows_of(book)} == {
        **{"ann": "100.00", "bob": "0.00", "cy": "0.00", "dora": "0.00"}
    }
    shutil.rmtree(place / "handed")
    again = grade(*course, cwd=place)  # of stored results alone
    assert again.returncode == 0 and "ann" in again.stdout and "graded" not in again.stdout
    assert (place / "results" / "course" / "gradebook.csv").read_text("utf-8-sig") == book
    changed = (place / "two.yaml").read_text().replace("[[2, 3, 5]]", "[[2, 3, 5], [3, 4, 5]]")
    (place / "two.yaml").write_text(changed)
    again = grade(*course, cwd=place)
    assert "results by another version of this lab file: 2" in again.stderr
    shown = (place / "results" / "course" / "board.html").read_text()
    assert "ann" not in shown[shown.index("<main") : shown.index("<script")]
    assert (place / "results" / "course").stat().st_mode & 0o077 == 0
