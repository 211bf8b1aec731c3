"""Whole boards in the formats that course systems read. Everything is quoted by csv and json."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

import msgspec

from grader.course.leaderboard.ranking import Board, Row
from grader.course.parties import Parties
from grader.course.roster import CANVAS_COLUMNS
from grader.course.rubric.grades import Grade
from grader.course.spreadsheet import harmless
from grader.errors import UsageError

# --- Canvas -----------------------------------------------------------------------------------


def board_shares(board: Board) -> dict[str, float]:
    """Of each student with a result, what part of the points is left after what late work loses."""
    return {
        row.student: row.adjusted / (row.max_points or 100)
        for row in board.rows
        if row.kind == "student" and row.adjusted is not None
    }


def canvas(shares: Mapping[str, float], parties: Parties, assignment: str, points: float) -> str:
    """A gradebook to import: identities as the roster has them, shares scaled to ``points``. Every
    member of a group gets the group's.

    Students without a share are left out: a blank would clear a grade given by hand. Raises
    UsageError when the roster has no Canvas IDs.
    """
    if not all(person.canvas.get("ID") for person in parties.people.values()):
        raise UsageError(
            "canvas: the roster has no Canvas IDs; give the gradebook exported from Canvas "
            "(Grades, Export) with --roster"
        )
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow([*CANVAS_COLUMNS, assignment])
    writer.writerow(["    Points Possible", "", "", "", "", f"{points:g}"])
    for party, share in shares.items():
        for person in parties.members(party):
            identity = [person.canvas.get(column, "") for column in CANVAS_COLUMNS]
            writer.writerow([*identity, f"{share * points:.2f}"])
    return buffer.getvalue()


# --- grades -----------------------------------------------------------------------------------


def grades_csv(grades: Sequence[Grade], parties: Parties, points: float) -> str:
    """One row per student: every member of a group has the group's. Blank where a part is missing,
    with the reason."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    columns = ("student", "name", "submission", "measured_percent", "report_percent", "grade")
    writer.writerow((*columns, "of", "missing"))
    for grade in grades:
        shares = [None if s is None else round(100 * s, 2) for s in (grade.measured, grade.report)]
        total = None if grade.total is None else round(grade.total / 100 * points, 2)
        people = parties.members(grade.student)
        for student, name in [(p.student, p.name) for p in people] or [(grade.student, "")]:
            cells = (student, name, grade.student, *shares, total, f"{points:g}", grade.missing)
            writer.writerow([harmless(cell) for cell in cells])
    return buffer.getvalue()


# --- JSON -------------------------------------------------------------------------------------


def board_json(boards: Sequence[Board]) -> str:
    """Boards and rows with the names of their fields; sentences in English."""
    documents = [
        {**msgspec.structs.asdict(board), "rows": [_row(row) for row in board.rows]}
        for board in boards
    ]
    return msgspec.json.format(msgspec.json.encode(documents), indent=1).decode() + "\n"


def _row(row: Row) -> dict[str, object]:
    return {**msgspec.structs.asdict(row), "lateness": str(row.lateness)}
