"""``rubric`` in a lab file: the report's questions, their points, and what counts how much."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from grader.errors import LabError
from grader.labs.complaints import explain
from grader.labs.yaml_file import parse
from grader.model import Message, Record, phrase
from grader.model.decoding import convert

_Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
_Points = Annotated[float, Meta(gt=0, le=1e6)]
_Weight = Annotated[float, Meta(ge=0, le=1e6)]
_WEIGHTS = "measured=60,report=40"
_EXAMPLE = Path("docs/lab-file.md")


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
    def words(self) -> Message:
        """``60 % measured, 40 % report``."""
        percent = 100 / (self.measured + self.report)
        return phrase(
            "{measured:.4g} % measured, {report:.4g} % report",
            measured=percent * self.measured,
            report=percent * self.report,
        )


class Rubric(Record):
    questions: Annotated[tuple[Question, ...], Meta(min_length=1)]
    weights: Weights | None = None  # null: to be said when marks are combined

    @property
    def points(self) -> float:
        """Of the whole report."""
        return sum(question.points for question in self.questions)


_WORDS = {
    "": "{questions: [{id: q1, points: 10, text: …}], weights: {measured: 60, report: 40}}",
    "questions": "a list of {id: q1, points: 10, text: …}, at least one",
    "questions[].id": "letters, digits, '-' and '_', at most 64",
    "questions[].points": "a number > 0",
    "questions[].text": "the question's text",
    "weights": "{measured: 60, report: 40}",
    "weights.measured": "a number ≥ 0",
    "weights.report": "a number ≥ 0",
}
_SECTIONS: dict[str, type[Record]] = {
    "": Rubric,
    "questions[]": Question,
    "weights": Weights,
}


# The same as fields of a lab file.
WORDS = {f"rubric.{path}".rstrip("."): words for path, words in _WORDS.items()}
SECTIONS = {f"rubric.{path}".rstrip("."): record for path, record in _SECTIONS.items()}


def read_rubric(path: Path) -> Rubric:
    """A file that holds only a rubric. Raises LabError, one line."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LabError(f"{path}: cannot be read: {error.strerror}") from None
    document = parse(path, data, _EXAMPLE)
    try:
        rubric = convert(document, Rubric)
    except msgspec.ValidationError as error:
        raise LabError(f"{path}: {explain(error, document, _SECTIONS, _WORDS)}") from None
    for mistake in contradictions(rubric):
        raise LabError(f"{path}: {mistake}")
    return rubric


def contradictions(rubric: Rubric) -> Iterator[str]:
    """Mistakes that no single field shows."""
    seen: dict[str, int] = {}
    for i, question in enumerate(rubric.questions):
        if question.id.lower() in seen:
            first = seen[question.id.lower()]
            yield f"questions[{i}].id: {question.id!r} is taken by questions[{first}]"
        seen[question.id.lower()] = i
    if rubric.weights and not rubric.weights.measured + rubric.weights.report > 0:
        yield "weights: both are 0; give at least one of them a weight"


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
