"""Result → ``results.json`` of a PrairieLearn external grader.

Format: PrairieLearn's docs/externalGrading.md and its element pl-external-grader-results (read
2026-11-22). The file may have 1 MB.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from grader.language import ENGLISH, Language
from grader.model import CaseResult, Result, Verdict, phrase, size_text
from grader.report.formats.course_view import (
    by_size,
    headline,
    hidden_group,
    points,
    points_per_size,
    summary,
    verdict_name,
    what_happened,
    why,
)
from grader.report.size_groups import right_of


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
            "tests": [
                *(_test(case, result, language) for case in result.cases),
                *_hidden(result, language),
            ],
        }
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _test(case: CaseResult, result: Result, language: Language) -> dict[str, object]:
    test: dict[str, object] = {
        "name": size_text(case.size),
        "description": verdict_name(case.verdict, language),
        "message": what_happened(case, language),
    }
    if result.environment.device == "cpu" and by_size(result):
        each = points_per_size(result)
        test |= {"points": each * (case.verdict is Verdict.AC), "max_points": each}
    return test


def _hidden(result: Result, language: Language) -> Iterator[dict[str, object]]:
    """All hidden sizes as one test."""
    group = hidden_group(result)
    if group is None:
        return
    test: dict[str, object] = {
        "name": language(phrase("hidden sizes")),
        "description": verdict_name(group.verdict, language),
        "message": language(right_of(group)),
    }
    if result.environment.device == "cpu" and by_size(result):
        earned = group.weight * group.right / group.sizes
        test |= {"points": earned, "max_points": group.weight}
    yield test
