"""``rubric`` in a lab file: the report's questions, their points, and what counts how much."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from grader.errors import LabError
from grader.labs.complaints import IDENTIFIER, at, explain
from grader.labs.yaml_file import parse
from grader.model import Message, Record, phrase, verbatim
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
    "": verbatim(
        "{questions: [{id: q1, points: 10, text: …}], weights: {measured: 60, report: 40}}"
    ),
    "questions": phrase("a list of {id: q1, points: 10, text: …}, at least one"),
    "questions[].id": IDENTIFIER,
    "questions[].points": phrase("a number > 0"),
    "questions[].text": phrase("the question's text"),
    "weights": verbatim("{measured: 60, report: 40}"),
    "weights.measured": phrase("a number ≥ 0"),
    "weights.report": phrase("a number ≥ 0"),
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
        why = phrase("cannot be read: {why}", why=error.strerror or str(error))
        raise LabError(at(str(path), why)) from None
    document = parse(path, data, _EXAMPLE)
    try:
        rubric = convert(document, Rubric)
    except msgspec.ValidationError as error:
        raise LabError(at(str(path), explain(error, document, _SECTIONS, _WORDS))) from None
    for mistake in contradictions(rubric, ""):
        raise LabError(at(str(path), mistake))
    return rubric


def contradictions(rubric: Rubric, prefix: str) -> Iterator[Message]:
    """Mistakes that no single field shows. prefix: of the fields' names."""
    seen: dict[str, int] = {}
    for i, question in enumerate(rubric.questions):
        if question.id.lower() in seen:
            first = f"questions[{seen[question.id.lower()]}]"
            taken = phrase("{name} is taken by {other}", name=repr(question.id), other=first)
            yield at(f"{prefix}questions[{i}].id", taken)
        seen[question.id.lower()] = i
    if rubric.weights and not rubric.weights.measured + rubric.weights.report > 0:
        yield at(f"{prefix}weights", phrase("both are 0; give at least one of them a weight"))


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
