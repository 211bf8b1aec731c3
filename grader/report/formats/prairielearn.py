"""Result → ``results.json`` of a PrairieLearn external grader.

Format: PrairieLearn's docs/externalGrading.md and its element pl-external-grader-results (read
2026-11-22). The file may have 1 MB.
"""

from __future__ import annotations

import json

from grader.labs.hidden import is_hidden
from grader.language import ENGLISH, Language
from grader.model import CaseResult, Result, Verdict, phrase
from grader.report.formats.course_view import (
    by_size,
    headline,
    points,
    size_name,
    summary,
    verdict_name,
    what_happened,
    why,
)


def prairielearn(result: Result, language: Language = ENGLISH) -> str:
    """With verdict IE the submission is not gradable, which costs the student nothing."""
    earned = points(result)
    if earned is None:
        failed = phrase("The grader failed, not your submission: {why}", why=why(result, language))
        document: dict[str, object] = {
            "gradable": False,
            "message": headline(result, language),
            "format_errors": language(failed),
        }
    else:
        document = {
            "gradable": True,
            "score": earned.share,
            "message": headline(result, language),
            "output": summary(result, language),
            "tests": [_test(case, i, result, language) for i, case in enumerate(result.cases, 1)],
        }
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _test(case: CaseResult, number: int, result: Result, language: Language) -> dict[str, object]:
    test: dict[str, object] = {
        "name": size_name(case, number, language),
        "description": verdict_name(case, language),
        "message": "" if is_hidden(case) else what_happened(case, language),
    }
    if result.environment.device == "cpu" and by_size(result):
        test |= {"points": int(case.verdict is Verdict.AC), "max_points": 1}
    return test
