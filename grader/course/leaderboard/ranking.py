"""Stored results → ranked rows. One board per lab and GPU model: they are never mixed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

from grader.course.roster import Person, Roster, due_for, handed_in
from grader.labs.time_rules import Attempts, Lateness, TimeRules, lateness
from grader.ladder.document import Ladder
from grader.model import NOTHING, Message, Record, Verdict, phrase, verbatim
from grader.results.entries import Entry
from grader.results.index import read_entries

__all__ = ["Board", "Entry", "Row", "make_boards", "order", "ranked", "read_entries"]

Kind = Literal["student", "reference", "baseline", "missing"]


class Row(Record):
    """One line of a board. What does not apply is None."""

    rank: int | None  # shared by ties; None for unranked rows
    student: str
    kind: Kind
    verdict: Verdict | None
    points: float | None
    max_points: float | None
    passed: int | None
    cases: int | None
    speed: float | None
    ratio: float | None  # speed over the baseline's
    history: tuple[float, ...]  # points of all attempts in the order they were graded
    created: str | None
    sha256: str | None
    late: bool
    other_lab: bool  # graded with another version of the lab file than the newest result
    adjusted: float | None = None  # points after what late work loses; ``points`` never change
    lateness: Message = NOTHING  # "2 days late"; not in time, nor where late work loses nothing


class Board(Record):
    lab: str
    device: str  # "cpu" or "gpu"
    gpu: str | None  # model
    unit: str  # of the speeds
    baseline: str  # what they are compared with
    rows: tuple[Row, ...]

    @property
    def title(self) -> Message:
        if self.device == "cpu":
            return phrase("{lab} · simulator", lab=self.lab)
        return verbatim(f"{self.lab} · {self.gpu or 'GPU'}")


def make_boards(
    entries: Iterable[Entry],
    choice: Attempts = "best",
    *,
    roster: Roster | None = None,
    due: datetime | None = None,
    rules: TimeRules | None = None,
    references: Collection[str] = (),
    ladders: Sequence[Ladder] = (),
) -> tuple[Board, ...]:
    """Boards of GPUs first.

    choice: which of a student's results counts. roster: further students, and due dates. due, and
    rules for the grace and the penalty: what late work loses.
    references: names of submissions to compare with, which are not ranked. ladders: where the
    first that was measured on a board's GPU model stands between the students, too.
    """
    groups: dict[tuple[str, str, str | None], list[Entry]] = defaultdict(list)
    for entry in entries:
        gpu = entry.environment.gpu.name if entry.environment.gpu else None
        groups[(entry.lab.id, entry.environment.device, gpu)].append(entry)
    _share_out(groups)
    keys = sorted(groups, key=lambda key: (key[0], key[1] != "gpu", key[2] or ""))
    return tuple(
        Board(
            lab=lab,
            device=device,
            gpu=gpu,
            unit=groups[(lab, device, gpu)][-1].problem.unit,
            baseline=groups[(lab, device, gpu)][-1].problem.baseline,
            rows=_rows(
                groups[(lab, device, gpu)],
                choice,
                roster,
                due,
                rules,
                references,
                _ladder(ladders, groups[(lab, device, gpu)], gpu),
            ),
        )
        for lab, device, gpu in keys
    )


def _ladder(ladders: Sequence[Ladder], entries: Sequence[Entry], gpu: str | None) -> Ladder | None:
    """The first that was measured for the same problem on this GPU model."""
    problem = entries[-1].problem
    found = (each for each in ladders if gpu and each.gpu and each.gpu.name == gpu)
    return next((each for each in found if each.problem.like(problem)), None)


def _share_out(groups: dict[tuple[str, str, str | None], list[Entry]]) -> None:
    """Results that ended before any GPU, such as compile errors, count on every GPU's board."""
    for lab in {key[0] for key in groups}:
        models = [key for key in groups if key[:2] == (lab, "gpu") and key[2] is not None]
        if models:
            homeless = groups.pop((lab, "gpu", None), [])
            for key in models:
                groups[key] += homeless


def _rows(
    entries: Sequence[Entry],
    choice: Attempts,
    roster: Roster | None,
    due: datetime | None,
    rules: TimeRules | None,
    references: Collection[str],
    ladder: Ladder | None,
) -> tuple[Row, ...]:
    by_student: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_student[entry.submission.student].append(entry)
    newest_lab = max(entries, key=lambda entry: entry.created).lab.sha256
    rows = [
        _row(attempts, choice, roster, due, rules, newest_lab, student in references)
        for student, attempts in by_student.items()
    ]
    rows += _baseline(entries)
    if ladder:
        rows += [row for row in _rungs(ladder, entries) if row.student not in by_student]
    rows.sort(key=order)
    rows = ranked(rows)
    missing = [student for student in roster or () if student not in by_student]
    return (*rows, *map(_missing, missing))


