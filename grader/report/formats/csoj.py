"""Result → the line of JSON that ZJUSCT's judge, CSOJ, reads from the last step of a workflow.

Format: https://github.com/ZJUSCT/CSOJ, docs/configuration/problem-config.md, "Judge Result JSON
Contract" (read 2026-11-22): ``score`` (an integer), ``performance`` (a number; more is better) and
``info`` (an object). Until July 2026 CSOJ read it from the last step's output, and since then from
/mnt/work/.csoj/result.json. A step that fails makes the submission Failed, not zero.
"""

from __future__ import annotations

import json

from grader.language import ENGLISH, Language
from grader.model import NOTHING, Result, kind_words, phrase, size_text
from grader.report import text
from grader.report.formats.course_view import headline, points, verdict_name, what_happened
from grader.report.size_groups import group_sentences
from grader.report.text import clean

_FINDINGS = 20


def csoj(result: Result, language: Language = ENGLISH) -> str:
    """ "" for verdict IE: the step is to fail."""
    earned = points(result)
    if earned is None:
        return ""
    document = {
        "score": earned.percent,
        "performance": round(100 * earned.share, 4),
        "info": {
            "message": headline(result, language),
            "error": clean(language(result.error or NOTHING)),
            "points": str(earned),
            "sizes": [
                {
                    "size": size_text(case.size),
                    "verdict": verdict_name(case.verdict, language),
                    "message": what_happened(case, language),
                    result.problem.unit: round(case.timing.scored_speed, 3)
                    if case.timing
                    else None,
                }
                for case in result.cases
            ],
            "groups": [language(each) for each in group_sentences(result)],
            "findings": [
                clean(
                    language(
                        phrase(
                            "{kind}: {what} ({place})",
                            kind=kind_words(finding.kind),
                            what=finding.message,
                            place=text.place(finding),
                        )
                    )
                )
                for finding in result.findings[:_FINDINGS]
            ],
        },
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n"
