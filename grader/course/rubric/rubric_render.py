"""Measured points, marks and grades → a page for each student, and the instructor's table."""

from __future__ import annotations

from collections.abc import Sequence

from grader.course.leaderboard.board_render import marks as remarks
from grader.course.leaderboard.ranking import Board, Row
from grader.course.roster import Person
from grader.course.rubric.grades import Grade
from grader.course.rubric.sheet import Marks
from grader.errors import one_line
from grader.labs.rubric import Rubric, Weights
from grader.language import ENGLISH, Language
from grader.report.long_table import LongTable
from grader.report.page import page


def student_page(
    row: Row,
    board: Board,
    person: Person | None,
    rubric: Rubric,
    marks: Marks | None,
    grade: Grade | None,
    weights: Weights | None,
    language: Language,
) -> str:
    """marks, grade: None while nobody has marked it; the page then leaves room for a pen."""
    return page(
        "rubric.html.j2",
        language,
        title=f"{row.student} · {board.lab}",
        row=row,
        board=board,
        person=person,
        rubric=rubric,
        marks=marks,
        grade=grade,
        weights=weights,
        remarks=remarks(row),
    )


def terminal(grades: Sequence[Grade], weights: Weights) -> LongTable:
    columns = [("student", False), ("measured", True), ("report", True), ("grade", True)]
    table = LongTable(ENGLISH(weights.words), [*columns, ("", False)], give_way=(0, 4))
    for grade in grades:
        shares = (grade.measured, grade.report)
        table.add(
            [
                one_line(grade.student),
                *(f"{100 * share:.1f} %" if share is not None else "" for share in shares),
                f"{grade.total:.2f}" if grade.total is not None else "",
                grade.missing,
            ],
            "dim" if grade.total is None else "",
        )
    return table
