"""The sheet that humans fill in: one row per submission, a column for every question's points and
one for what there is to say about it.

Columns before the first question tell what was measured; they are not read back.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from grader.course.leaderboard.board_render import marks as remarks
from grader.course.leaderboard.ranking import Row
from grader.course.roster import Roster
from grader.course.spreadsheet import harmless, open_csv
from grader.errors import UsageError, one_line
from grader.labs.rubric import Question, Rubric
from grader.model import Record

_TOLD = ("student", "name", "members", "verdict", "measured", "adjusted", "of", "remarks")
_COMMENT = "comment"


class Marks(Record):
    """What a human gave one submission."""

    points: Mapping[str, float]  # by question; without those that have none yet
    comments: Mapping[str, str]  # by question; only those that say something
    comment: str  # on the whole


def points_column(question: Question) -> str:
    return f"{question.id} (of {question.points:g})"


def comment_column(question: Question) -> str:
    return f"{question.id} {_COMMENT}"


def write_sheet(
    rows: Sequence[Row], roster: Roster, rubric: Rubric, marked: Mapping[str, Marks]
) -> str:
    """marked: what humans gave before, by student."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow([*_TOLD, *_asked(rubric), _COMMENT])
    for row in rows:
        person = roster.get(row.student)
        given = marked.get(row.student)
        told = [
            *(row.student, *((person.name, " ".join(person.members)) if person else ("", ""))),
            *(row.verdict.value if row.verdict else "", row.points, row.adjusted, row.max_points),
            str(remarks(row)),
        ]
        for question in rubric.questions:
            told.append(given.points.get(question.id) if given else None)
            told.append(given.comments.get(question.id) if given else None)
        writer.writerow([harmless(cell) for cell in (*told, given.comment if given else "")])
    return buffer.getvalue()


def read_sheet(path: Path, rubric: Rubric, students: Collection[str]) -> dict[str, Marks]:
    """The marks by student, of those for whom the file has a row. Raises UsageError, one line that
    names row and column.

    students: who may be in it.
    """
    reader = open_csv(path)
    try:
        _check_columns(path, reader.fieldnames or (), rubric)
        return _read(path, reader, rubric, _as_written(students))
    except csv.Error as error:
        raise UsageError(f"{path}:{reader.line_num}: not a CSV file: {error}") from None


def _asked(rubric: Rubric) -> list[str]:
    return [
        column
        for question in rubric.questions
        for column in (points_column(question), comment_column(question))
    ]


def _check_columns(path: Path, columns: Sequence[str], rubric: Rubric) -> None:
    known = [*_TOLD, *_asked(rubric), _COMMENT]
    for column in columns:
        if column not in known:
            if len(columns) == 1 and re.search("[;\t]", column):
                raise UsageError(f"{path}:1: no commas between the columns; save it with commas")
            raise UsageError(
                f"{path}:1: column {column!r} is not of this rubric, which has: "
                f"{', '.join(_asked(rubric))}; write the sheet again"
            )
        if columns.count(column) > 1:
            raise UsageError(f"{path}:1: column {column!r} appears twice; keep one")
    for needed in ("student", *map(points_column, rubric.questions)):
        if needed not in columns:
            raise UsageError(f"{path}:1: no column {needed!r}; write the sheet again")


def _as_written(students: Collection[str]) -> dict[str, str]:
    """Students by the text of their cell, in which a formula was made harmless."""
    return {str(harmless(student)): student for student in students} | {
        student: student for student in students
    }


def _read(
    path: Path, reader: csv.DictReader[str], rubric: Rubric, students: Mapping[str, str]
) -> dict[str, Marks]:
    found: dict[str, Marks] = {}
    for line, row in _lines(reader):
        where = f"{path}:{line}"
        if None in row:
            raise UsageError(f"{where}: more cells than columns; quote text that has commas")
        if not any(row.values()):
            continue
        if None in row.values():
            raise UsageError(f"{where}: fewer cells than columns; is a part of the row missing?")
        named = row["student"].strip()
        student = students.get(named)
        if student is None:
            raise UsageError(
                f"{where}: student: {one_line(named)!r} has no result here and is not in the roster"
            )
        if student in found:
            raise UsageError(f"{where}: student: {one_line(named)!r} appears twice; keep one row")
        found[student] = _marks(where, row, rubric)
    return found


def _lines(reader: csv.DictReader[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows with the line they begin in: a comment may have several lines."""
    before = reader.line_num
    for row in reader:
        yield before + 1, row
        before = reader.line_num


def _marks(where: str, row: Mapping[str, str], rubric: Rubric) -> Marks:
    points, comments = {}, {}
    for question in rubric.questions:
        column = points_column(question)
        if text := row[column].strip():
            points[question.id] = _points(f"{where}: {column}", text, question.points)
        if text := row.get(comment_column(question), "").strip():
            comments[question.id] = text
    return Marks(points=points, comments=comments, comment=row.get(_COMMENT, "").strip())


def _points(where: str, text: str, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        remedy = "; write the decimals after a point" if "," in text else ""
        raise UsageError(
            f"{where}: expected a number from 0 to {most:g}, got {one_line(text)!r}{remedy}"
        )
    return value