class _Attempt(NamedTuple):
    entry: Entry
    late: Lateness | None

    @property
    def adjusted(self) -> float:
        lost = self.late.lost if self.late else 0.0
        return round(self.entry.points - lost, 2)


def _row(
    attempts: Sequence[Entry],
    choice: Attempts,
    roster: Roster | None,
    due: datetime | None,
    rules: TimeRules | None,
    newest_lab: str,
    reference: bool,
) -> Row:
    student = attempts[0].submission.student
    person = roster.get(student) if roster else None
    limit = None if reference else due_for(person, due)
    ordered = [
        _Attempt(entry, _late(entry, person, limit, rules))
        for entry in sorted(attempts, key=lambda entry: entry.created)
    ]
    chosen, late = counting = _counting(ordered, choice)
    fastest = chosen.fastest
    return Row(
        rank=None,
        student=student,
        kind="reference" if reference else "student",
        verdict=chosen.verdict,
        points=chosen.points,
        max_points=chosen.score.max if chosen.score else 100,
        passed=chosen.passed,
        cases=chosen.sizes,
        speed=fastest[0] if fastest else None,
        ratio=fastest[0] / fastest[1] if fastest and fastest[1] else None,
        history=tuple(attempt.entry.points for attempt in ordered),
        created=chosen.created,
        sha256=chosen.submission.sha256,
        late=late is not None,
        other_lab=chosen.lab.sha256 != newest_lab,
        adjusted=counting.adjusted,
        lateness=late.words if late and rules and rules.late else NOTHING,
    )


def _late(
    entry: Entry, person: Person | None, limit: datetime | None, rules: TimeRules | None
) -> Lateness | None:
    if limit is None:
        return None
    came = handed_in(person, entry.submission.submitted, entry.created)
    return lateness(came, limit, rules, entry.points)


def _counting(ordered: Sequence[_Attempt], choice: Attempts) -> _Attempt:
    """The attempt that counts, of a student's in the order they were graded."""
    if choice == "latest":
        return ordered[-1]
    if choice == "last-before-deadline":
        in_time = [attempt for attempt in ordered if attempt.late is None]
        # Without one, the first that is late, which loses least.
        return in_time[-1] if in_time else ordered[0]
    # Of equal attempts the earliest counts: a retry must not make a student late.
    return max(ordered, key=lambda attempt: attempt.adjusted)


def order(row: Row) -> tuple[float, bool, str]:
    """Best first. What was timed but never scored stands by its ratio to the baseline."""
    points = 100 * (row.ratio or 0) if row.adjusted is None else row.adjusted
    return -points, row.kind != "baseline", row.student


def ranked(rows: Sequence[Row]) -> list[Row]:
    """Rows with their ranks: equal points share one, and the next rank counts all before it."""
    ranked: list[Row] = []
    place, rank, points = 0, 0, None
    for row in rows:
        if row.kind == "student":
            place += 1
            if row.adjusted != points:
                rank, points = place, row.adjusted
            row = msgspec.structs.replace(row, rank=rank)
        ranked.append(row)
    return ranked


def _baseline(entries: Sequence[Entry]) -> list[Row]:
    """The baseline itself, at the median of its best runs; none where nothing was timed."""
    rates = sorted(fastest[1] for entry in entries if (fastest := entry.fastest))
    if not rates:
        return []
    full = max(entry.score.max for entry in entries if entry.score) if _scored(entries) else None
    row = _blank(entries[-1].problem.baseline, "baseline")
    return [
        msgspec.structs.replace(
            row,
            points=full,
            adjusted=full,
            max_points=full,
            speed=rates[len(rates) // 2],
            ratio=1.0,
        )
    ]


def _rungs(ladder: Ladder, entries: Iterable[Entry]) -> list[Row]:
    """The ladder's rungs at the board's own size, without points; [] where it was not timed."""
    timed = [case for entry in entries for case in entry.cases if case.timing and case.timing.runs]
    if not timed:
        return []
    largest = max(timed, key=lambda case: case.amount)
    return [
        msgspec.structs.replace(
            _blank(step.rung.name, "reference"),
            verdict=step.verdict,
            speed=speed.rate,
            ratio=speed.rate / speed.baseline,
        )
        for step in ladder.steps
        if (speed := step.at(largest.size))
    ]


def _scored(entries: Iterable[Entry]) -> bool:
    return any(entry.score for entry in entries)


def _missing(student: str) -> Row:
    return _blank(student, "missing")


def _blank(student: str, kind: Kind) -> Row:
    return Row(
        rank=None,
        student=student,
        kind=kind,
        verdict=None,
        points=None,
        max_points=None,
        passed=None,
        cases=None,
        speed=None,
        ratio=None,
        history=(),
        created=None,
        sha256=None,
        late=False,
        other_lab=False,
    )
