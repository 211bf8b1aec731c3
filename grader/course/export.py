"""Whole boards in the formats that course systems read. Everything is quoted by csv and json."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import msgspec

from grader.course.leaderboard.ranking import Board
from grader.course.roster import CANVAS_COLUMNS, Roster
from grader.errors import UsageError

# --- Canvas -----------------------------------------------------------------------------------


def canvas(board: Board, roster: Roster, assignment: str, points: float) -> str:
    """A gradebook to import: identities as the roster has them, scores after what late work loses,
    scaled to ``points``.

    Students without a result are left out: a blank would clear a grade given by hand. Raises
    UsageError when the roster has no Canvas IDs.
    """
    if not all(person.canvas.get("ID") for person in roster.values()):
        raise UsageError(
            "canvas: the roster has no Canvas IDs; give the gradebook exported from Canvas "
            "(Grades, Export) with --roster"
        )
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow([*CANVAS_COLUMNS, assignment])
    writer.writerow(["    Points Possible", "", "", "", "", f"{points:g}"])
    for row in board.rows:
        person = roster.get(row.student)
        if row.kind != "student" or person is None or row.adjusted is None:
            continue
        value = row.adjusted / (row.max_points or 100) * points
        identity = [person.canvas.get(column, "") for column in CANVAS_COLUMNS]
        writer.writerow([*identity, f"{value:.2f}"])
    return buffer.getvalue()


# --- JSON -------------------------------------------------------------------------------------


def board_json(boards: Sequence[Board]) -> str:
    """Boards and rows with the names of their fields."""
    return msgspec.json.format(msgspec.json.encode(boards), indent=1).decode() + "\n"
