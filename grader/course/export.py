"""Results in the formats that course systems read. Everything is quoted by csv and json."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Literal

import msgspec

from grader.course.leaderboard.ranking import Board
from grader.course.roster import CANVAS_COLUMNS, Roster
from grader.errors import UsageError
from grader.model import CaseResult, Result, Verdict, size_text
from grader.report import text
from grader.report.text import clean

Visibility = Literal["hidden", "after_due_date", "after_published", "visible"]


# --- Gradescope -------------------------------------------------------------------------------


def gradescope(result: Result, visibility: Visibility) -> str:
    """``results.json`` of Gradescope's autograder for one result.

    A timed result has its score at the top. A simulator result has one point per size, because only
    a GPU can be timed. Raises UsageError for verdict IE: a failure of the grader must not become a
    zero.
    """
    if result.verdict is Verdict.IE:
        raise UsageError("verdict IE is the grader's own fault and no grade; grade again")
    tests = [_test(i, case, visibility, result) for i, case in enumerate(result.cases, 1)]
    document: dict[str, object] = {
        "output": _summary(result),
        "output_format": "text",
        "visibility": visibility,
        "stdout_visibility": "hidden",
        "extra_data": {
            "verdict": result.verdict.value,
            "source_sha256": result.submission.sha256,
            "lab_sha256": result.lab.sha256,
            "gpu": result.environment.gpu.name if result.environment.gpu else None,
        },
        "tests": tests,
    }
    seconds = [case.seconds for case in result.cases if case.seconds is not None]
    if seconds:
        document["execution_time"] = round(sum(seconds))
    if result.environment.device == "gpu":
        document["score"] = round(result.score.total, 2) if result.score else 0.0
        document["leaderboard"] = _leaderboard(result)
    elif not tests:
        document["score"] = 0.0
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _test(
    number: int, case: CaseResult, visibility: Visibility, result: Result
) -> dict[str, object]:
    passed = case.verdict is Verdict.AC
    words = [clean(case.message), text.mismatch(case)]
    test: dict[str, object] = {
        "name": size_text(case.size),
        "number": str(number),
        "status": "passed" if passed else "failed",
        "output": "\n".join(word for word in words if word),
        "output_format": "text",
        "visibility": visibility,
        "extra_data": {"verdict": case.verdict.value if case.verdict else None},
    }
    if result.environment.device == "cpu":
        test |= {"score": float(passed), "max_score": 1.0}
    return test


def _summary(result: Result) -> str:
    lines = [f"{result.verdict.value} {text.VERDICT_WORDS[result.verdict]}"]
    lines += [clean(part) for part in (result.error, text.score_block(result)) if part]
    lines += [
        f"{finding.severity.value}: {finding.kind.value}: {clean(finding.message)}\n"
        f"  {clean(text.place(finding))}"
        for finding in result.findings[:20]
    ]
    if result.build and not result.build.ok:
        lines.append(clean(result.build.log.strip())[:10_000])
    if result.environment.device == "cpu":
        lines.append(text.NO_SCORE_ON_CPU)
    return "\n".join(lines)


def _leaderboard(result: Result) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = [
        {
            "name": "score",
            "value": round(result.score.total, 2) if result.score else 0.0,
            "order": "desc",
        }
    ]
    rows += [
        {
            "name": f"{result.problem.unit} {size_text(case.size)}",
            "value": round(case.timing.scored_speed, 3),
            "order": "desc",
        }
        for case in result.cases
        if case.timing and case.timing.runs
    ]
    return rows


# --- Canvas -----------------------------------------------------------------------------------


def canvas(board: Board, roster: Roster, assignment: str, points: float) -> str:
    """A gradebook to import: identities as the roster has them, scores scaled to ``points``.

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
        if row.kind != "student" or person is None or row.points is None:
            continue
        value = row.points / (row.max_points or 100) * points
        identity = [person.canvas.get(column, "") for column in CANVAS_COLUMNS]
        writer.writerow([*identity, f"{value:.2f}"])
    return buffer.getvalue()


# --- JSON -------------------------------------------------------------------------------------


def board_json(boards: Sequence[Board]) -> str:
    """Boards and rows with the names of their fields."""
    return msgspec.json.format(msgspec.json.encode(boards), indent=1).decode() + "\n"
