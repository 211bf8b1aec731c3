"""Fields of a lab file that change no score: when work is due, what late work costs, what help
students are shown, the report's questions with their points, and what counts how much."""

import math
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from grader.base import LabError, convert, moment
from grader.labs.scoring_rules import NotNegative, Positive
from grader.labs.yaml_file import at, explain, known_words, parse, read_file, say, wanted, wrong
from ptxsim.plan import Record
from ptxsim.text import Message, counted, listed, phrase

Attempts = Literal["best", "latest", "last-before-deadline"]
Unit = Literal["hour", "day"]
Switch = Literal["show", "after-due", "hide"]
_SECONDS: dict[str, int] = {"hour": 3600, "day": 86400}
_RULE = "TIME[,grace=10m][,late=5%/day][,most=40%]"
_EXAMPLE = "2026-01-31T23:59+08:00"
_ODD = phrase("{value}: not understood; expected {wanted}")


class Late(Record):
    """Late penalty: a share of the points, or points, for every hour or day."""

    percent: Positive | None = None  # of the raw points
    points: Positive | None = None
    per: Unit = "day"
    started: Unit | None = None  # what is counted in whole, once begun; null: what ``per`` says
    most: Positive | None = None  # it never loses more, in the same unit


class TimeRules(Record):
    """When work is due and which attempt counts. Raw points never change."""

    due: str | None = None  # ISO 8601 with a zone
    grace_minutes: NotNegative = 0  # work that comes within it is not late
    late: Late | None = None
    attempts: Attempts = "best"

    @property
    def due_at(self) -> datetime | None:
        return moment(self.due) if self.due else None


def wrong_times(rules: TimeRules, field: str = "time") -> Iterator[Message]:
    """Mistakes that no single field shows. field: where the rules stand."""
    if rules.due is not None:
        try:
            due = datetime.fromisoformat(rules.due.strip().replace("Z", "+00:00"))
        except ValueError:
            yield at(f"{field}.due", wanted(known_words()["TimeRules.due"], repr(rules.due)))
        else:
            if due.tzinfo is None:
                yield wrong(f"{field}.due", "time.no-zone", time=repr(rules.due), example=_EXAMPLE)
    if rules.late is not None:
        yield from _wrong_late(rules.late, f"{field}.late")


def _wrong_late(late: Late, field: str) -> Iterator[Message]:
    if (late.percent is None) == (late.points is None):
        yield wrong(field, "time.either")
    if late.percent is not None and late.percent > 100:
        yield at(f"{field}.percent", wanted(say("time.most-100"), f"{late.percent:g}"))
    if late.percent is not None and late.most is not None and late.most > 100:
        yield at(f"{field}.most", wanted(say("time.most-percent"), f"{late.most:g}"))
    if late.started == "day" and late.per == "hour":
        yield wrong(f"{field}.started", "time.longer")


# --- the penalty ------------------------------------------------------------------------------


class Lateness(Record):
    """How late work came, and what that costs."""

    lost: float  # points
    days: int  # of the student's late days, each of which moves the due date by 24 hours
    words: Message  # "2 days late", "1 late day used"


