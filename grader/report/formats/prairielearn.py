"""Result → ``results.json`` of a PrairieLearn external grader.

Format: PrairieLearn's docs/externalGrading.md and its element pl-external-grader-results (read
2026-11-22). The file may have 1 MB.
"""

from __future__ import annotations

import json

from grader.labs.hidden import is_hidden
from grader.model import CaseResult, Result, Verdict
from grader.report.formats.course_view import (
    by_size,
    headline,
    points,
    size_name,
    summary,
    what_happened,
)


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
            "tests": [_test(case, i, result) for i, case in enumerate(result.cases, 1)],
        }
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _test(case: CaseResult, number: int, result: Result) -> dict[str, object]:
    test: dict[str, object] = {
        "name": size_name(case, number),
        "description": case.verdict.value if case.verdict else "not run",
        "message": "" if is_hidden(case) else what_happened(case),
    }
    if result.environment.device == "cpu" and by_size(result):
        test |= {"points": int(case.verdict is Verdict.AC), "max_points": 1}
    return test
