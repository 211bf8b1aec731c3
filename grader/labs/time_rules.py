"""``time`` in a lab file, and ``--due``: when work is due, and what late work costs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Literal

from grader.labs.complaints import at, wanted
from grader.labs.scoring_rules import NotNegative, Positive
from grader.model import Message, Record, counted, phrase
from grader.model.moments import moment

Attempts = Literal["best", "latest", "last-before-deadline"]
Unit = Literal["hour", "day"]
_SECONDS: dict[str, int] = {"hour": 3600, "day": 86400}
_RULE = "TIME[,grace=10m][,late=5%/day][,most=40%]"
_EXAMPLE = "2026-01-31T23:59+08:00"


class Late(Record):
    """What late work loses: a share of its points, or points, for every hour or day."""

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


WORDS = {
    "time.due": phrase("a time with its zone in quotes, such as '{example}'", example=_EXAMPLE),
    "time.grace_minutes": phrase("a number ≥ 0"),
    "time.late.percent": phrase("a number > 0"),
    "time.late.points": phrase("a number > 0"),
    "time.late.most": phrase("a number > 0"),
    "time.late.started": phrase("'hour' or 'day'"),
}
SECTIONS: dict[str, type[Record]] = {"time": TimeRules, "time.late": Late}


def contradictions(rules: TimeRules) -> Iterator[Message]:
    """Mistakes that no single field shows."""
    if rules.due is not None:
        try:
            due = datetime.fromisoformat(rules.due.strip().replace("Z", "+00:00"))
        except ValueError:
            yield at("time.due", wanted(WORDS["time.due"], repr(rules.due)))
        else:
            if due.tzinfo is None:
                zone = phrase(
                    "{time} has no zone; write it as in '{example}'",
                    time=repr(rules.due),
                    example=_EXAMPLE,
                )
                yield at("time.due", zone)
    late = rules.late
    if late is not None:
        yield from _wrong_late(late, "time.late")


def _wrong_late(late: Late, field: str) -> Iterator[Message]:
    if (late.percent is None) == (late.points is None):
        yield at(field, phrase("expected either percent or points, and not both"))
    if late.percent is not None and late.percent > 100:
        yield at(f"{field}.percent", wanted(phrase("at most 100"), f"{late.percent:g}"))
    if late.percent is not None and late.most is not None and late.most > 100:
        yield at(f"{field}.most", wanted(phrase("at most 100 percent"), f"{late.most:g}"))
    if late.started == "day" and late.per == "hour":
        longer = phrase("a day is longer than the hour that per names; take 'hour'")
        yield at(f"{field}.started", longer)


# --- the penalty ------------------------------------------------------------------------------


class Lateness(Record):
    """How late work came, and what that costs."""

    seconds: float  # after the due date; 0 of work in time
    counted: int  # hours or days begun
    unit: Unit
    lost: float  # points

    @property
    def words(self) -> Message:
        """``2 days late``."""
        if self.unit == "hour":
            return counted("{count} hour late", "{count} hours late", self.counted)
        return counted("{count} day late", "{count} days late", self.counted)


def lateness(came: datetime, due: datetime, rules: TimeRules | None, raw: float) -> Lateness | None:
    """None for work in time: before the due date, or within the grace after it. Work after the
    grace counts from the due date, not from the end of the grace."""
    grace = timedelta(minutes=rules.grace_minutes) if rules else timedelta()
    if came <= due + grace:
        return None
    seconds = (came - due).total_seconds()
    late = rules.late if rules else None
    unit: Unit = (late.started or late.per) if late else "day"
    begun = math.ceil(seconds / _SECONDS[unit])
    return Lateness(seconds=seconds, counted=begun, unit=unit, lost=_lost(begun, unit, late, raw))


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
        raise ValueError(f"expected a time such as {_EXAMPLE}, got {time!r}") from None
    grace, late, most = 0.0, None, None
    for part in parts:
        if found := _GRACE.fullmatch(part):
            grace = float(found[1]) * (60 if found[2] == "h" else 1)
        elif found := _LATE.fullmatch(part):
            late = found
        elif found := _MOST.fullmatch(part):
            most = found
        else:
            raise ValueError(f"{part!r}: not understood; expected {_RULE}")
    if most and (late is None or late[2] != most[2]):
        raise ValueError(f"{most[0]!r}: limits late=, in the same unit; expected {_RULE}")
    rule = None
    if late:
        rate = float(late[1])
        rule = Late(
            percent=rate if late[2] else None,
            points=None if late[2] else rate,
            per="hour" if late[3] == "hour" else "day",
            most=float(most[1]) if most else None,
        )
        for wrong in (*_not_positive(rate, most), *_wrong_late(rule, "late")):
            raise ValueError(str(wrong))
    return TimeRules(due=due, grace_minutes=grace, late=rule)


def _not_positive(rate: float, most: re.Match[str] | None) -> Iterator[Message]:
    if not rate > 0 or (most and not float(most[1]) > 0):
        yield at("late", phrase("expected {words}", words=phrase("a number > 0")))
