"""Result → ``results.json`` of a Gradescope autograder.

Format: https://gradescope-autograders.readthedocs.io/en/latest/specs/ (read 2026-11-22). Its score
is at the top or on every test; ``tests`` are shown with their own visibility; what the autograder
prints is shown by ``stdout_visibility``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal

from grader.language import ENGLISH, Language
from grader.model import CaseResult, Record, Result, Verdict, phrase, size_text
from grader.report.formats.course_view import (
    by_size,
    hidden_group,
    points,
    points_per_size,
    summary,
    what_happened,
)
from grader.report.size_groups import right_of

Visibility = Literal["hidden", "after_due_date", "after_published", "visible"]


class Shown(Record):
    """When students see what."""

    visibility: Visibility = "visible"  # of the result as a whole, and of its sizes
    hidden: Visibility = "hidden"  # of the hidden sizes
    stdout: Visibility = "hidden"  # of what the autograder printed


def gradescope(
    result: Result,
    shown: Shown = Shown(),  # noqa: B008 - frozen
    language: Language = ENGLISH,
) -> str:
    """ "" for verdict IE: without results.json, Gradescope says that the autograder failed.

    A timed result has its score at the top. A simulator result has one point per size.
    """
    earned = points(result)
    if earned is None:
        return ""
    document: dict[str, object] = {
        "output": summary(result, language),
        "output_format": "text",
        "visibility": shown.visibility,
        "stdout_visibility": shown.stdout,
        "extra_data": {
            "verdict": result.verdict.value,
            "source_sha256": result.submission.sha256,
            "lab_sha256": result.lab.sha256,
            "gpu": result.environment.gpu.name if result.environment.gpu else None,
        },
        "tests": [
            *(_test(i, case, shown, result, language) for i, case in enumerate(result.cases, 1)),
            *_hidden(shown, result, language),
        ],
    }
    seconds = [case.seconds for case in result.cases if case.seconds is not None]
    if seconds:
        document["execution_time"] = round(sum(seconds))
    if result.environment.device == "gpu":
        document["score"] = round(earned.earned, 2)
        document["leaderboard"] = _leaderboard(result)
    elif not _sizes_count(result):
        document["score"] = 0.0
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _test(
    number: int, case: CaseResult, shown: Shown, result: Result, language: Language
) -> dict[str, object]:
    passed = case.verdict is Verdict.AC
    test: dict[str, object] = {
        "name": size_text(case.size),
        "number": str(number),
        "status": "passed" if passed else "failed",
        "output": what_happened(case, language),
        "output_format": "text",
        "visibility": shown.visibility,
        "extra_data": {"verdict": case.verdict.value if case.verdict else None},
    }
    if result.environment.device == "cpu" and _sizes_count(result):
        each = points_per_size(result)
        test |= {"score": each * passed, "max_score": each}
    return test


def _hidden(shown: Shown, result: Result, language: Language) -> Iterator[dict[str, object]]:
    """All hidden sizes as one test: the document tells no size, whoever reads it."""
    group = hidden_group(result)
    if group is None:
        return
    test: dict[str, object] = {
        "name": language(phrase("hidden sizes")),
        "number": str(len(result.cases) + 1),
        "status": "passed" if group.verdict is Verdict.AC else "failed",
        "output": language(right_of(group)),
        "output_format": "text",
        "visibility": shown.hidden,
        "extra_data": {"verdict": group.verdict.value if group.verdict else None},
    }
    if result.environment.device == "cpu" and _sizes_count(result):
        earned = group.weight * group.right / group.sizes
        test |= {"score": earned, "max_score": group.weight}
    yield test


def _sizes_count(result: Result) -> bool:
    return bool(result.cases) and by_size(result)


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
