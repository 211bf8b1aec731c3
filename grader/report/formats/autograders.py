"""Result → what Gradescope, PrairieLearn and ZJUSCT's judge (CSOJ) read.

Gradescope: https://gradescope-autograders.readthedocs.io/en/latest/specs/ (read 2026-11-22). The
score is at the top or on every test; ``tests`` are shown with their own visibility, and what the
autograder prints by ``stdout_visibility``.

PrairieLearn: its docs/externalGrading.md and its element pl-external-grader-results (read
2026-11-22). The file may have 1 MB.
"""

import json
from typing import Literal

from grader.base import ENGLISH, Language, Verdict, kind_words, size_text
from grader.report import formats
from grader.report import formatting as text
from grader.report.formatting import clean
from grader.report.groups import group_sentences
from grader.results import Result
from ptxsim.plan import Record
from ptxsim.text import NOTHING, phrase

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
    earned = formats.points(result)
    if earned is None:
        return ""
    document: dict[str, object] = {
        "output": formats.summary(result, language),
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
            {
                "name": each.name,
                "number": str(number),
                "status": "passed" if each.verdict is Verdict.AC else "failed",
                "output": each.words,
                "output_format": "text",
                "visibility": shown.hidden if each.hidden else shown.visibility,
                "extra_data": {"verdict": each.verdict.value if each.verdict else None},
                **_points(each, "score", "max_score"),
            }
            for number, each in enumerate(formats.sizes(result, language), 1)
        ],
    }
    seconds = [case.seconds for case in result.cases if case.seconds is not None]
    if seconds:
        document["execution_time"] = round(sum(seconds))
    if result.by_model:
        document["score"] = round(earned.earned, 2)
    elif result.environment.device == "gpu":
        document["score"] = round(earned.earned, 2)
        values = {"score": round(result.score.total, 2) if result.score else 0.0}
        for case in result.cases:
            if case.timing:
                name = f"{result.problem.unit} {size_text(case.size)}"
                values[name] = round(case.timing.scored_speed, 3)
        document["leaderboard"] = [
            {"name": name, "value": value, "order": "desc"} for name, value in values.items()
        ]
    elif not formats.sizes_count(result):
        document["score"] = 0.0
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def prairielearn(result: Result, language: Language = ENGLISH) -> str:
    """With verdict IE the submission is not gradable, which costs the student nothing."""
    earned = formats.points(result)
    message = formats.headline(result, language)
    document: dict[str, object] = {"gradable": earned is not None, "message": message}
    if earned is None:
        failed = phrase("The grader failed, not your submission: {why}")
        document["format_errors"] = language(failed.given(why=formats.why(result, language)))
    else:
        document["score"] = earned.share
        document["output"] = formats.summary(result, language)
        document["tests"] = [
            {
                "name": each.name,
                "description": formats.verdict_name(each.verdict, language),
                "message": each.words,
                **_points(each, "points", "max_points"),
            }
            for each in formats.sizes(result, language)
        ]
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _points(size: formats.SizeView, earned: str, possible: str) -> dict[str, float]:
    """The points of a size by these names, where it has some."""
    points = size.points
    return {earned: points.earned, possible: points.possible} if points else {}


def csoj(result: Result, language: Language = ENGLISH) -> str:
    """ "" for verdict IE: the step is to fail."""
    earned = formats.points(result)
    if earned is None:
        return ""
    findings = [
        phrase(
            "{kind}: {what} ({place})",
            kind=kind_words(finding.kind),
            what=finding.message,
            place=text.place(finding),
        )
        for finding in result.findings[: formats.FINDINGS]
    ]
    document = {
        "score": earned.percent,
        "performance": round(100 * earned.share, 4),
        "info": {
            "message": formats.headline(result, language),
            "error": clean(language(result.error or NOTHING)),
            "points": str(earned),
            "sizes": [
                {
                    "size": size_text(case.size),
                    "verdict": formats.verdict_name(case.verdict, language),
                    "message": formats.what_happened(case, language),
                    result.problem.unit: round(case.timing.scored_speed, 3)
                    if case.timing
                    else None,
                }
                for case in result.cases
            ],
            "groups": [language(each) for each in group_sentences(result)],
            "findings": [clean(language(each)) for each in findings],
        },
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n"
