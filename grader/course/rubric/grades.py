"""Measured points and a human's points → one grade, by stated weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grader.course.leaderboard.ranking import Row
from grader.course.rubric.sheet import Marks
from grader.labs.rubric import Rubric, Weights
from grader.model import Record


class Grade(Record):
    """Shares are of what could be had: 0 … 1, or more where a curve gives more than all."""

    student: str
    measured: float | None  # share, after what late work loses; null: no result
    report: float | None  # share; null: not all questions are marked
    total: float | None  # of 100; null while a part that counts is missing
    missing: str  # why there is no total; "" where there is one


def grade_all(
    rows: Sequence[Row], marked: Mapping[str, Marks], rubric: Rubric, weights: Weights
) -> tuple[Grade, ...]:
    return tuple(_grade(row, marked.get(row.student), rubric, weights) for row in rows)


def _grade(row: Row, marks: Marks | None, rubric: Rubric, weights: Weights) -> Grade:
    measured = None if row.adjusted is None else row.adjusted / (row.max_points or 100)
    blank = [q.id for q in rubric.questions if marks is None or q.id not in marks.points]
    report = sum(marks.points.values()) / rubric.points if marks and not blank else None
    lacking = []
    if measured is None and weights.measured:
        lacking.append("no result")
    if report is None and weights.report:
        some = len(blank) < len(rubric.questions)
        lacking.append(f"not marked: {', '.join(blank)}" if some else "not marked")
    total = None
    if not lacking:
        both = weights.measured * (measured or 0.0) + weights.report * (report or 0.0)
        total = 100 * both / (weights.measured + weights.report)
    return Grade(
        student=row.student,
        measured=measured,
        report=report,
        total=total,
        missing="; ".join(lacking),
    )
