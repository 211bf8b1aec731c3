"""Stored results → ranked rows. One board per lab and GPU model: they are never mixed."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

from grader.base import ProblemInfo, Verdict, moment
from grader.course.roster import Person, Roster
from grader.labs import Attempts, Lateness, TimeRules, lateness
from grader.results import Ladder, ResultEntry
from ptxsim.plan import Record
from ptxsim.text import NOTHING, Message, counted, phrase, verbatim


class Row(Record, kw_only=True):
    """One line of a board. What does not apply is None."""

    rank: int | None = None  # shared by ties; None for unranked rows
    student: str
    kind: Literal["student", "reference", "baseline", "missing"]
    verdict: Verdict | None = None
    points: float | None = None
    max_points: float | None = None
    passed: int | None = None
    cases: int | None = None
    speed: float | None = None
    ratio: float | None = None  # speed over the baseline's
    history: tuple[float, ...] = ()  # points of all attempts in the order they were handed in
    created: str | None = None
    sha256: str | None = None
    late: bool = False
    untimed: bool = False  # graded after the due date, and nothing says when it was handed in
    other_lab: bool = False  # graded with another version of the lab file than the one that counts
    adjusted: float | None = None  # points after what late work loses; ``points`` never change
    lateness: Message = NOTHING  # "2 days late"; not in time, nor where late work loses nothing
    late_days: int = 0  # of a term's, that it used


class Board(Record):
    lab: str
    device: str  # "cpu" or "gpu"
    gpu: str | None  # model
    problem: ProblemInfo
    rows: tuple[Row, ...]

    @property
    def unit(self) -> str:
        """The unit of the speeds."""
        return self.problem.unit

    @property
    def baseline(self) -> str:
        """The name of what speeds are compared with."""
        return self.problem.baseline

    @property
    def modelled(self) -> bool:
        """Whether its points are the model's: ``gpu`` says of which card."""
        return self.device == "cpu" and self.gpu is not None

    @property
    def title(self) -> Message:
        if self.modelled:
            words = phrase("{lab} · {gpu}, by the model, not measured", lab=self.lab)
            return words.given(gpu=self.gpu or "")
        if self.device == "cpu":
            return phrase("{lab} · simulator", lab=self.lab)
        return verbatim(f"{self.lab} · {self.gpu or 'GPU'}")

    @property
    def caution(self) -> Message:
        """A caution about the ranks; NOTHING where speeds were measured."""
        if self.device == "gpu":
            return NOTHING
        if self.modelled:
            return phrase(
                "Nothing was measured: points are for the most that the model expects (≈), and "
                "work that it cannot judge has none."
            )
        return phrase(
            "The ranks count the sizes that are right: the simulator cannot rank by speed, only a "
            "GPU can."
        )


def make_boards(
    entries: Iterable[ResultEntry],
    choice: Attempts = "best",
    *,
    roster: Roster | None = None,
    rules: TimeRules | None = None,
    references: Collection[str] = (),
    ladders: Sequence[Ladder] = (),
    version: str | None = None,
) -> tuple[Board, ...]:
    """Boards of GPUs first.

    choice: which of a student's results counts. roster: further students, and due dates. rules:
    when work is due, and what late work loses. references: names of submissions to compare with,
    which are not ranked. ladders: where the first that was measured on a board's GPU model stands
    between the students, too. version: hash of the lab file that counts; else the newest result's.
    """
    groups: dict[tuple[str, str, str | None], list[ResultEntry]] = defaultdict(list)
    for entry in entries:
        groups[(entry.lab.id, entry.environment.device, entry.gpu)].append(entry)
    _share_out(groups)
    boards = []
    for lab, device, gpu in sorted(groups, key=lambda key: (key[0], key[1] != "gpu", key[2] or "")):
        own = groups[(lab, device, gpu)]
        problem = own[-1].problem
        alike = (each for each in ladders if each.timed_on(gpu) and each.problem.like(problem))
        rows = _rows(own, choice, roster, rules, references, next(alike, None), version)
        boards.append(Board(lab=lab, device=device, gpu=gpu, problem=problem, rows=rows))
    return tuple(boards)


def undated(boards: Iterable[Board]) -> Message:
    """Say which table is needed where nobody can say who was late; NOTHING where all is known."""
    students = {row.student for board in boards for row in board.rows if row.untimed}
    if not students:
        return NOTHING
    return counted(
        "{count} student's work was graded after the due date, and nothing says when it was handed "
        "in: it is not called late; give a table with the columns student and submitted: --roster "
        "FILE",
        "The work of {count} students was graded after the due date, and nothing says when it was "
        "handed in: it is not called late; give a table with the columns student and submitted: "
        "--roster FILE",
        len(students),
    )


def _share_out(groups: dict[tuple[str, str, str | None], list[ResultEntry]]) -> None:
    """Results that ended before any GPU, such as compile errors, count on every GPU's board."""
    for lab in {key[0] for key in groups}:
        models = [key for key in groups if key[:2] == (lab, "gpu") and key[2] is not None]
        if models:
            homeless = groups.pop((lab, "gpu", None), [])
            for key in models:
                groups[key] += homeless


