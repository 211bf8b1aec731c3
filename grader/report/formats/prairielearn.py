"""Result → ``results.json`` of a PrairieLearn external grader.

Format: PrairieLearn's docs/externalGrading.md and its element pl-external-grader-results (read
2026-11-22). The file may have 1 MB.
"""

from __future__ import annotations

import json

from grader.model import CaseResult, Result, SizeGroup, Verdict, size_text
from grader.report.formats.course_view import (
    by_size,
    headline,
    hidden_group,
    points,
    points_per_size,
    summary,
    what_happened,
)
from grader.report.size_groups import right_of


def prairielearn(result: Result) -> str:
    """With verdict IE the submission is not gradable, which costs the student nothing."""
    earned = points(result)
    if earned is None:
        why = result.error or headline(result)
        document: dict[str, object] = {
            "gradable": False,
            "message": headline(result),
            "format_errors": f"The grader failed, not your submission: {why}",
        }
    else:
        document = {
            "gradable": True,
            "score": earned.share,
            "message": headline(result),
            "output": summary(result),
            "tests": [_test(case, result) for case in result.cases] + _hidden(result),
        }
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _test(case: CaseResult, result: Result) -> dict[str, object]:
    test: dict[str, object] = {
        "name": size_text(case.size),
        "description": case.verdict.value if case.verdict else "not run",
        "message": what_happened(case),
    }
    if result.environment.device == "cpu" and by_size(result):
        each = points_per_size(result)
        test |= {"points": each * (case.verdict is Verdict.AC), "max_points": each}
    return test


def _hidden(result: Result) -> list[dict[str, object]]:
    """All hidden sizes as one test."""
    group: SizeGroup | None = hidden_group(result)
    if group is None:
        return []
    test: dict[str, object] = {
        "name": "hidden sizes",
        "description": group.verdict.value if group.verdict else "not run",
        "message": right_of(group),
    }
    if result.environment.device == "cpu" and by_size(result):
        earned = group.weight * group.right / group.sizes
        test |= {"points": earned, "max_points": group.weight}
    return [test]
