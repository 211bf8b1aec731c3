"""A stored result with a human's marks → ``results.json`` for Gradescope."""

from __future__ import annotations

import json

from grader.course.rubric.grades import Grade
from grader.course.rubric.sheet import Marks
from grader.labs.rubric import Rubric, Weights
from grader.language import Language
from grader.model import Result, phrase
from grader.report.formats.gradescope import Shown, gradescope


def marked_gradescope(
    result: Result,
    grade: Grade,
    marks: Marks,
    rubric: Rubric,
    weights: Weights,
    points: float,
    shown: Shown,
    language: Language,
) -> str:
    """The result as Gradescope shows it, with each question as a further test. The score at the top
    is the grade, scaled to ``points``; it goes before the scores of the tests."""
    assert grade.total is not None
    document = json.loads(gradescope(result, shown, language))
    document["score"] = round(grade.total / 100 * points, 2)
    words = phrase("{grade:.2f} of 100: {weights}", grade=grade.total, weights=weights.words)
    document["output"] = f"{language(words)}\n{document['output']}"
    if marks.comment:
        document["output"] += f"\n\n{marks.comment}"
    for question in rubric.questions:
        given = marks.points.get(question.id)
        document["tests"].append(
            {
                "name": question.text,
                "number": question.id,
                **({"score": given, "max_score": question.points} if given is not None else {}),
                "status": "passed" if given == question.points else "failed",
                "output": marks.comments.get(question.id, ""),
                "output_format": "text",
                "visibility": shown.visibility,
            }
        )
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