def _rows(
    entries: Sequence[ResultEntry],
    choice: Attempts,
    roster: Roster | None,
    rules: TimeRules | None,
    references: Collection[str],
    ladder: Ladder | None,
    version: str | None,
) -> tuple[Row, ...]:
    by_student: dict[str, list[ResultEntry]] = defaultdict(list)
    for entry in entries:
        by_student[entry.submission.student].append(entry)
    newest_lab = version or max(entries, key=lambda entry: entry.created).lab.sha256
    rows = [
        _row(attempts, choice, roster, rules, newest_lab, student in references)
        for student, attempts in by_student.items()
    ]
    rows += _baseline(entries)
    if ladder:
        rows += [row for row in _rungs(ladder, entries) if row.student not in by_student]
    rows.sort(key=order)
    missing = [student for student in roster or () if student not in by_student]
    return (*ranked(rows), *(Row(student=student, kind="missing") for student in missing))


class _Attempt(NamedTuple):
    """One source handed in once; again later, it is another attempt."""

    entry: ResultEntry
    when: datetime  # of hand-in, else of grading
    late: Lateness | None
    untimed: bool

    @property
    def adjusted(self) -> float | None:
        lost, points = self.late.lost if self.late else 0.0, self.entry.points
        return None if points is None else round(points - lost, 2)


def _row(
    attempts: Sequence[ResultEntry],
    choice: Attempts,
    roster: Roster | None,
    rules: TimeRules | None,
    newest_lab: str,
    reference: bool,
) -> Row:
    student = attempts[0].submission.student
    person = (roster or {}).get(student) or Person(student=student)
    limit = None if reference else person.due or (rules.due_at if rules else None)
    ordered = []
    for entry in attempts:
        known = person.submitted or entry.submission.submitted
        for time in entry.submission.submitted or (entry.created,):
            when = moment(time)
            came = person.submitted or when
            points = entry.points or 0.0
            late = lateness(came, limit, rules, points, person.late_days) if limit else None
            if known:
                ordered.append(_Attempt(entry, when, late, untimed=False))
            else:  # it came before it was graded; how long before, nobody knows
                ordered.append(_Attempt(entry, when, None, untimed=late is not None))
    ordered.sort(key=lambda attempt: (attempt.when, attempt.entry.created))
    counting = _counting(ordered, choice)
    chosen, late = counting.entry, counting.late
    fastest = chosen.fastest
    return Row(
        student=student,
        kind="reference" if reference else "student",
        verdict=chosen.verdict,
        points=chosen.points,
        max_points=chosen.score.max if chosen.score else 100,
        passed=chosen.passed,
        cases=chosen.sizes,
        speed=fastest[0] if fastest else None,
        ratio=fastest[0] / fastest[1] if fastest and fastest[1] else None,
        history=tuple(each.entry.points for each in ordered if each.entry.points is not None),
        created=chosen.created,
        sha256=chosen.submission.sha256,
        late=late is not None,
        untimed=any(attempt.untimed for attempt in ordered),
        other_lab=chosen.lab.sha256 != newest_lab,
        adjusted=counting.adjusted,
        lateness=late.words if late and (late.days or (rules and rules.late)) else NOTHING,
        late_days=late.days if late else 0,
    )


def _counting(ordered: Sequence[_Attempt], choice: Attempts) -> _Attempt:
    """The attempt that counts, of a student's in the order they were handed in."""
    if choice == "latest":
        return ordered[-1]
    if choice == "last-before-deadline":
        in_time = [attempt for attempt in ordered if attempt.late is None]
        # Without one, the first that is late, which loses least.
        return in_time[-1] if in_time else ordered[0]
    # Of equal attempts the earliest counts: a retry must not make a student late.
    return max(ordered, key=lambda each: -1.0 if each.adjusted is None else each.adjusted)


def order(row: Row) -> tuple[float, bool, str]:
    """Best first. What was timed but never scored stands by its ratio to the baseline."""
    points = 100 * (row.ratio or 0) if row.adjusted is None else row.adjusted
    return -points, row.kind != "baseline", row.student


def ranked(rows: Sequence[Row]) -> list[Row]:
    """Rows with their ranks: equal points share one, and the next rank counts all before it."""
    ranked: list[Row] = []
    place, rank, points = 0, 0, None
    for row in rows:
        if row.kind == "student" and row.adjusted is not None:
            place += 1
            if row.adjusted != points:
                rank, points = place, row.adjusted
            row = msgspec.structs.replace(row, rank=rank)
        ranked.append(row)
    return ranked


def _baseline(entries: Sequence[ResultEntry]) -> list[Row]:
    """The baseline itself, at the median of its best runs; none where nothing was timed."""
    rates = sorted(fastest[1] for entry in entries if (fastest := entry.fastest))
    if not rates:
        return []
    full = max((entry.score.max for entry in entries if entry.score), default=None)
    return [
        Row(
            student=entries[-1].problem.baseline,
            kind="baseline",
            points=full,
            adjusted=full,
            max_points=full,
            speed=rates[len(rates) // 2],
            ratio=1.0,
        )
    ]


def _rungs(ladder: Ladder, entries: Iterable[ResultEntry]) -> list[Row]:
    """The ladder's rungs at the board's own size, without points; [] where it was not timed."""
    timed = [case for entry in entries for case in entry.cases if case.timing]
    if not timed:
        return []
    largest = max(timed, key=lambda case: case.amount)
    return [
        Row(
            student=step.rung.name,
            kind="reference",
            verdict=step.verdict,
            speed=speed.rate,
            ratio=speed.rate / speed.baseline,
        )
        for step in ladder.steps
        if (speed := step.at(largest.size))
    ]