def lateness(
    came: datetime, due: datetime, rules: TimeRules | None, raw: float, bank: int = 0
) -> Lateness | None:
    """None for work in time: before the due date, or within the grace after it. Work after the
    grace counts from the due date, not from the end of the grace. bank: late days at hand."""
    grace = timedelta(minutes=rules.grace_minutes if rules else 0)
    if came <= due + grace:
        return None
    days = min(bank, -((due + grace - came) // timedelta(days=1)))  # a day that has begun counts
    due += timedelta(days=days)
    late = rules.late if rules else None
    unit: Unit = (late.started or late.per) if late else "day"
    begun = math.ceil((came - due).total_seconds() / _SECONDS[unit]) if came > due + grace else 0
    words = counted("{count} day late", "{count} days late", begun)
    if unit == "hour":
        words = counted("{count} hour late", "{count} hours late", begun)
    used = counted("{count} late day used", "{count} late days used", days)
    said = listed([*([words] if begun else []), *([used] if days else [])])
    return Lateness(lost=_lost(begun, unit, late, raw), days=days, words=said)


def _lost(begun: int, unit: Unit, late: Late | None, raw: float) -> float:
    if late is None:
        return 0.0
    times = begun * _SECONDS[unit] / _SECONDS[late.per]
    rate = late.percent if late.percent is not None else late.points or 0.0
    lost = min(rate * times, late.most) if late.most is not None else rate * times
    if late.percent is not None:
        lost = raw * min(lost, 100.0) / 100
    return min(max(raw, 0.0), lost)


# --- on the command line ----------------------------------------------------------------------

_GRACE = re.compile(r"grace=(\d+(?:\.\d+)?)(m|h)")
_LATE = re.compile(r"late=(\d+(?:\.\d+)?)(%?)/(hour|day)")
_MOST = re.compile(r"most=(\d+(?:\.\d+)?)(%?)")


def due_rule(text: str) -> TimeRules:
    """``2026-01-31T23:59+08:00,grace=10m,late=5%/day,most=40%``. Raises ValueError in words."""
    time, *parts = (part.strip() for part in text.split(","))
    try:
        due = moment(time).isoformat()
    except ValueError:
        no = phrase("expected a time such as {example}, got {value}", example=_EXAMPLE)
        raise ValueError(no.given(value=repr(time))) from None
    grace, late, most = 0.0, None, None
    for part in parts:
        if found := _GRACE.fullmatch(part):
            grace = float(found[1]) * (60 if found[2] == "h" else 1)
        elif found := _LATE.fullmatch(part):
            late = found
        elif found := _MOST.fullmatch(part):
            most = found
        else:
            raise ValueError(_ODD.given(value=repr(part), wanted=_RULE))
    if most and (late is None or late[2] != most[2]):
        no = phrase("{value}: limits late=, in the same unit; expected {wanted}", wanted=_RULE)
        raise ValueError(no.given(value=repr(most[0])))
    rule = None
    if late:
        rate = float(late[1])
        rule = Late(
            percent=rate if late[2] else None,
            points=None if late[2] else rate,
            per="hour" if late[3] == "hour" else "day",
            most=float(most[1]) if most else None,
        )
        wrongs = list(_wrong_late(rule, "late"))
        if not rate > 0 or (most and not float(most[1]) > 0):
            positive = phrase("a number > 0")
            wrongs.insert(0, at("late", phrase("expected {words}", words=positive)))
        if wrongs:
            raise ValueError(str(wrongs[0]))
    return TimeRules(due=due, grace_minutes=grace, late=rule)


# --- rubric ------------------------------------------------------------------------------------

_Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
_Points = Annotated[float, Meta(gt=0, le=1e6)]
_Weight = Annotated[float, Meta(ge=0, le=1e6)]
_WEIGHTS = "measured=60,report=40"
_LAB_FILES = Path("docs/lab-file.md")


class RubricQuestion(Record):
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
    questions: Annotated[tuple[RubricQuestion, ...], Meta(min_length=1)]
    weights: Weights | None = None  # null: to be said when marks are combined

    @property
    def points(self) -> float:
        """Return the points of the whole report."""
        return sum(question.points for question in self.questions)


def read_rubric(path: Path) -> Rubric:
    """A file that holds only a rubric. Raises LabError, one line."""
    document = parse(path, read_file(path), _LAB_FILES)
    try:
        rubric = convert(document, Rubric)
    except msgspec.ValidationError as error:
        mistake = explain(error, document, Rubric, {})
        raise LabError(at(str(path), mistake)) from None
    for mistake in wrong_rubric(rubric, ""):
        raise LabError(at(str(path), mistake))
    return rubric


def wrong_rubric(rubric: Rubric, prefix: str) -> Iterator[Message]:
    """Mistakes that no single field shows. prefix: of the fields' names."""
    seen: dict[str, int] = {}
    for i, question in enumerate(rubric.questions):
        if question.id.lower() in seen:
            first = f"questions[{seen[question.id.lower()]}]"
            field = f"{prefix}questions[{i}].id"
            yield wrong(field, "rubric.taken", name=repr(question.id), other=first)
        seen[question.id.lower()] = i
    if rubric.weights and not rubric.weights.measured + rubric.weights.report > 0:
        yield wrong(f"{prefix}weights", "rubric.no-weight")


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
            raise ValueError(_ODD.given(value=repr(part.strip()), wanted=_WEIGHTS))
        found[name.strip()] = weight
    if len(found) < 2 or not sum(found.values()) > 0:
        no = phrase("expected both weights, not both 0, such as {example}; got {value}")
        raise ValueError(no.given(example=_WEIGHTS, value=repr(text)))
    return Weights(**found)
