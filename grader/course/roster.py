"""Who is in the course: a CSV file with one row per student.

The column ``student`` (or ``SIS Login ID`` in a gradebook exported from Canvas) holds the name of
the submission's folder. Optional: ``name``, ``submitted`` and ``due`` (ISO 8601 times; without a
zone they are UTC). The columns of a Canvas gradebook are kept for the export.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from grader.errors import UsageError
from grader.model import Record
from grader.model.moments import moment

CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_KEYS = ("student", "SIS Login ID")
_NAMES = ("name", "Student")


class Person(Record):
    """One student of the roster."""

    student: str  # name of the submission's folder
    name: str  # "" when the roster has none
    submitted: datetime | None
    due: datetime | None
    canvas: Mapping[str, str]  # the columns of CANVAS_COLUMNS that the roster has


Roster = Mapping[str, Person]


def handed_in(person: Person | None, submitted: str | None, graded: str) -> datetime:
    """The time in the roster counts, else the known time of submission (``submitted``), else the
    time of grading. Times are ISO 8601."""
    return (person.submitted if person else None) or moment(submitted or graded)


def due_for(person: Person | None, due: datetime | None) -> datetime | None:
    """A due date in the roster has precedence over ``due``."""
    return (person.due if person else None) or due


def read_roster(path: Path) -> Roster:
    """The students by folder name, in the file's order. Raises UsageError naming file and line."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: not UTF-8 text; save the file as CSV UTF-8") from None
    try:
        return _read(path, csv.DictReader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise UsageError(f"{path}: not a CSV file: {error}") from None


def _read(path: Path, reader: csv.DictReader[str]) -> dict[str, Person]:
    columns = reader.fieldnames or ()
    key = next((name for name in _KEYS if name in columns), None)
    if key is None:
        wanted = " or ".join(map(repr, _KEYS))
        if len(columns) == 1 and any(key in re.split("[;\t]", columns[0]) for key in _KEYS):
            raise UsageError(f"{path}:1: no commas between the columns; save it with commas")
        raise UsageError(f"{path}:1: no column {wanted}: which holds the submissions' folder names")
    name = next((column for column in _NAMES if column in columns), None)
    roster: dict[str, Person] = {}
    for row in reader:
        student = (row[key] or "").strip()
        if not student:  # Canvas puts the points possible into a row without a student
            continue
        where = f"{path}:{reader.line_num}"
        if student in roster:
            raise UsageError(f"{where}: {key} {student!r} appears twice; keep one row")
        roster[student] = Person(
            student=student,
            name=(row[name] or "").strip() if name else "",
            submitted=_time(where, "submitted", row),
            due=_time(where, "due", row),
            canvas={column: row[column] or "" for column in CANVAS_COLUMNS if column in columns},
        )
    return roster


def _time(where: str, column: str, row: Mapping[str, str | None]) -> datetime | None:
    text = row.get(column)
    if not text or not text.strip():
        return None
    try:
        return moment(text)
    except ValueError:
        example = "2026-01-31T23:59:00+01:00"
        raise UsageError(
            f"{where}: {column}: expected a time such as {example}, got {text!r}"
        ) from None
