"""``rubric`` in a lab file: the report's questions, their points, and what counts how much."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from grader.model import Record

_Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
_Points = Annotated[float, Meta(gt=0, le=1e6)]
_Weight = Annotated[float, Meta(ge=0, le=1e6)]
_WEIGHTS = "measured=60,report=40"


class Question(Record):
    """A question of the report, or anything else that a human gives points for."""

    id: _Id
    points: _Points  # at most
    text: Annotated[str, Meta(min_length=1)]


class Weights(Record):
    """Shares of the grade; only their ratio matters."""

    measured: _Weight
    report: _Weight

    @property
    def words(self) -> str:
        """``60 % measured, 40 % report``."""
        both = self.measured + self.report
        return (
            f"{100 * self.measured / both:.4g} % measured, {100 * self.report / both:.4g} % report"
        )


class Rubric(Record):
    questions: Annotated[tuple[Question, ...], Meta(min_length=1)]
    weights: Weights | None = None  # null: to be said when marks are combined

    @property
    def points(self) -> float:
        """Of the whole report."""
        return sum(question.points for question in self.questions)


WORDS = {
    "rubric": "{questions: [{id: q1, points: 10, text: …}], weights: {measured: 60, report: 40}}",
    "rubric.questions": "a list of {id: q1, points: 10, text: …}, at least one",
    "rubric.questions[].id": "letters, digits, '-' and '_', at most 64",
    "rubric.questions[].points": "a number > 0",
    "rubric.questions[].text": "the question's text",
    "rubric.weights": "{measured: 60, report: 40}",
    "rubric.weights.measured": "a number ≥ 0",
    "rubric.weights.report": "a number ≥ 0",
}
SECTIONS: dict[str, type[Record]] = {
    "rubric": Rubric,
    "rubric.questions[]": Question,
    "rubric.weights": Weights,
}


def contradictions(rubric: Rubric) -> Iterator[str]:
    """Mistakes that no single field shows."""
    seen: dict[str, int] = {}
    for i, question in enumerate(rubric.questions):
        if question.id.lower() in seen:
            first = seen[question.id.lower()]
            yield f"rubric.questions[{i}].id: {question.id!r} is taken by questions[{first}]"
        seen[question.id.lower()] = i
    if rubric.weights and not rubric.weights.measured + rubric.weights.report > 0:
        yield "rubric.weights: both are 0; give at least one of them a weight"


def read_weights(text: str) -> Weights:
    """``measured=60,report=40``. Raises ValueError in words."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            weight = float(value)
        except ValueError:
            weight = math.nan
        known = name.strip() in Weights.__struct_fields__ and name.strip() not in found
        if not known or not 0 <= weight <= 1e6:
            raise ValueError(f"{part.strip()!r}: not understood; expected {_WEIGHTS}")
        found[name.strip()] = weight
    if len(found) < 2 or not sum(found.values()) > 0:
        raise ValueError(f"expected both weights, not both 0, such as {_WEIGHTS}; got {text!r}")
    return Weights(**found)
