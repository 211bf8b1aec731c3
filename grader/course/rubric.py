"""The sheet that humans fill in: one row per submission, a column for every question's points and
one for what there is to say about it.

Columns before the first question tell what was measured; they are not read back.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from grader.base import Language, UsageError, one_line
from grader.course.board_rendering import marks as remarks
from grader.course.leaderboard import Board, Row
from grader.course.roster import (
    NO_COMMAS,
    TWICE,
    Parties,
    Person,
    Roster,
    csv_text,
    harmless,
    not_csv,
    open_csv,
)
from grader.labs import Rubric, RubricQuestion, Weights
from grader.report import LongTable, Shown, gradescope, page
from grader.results import Result, weighted_mean
from ptxsim.plan import Record
from ptxsim.text import NOTHING, Message, clauses, phrase

_TOLD = ("student", "name", "members", "verdict", "measured", "adjusted", "of", "remarks")
_COMMENT = "comment"


class Marks(Record):
    """Marks that a human gave one submission."""

    points: Mapping[str, float]  # by question; without those that have none yet
    comments: Mapping[str, str]  # by question; only those that say something
    comment: str  # on the whole


def points_column(question: RubricQuestion) -> str:
    return f"{question.id} (of {question.points:g})"


def comment_column(question: RubricQuestion) -> str:
    return f"{question.id} {_COMMENT}"


def write_sheet(rows: Sequence[Row], roster: Roster, rubric: Rubric) -> str:
    """The sheet, with nothing filled in."""
    blank = [None] * len(_asked(rubric))
    told: list[tuple[object, ...]] = []
    for row in rows:
        person, verdict = roster.get(row.student), row.verdict.value if row.verdict else ""
        who = (person.name, " ".join(person.members)) if person else ("", "")
        figures = (row.points, row.adjusted, row.max_points, str(remarks(row)))
        told.append((row.student, *who, verdict, *figures, *blank, ""))
    return csv_text([*_TOLD, *_asked(rubric), _COMMENT], told)


def read_sheet(path: Path, rubric: Rubric, students: Collection[str]) -> dict[str, Marks]:
    """The marks by student, of those with a row. Raises UsageError that names row and column.

    students: who may be in it.
    """
    reader = open_csv(path)
    # A cell in which a formula was made harmless is known, too.
    known = {str(harmless(each)): each for each in students} | {each: each for each in students}
    try:
        _check_columns(path, reader.fieldnames or (), rubric)
        return _read(path, reader, rubric, known)
    except csv.Error as error:
        raise not_csv(f"{path}:{reader.line_num}", error) from None


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
                raise UsageError(NO_COMMAS.given(place=f"{path}:1"))
            raise UsageError.saying(
                "{place}: column {column} is not of this rubric, which has: {known}; write the "
                "sheet again",
                place=f"{path}:1",
                column=repr(column),
                known=", ".join(_asked(rubric)),
            )
        if columns.count(column) > 1:
            twice = phrase("{place}: column {column} appears twice; keep one", place=f"{path}:1")
            raise UsageError(twice.given(column=repr(column)))
    for needed in ("student", *map(points_column, rubric.questions)):
        if needed not in columns:
            lacks = phrase("{place}: no column {column}; write the sheet again")
            raise UsageError(lacks.given(place=f"{path}:1", column=repr(needed)))


def _read(
    path: Path, reader: csv.DictReader[str], rubric: Rubric, students: Mapping[str, str]
) -> dict[str, Marks]:
    found: dict[str, Marks] = {}
    end = reader.line_num
    for row in reader:
        where, end = f"{path}:{end + 1}", reader.line_num  # a comment may have several lines
        if None in row:
            more = phrase("{place}: more cells than columns; quote text that has commas")
            raise UsageError(more.given(place=where))
        if not any(row.values()):
            continue
        if None in row.values():
            fewer = phrase("{place}: fewer cells than columns; is a part of the row missing?")
            raise UsageError(fewer.given(place=where))
        named = row["student"].strip()
        student = students.get(named)
        if student is None:
            unknown = phrase(
                "{place}: student: {name} has no result here and is not in the roster", place=where
            )
            raise UsageError(unknown.given(name=repr(one_line(named))))
        if student in found:
            raise UsageError(
                TWICE.given(place=where, column="student:", name=repr(one_line(named)))
            )
        found[student] = _marks(where, row, rubric)
    return found


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
        no = phrase("{place}: expected a number from 0 to {most:g}, got {value}", place=where)
        no = no.given(most=most, value=repr(one_line(text)))
        remedy = [phrase("write the decimals after a point")] if "," in text else []
        raise UsageError(clauses([no, *remedy]))
    return value


# --- grades ------------------------------------------------------------------------------------


class RubricGrade(Record):
    """Shares are of what could be had: 0 … 1, or more where a curve gives more than all."""

    student: str
    measured: float | None  # share, after what late work loses; null: no result
    report: float | None  # share; null: not all questions are marked
    total: float | None  # of 100; null while a part that counts is missing
    missing: Message  # why there is no total; NOTHING where there is one
    marks: Marks | None = None  # by which it was given


def grade_rubric(row: Row, marks: Marks | None, rubric: Rubric) -> RubricGrade:
    """rubric: with its weights."""
    weights = rubric.weights
    assert weights
    measured = None if row.adjusted is None else row.adjusted / (row.max_points or 100)
    blank = [q.id for q in rubric.questions if marks is None or q.id not in marks.points]
    report = sum(marks.points.values()) / rubric.points if marks and not blank else None
    lacking = []
    if measured is None and weights.measured:
        lacking.append(phrase("no result"))
    if report is None and weights.report:
        some = len(blank) < len(rubric.questions)
        part = phrase("not marked: {questions}", questions=", ".join(blank))
        lacking.append(part if some else phrase("not marked"))
    total = None
    if not lacking:
        parts = [(weights.measured, measured or 0.0), (weights.report, report or 0.0)]
        total = 100 * weighted_mean(parts)
    return RubricGrade(
        student=row.student,
        measured=measured,
        report=report,
        total=total,
        missing=clauses(lacking),
        marks=marks,
    )


def grades_csv(grades: Sequence[RubricGrade], parties: Parties, points: float) -> str:
    """One row per student: every member of a group has the group's. Blank where a part is missing,
    with the reason."""
    columns = ("student", "name", "submission", "measured_percent", "report_percent", "grade")
    rows: list[tuple[object, ...]] = []
    for grade in grades:
        shares = [None if s is None else round(100 * s, 2) for s in (grade.measured, grade.report)]
        total = None if grade.total is None else round(grade.total / 100 * points, 2)
        people = [(each.student, each.name) for each in parties.members(grade.student)]
        rows += [
            (*who, grade.student, *shares, total, f"{points:g}", str(grade.missing))
            for who in people or [(grade.student, "")]
        ]
    return csv_text((*columns, "of", "missing"), rows)


def marked_gradescope(
    result: Result, grade: RubricGrade, rubric: Rubric, points: float, language: Language
) -> str:
    """The result as Gradescope shows it, with each question as a further test. The score at the top
    is the grade, scaled to ``points``; it goes before the scores of the tests."""
    marks, weights = grade.marks, rubric.weights
    assert grade.total is not None and marks and weights
    document = json.loads(gradescope(result, Shown(), language))
    document["score"] = round(grade.total / 100 * points, 2)
    words = phrase("{grade:.2f} of 100: {weights}", grade=grade.total, weights=weights.words)
    document["output"] = f"{language(words)}\n{document['output']}"
    if marks.comment:
        document["output"] += f"\n\n{marks.comment}"
    for question in rubric.questions:
        given = marks.points.get(question.id)
        document["tests"].append(
            {
                "name": question.text,
                "number": question.id,
                **({"score": given, "max_score": question.points} if given is not None else {}),
                "status": "passed" if given == question.points else "failed",
                "output": marks.comments.get(question.id, ""),
                "output_format": "text",
                "visibility": Shown().visibility,
            }
        )
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


# --- page and table ----------------------------------------------------------------------------


def student_page(
    row: Row,
    board: Board,
    person: Person | None,
    rubric: Rubric,
    grade: RubricGrade | None,
    language: Language,
) -> str:
    """grade: None while nobody has marked it; the page then leaves room for a pen."""
    return page(
        "rubric.html.j2",
        language,
        title=f"{row.student} · {board.lab}",
        row=row,
        board=board,
        person=person,
        rubric=rubric,
        grade=grade,
        marks=grade and grade.marks,
        remarks=remarks(row),
    )


def terminal(grades: Sequence[RubricGrade], weights: Weights, language: Language) -> LongTable:
    columns = [(phrase("student"), False), (phrase("measured"), True), (phrase("report"), True)]
    columns += [(phrase("grade"), True), (NOTHING, False)]
    named = [(language(name), number) for name, number in columns]
    table = LongTable(language(weights.words), named, give_way=(0,), prose=4)
    for grade in grades:
        shares = (grade.measured, grade.report)
        cells = [f"{100 * share:.1f} %" if share is not None else "" for share in shares]
        cells.append(f"{grade.total:.2f}" if grade.total is not None else "")
        style = "dim" if grade.total is None else ""
        table.add([one_line(grade.student), *cells, language(grade.missing)], style)
    return table
