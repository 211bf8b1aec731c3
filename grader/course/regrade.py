"""The results of two versions of a lab file → whose points changed, and why."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from grader.base import Verdict, one_line, size_text
from grader.course.leaderboard import Board, Row, make_boards, undated
from grader.course.roster import Roster, csv_text
from grader.labs import Attempts, TimeRules
from grader.report import LongTable
from grader.results import ResultEntry
from ptxsim.plan import Record
from ptxsim.text import Message

_Key = tuple[str, str | None, str | None]  # of an entry: student, hash of the source, when graded
_SAME = 5e-4  # ratios that differ by less are the same
_COLUMNS = (
    *("board", "student", "verdict_before", "points_before", "adjusted_before"),
    *("verdict_after", "points_after", "adjusted_after", "reasons"),
)


class LabVersion(Record):
    """The class's results under one version of the lab file."""

    sha256: str  # of the lab file
    entries: tuple[ResultEntry, ...]
    rules: TimeRules | None  # of time, with which these points count
    choice: Attempts

    @property
    def newest(self) -> str:
        return max(entry.created for entry in self.entries)


class Change(Record):
    """One row of a board that is not what it was."""

    board: str
    student: str
    before: Row | None  # None: this version of the lab file has no result
    after: Row | None
    reasons: tuple[str, ...]


class Comparison(Record):
    changes: tuple[Change, ...]  # the largest loss first
    same: int  # rows that did not change
    caution: Message  # of work that nobody can call late; NOTHING where all times are known


def versions(entries: Iterable[ResultEntry]) -> dict[str, list[ResultEntry]]:
    """Entries by the hash of their lab file, that with the newest result last."""
    found: dict[str, list[ResultEntry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.created):
        found.setdefault(entry.lab.sha256, []).append(entry)
    return dict(sorted(found.items(), key=lambda each: each[1][-1].created))


def compare(before: LabVersion, after: LabVersion, roster: Roster | None) -> Comparison:
    one_side, other_side = _boards(before, roster), _boards(after, roster)
    old, new = _rows(one_side), _rows(other_side)
    chosen: list[dict[_Key, ResultEntry]] = [
        {(each.submission.student, each.submission.sha256, each.created): each for each in entries}
        for entries in (before.entries, after.entries)
    ]
    changes, same = [], 0
    for key in sorted(old.keys() | new.keys()):
        one, other = old.get(key), new.get(key)
        if one and other and _points(one) == _points(other):
            same += 1
            continue
        reasons = tuple(_reasons(chosen, one, other))
        board, student = key
        changes.append(
            Change(board=board, student=student, before=one, after=other, reasons=reasons)
        )
    changes.sort(key=lambda change: (change.board, _gain(change), change.student))
    caution = undated((*one_side, *other_side))
    return Comparison(changes=tuple(changes), same=same, caution=caution)


def _boards(side: LabVersion, roster: Roster | None) -> tuple[Board, ...]:
    return make_boards(side.entries, side.choice, roster=roster, rules=side.rules)


def _rows(boards: Iterable[Board]) -> dict[tuple[str, str], Row]:
    return {
        (str(board.title), row.student): row
        for board in boards
        for row in board.rows
        if row.kind == "student"
    }


def _points(row: Row) -> tuple[float | None, float | None, float | None, Verdict | None]:
    return (row.points, row.adjusted, row.max_points, row.verdict)


def _gain(change: Change) -> float:
    if change.before is None or change.after is None:
        return 0.0
    return (change.after.adjusted or 0.0) - (change.before.adjusted or 0.0)


def terminal(found: Comparison) -> LongTable:
    columns = [("student", False), ("before", True), ("after", True), ("why", False)]
    table = LongTable("", [("board", False), *columns], give_way=(1, 0), prose=4)
    for change in found.changes:
        cells = [one_line(change.board), one_line(change.student)]
        cells += [_told(change.before), _told(change.after), "; ".join(change.reasons)]
        table.add(cells)
    return table


def _told(row: Row | None) -> str:
    """``86.07``, or with what late work lost ``86.07 (81.07)``."""
    if row is None or row.points is None or row.verdict is None:
        return ""
    adjusted = f" ({row.adjusted:.2f})" if row.adjusted != row.points else ""
    return f"{row.verdict.value} {row.points:.2f}{adjusted}"


def table_csv(found: Comparison) -> str:
    rows: list[list[object]] = []
    for change in found.changes:
        cells: list[object] = [change.board, change.student]
        for row in (change.before, change.after):
            verdict = row.verdict.value if row and row.verdict else ""
            cells += [verdict, row.points, row.adjusted] if row else ["", "", ""]
        rows.append([*cells, "; ".join(change.reasons)])
    return csv_text(_COLUMNS, rows)


# --- why --------------------------------------------------------------------------------------


def _reasons(
    entries: Sequence[Mapping[_Key, ResultEntry]], one: Row | None, other: Row | None
) -> Iterator[str]:
    if one is None or other is None:
        yield "no result with the new lab file yet" if other is None else "no result before"
        return
    old = entries[0][one.student, one.sha256, one.created]
    new = entries[1][other.student, other.sha256, other.created]
    if old.submission.sha256 != new.submission.sha256:
        yield (
            f"another attempt counts: {new.submission.sha256[:12]} instead of "
            f"{old.submission.sha256[:12]}"
        )
    yield from _verdicts(old, new)
    if one.points != other.points or one.max_points != other.max_points:
        why = [*_sizes(old, new), *_scoring(old, new), *_speeds(old, new)]
        if not why and old.verdict is new.verdict:
            why = ["the curve or the weights of the groups of sizes changed"]
        yield from why
    lost = [round((row.points or 0) - (row.adjusted or 0), 2) for row in (one, other)]
    if lost[0] != lost[1]:
        yield f"late work loses {lost[1]:g} instead of {lost[0]:g}" + (
            f" ({other.lateness})" if other.lateness else ""
        )


def _verdicts(old: ResultEntry, new: ResultEntry) -> Iterator[str]:
    if old.verdict is new.verdict:
        return
    failed = next((case for case in new.cases if case.verdict is new.verdict), None)
    known = [case.size for case in old.cases]
    where = ""
    if failed and new.verdict is not Verdict.AC:
        added = "" if failed.size in known else ", a size that the lab did not have"
        where = f" at {size_text(failed.size)}{added}"
    yield f"verdict {old.verdict.value} → {new.verdict.value}{where}"


def _sizes(old: ResultEntry, new: ResultEntry) -> Iterator[str]:
    one, other = ([size_text(case.size) for case in entry.cases] for entry in (old, new))
    for words, sizes, known in (("more sizes:", other, one), ("without the sizes", one, other)):
        if names := [size for size in sizes if size not in known]:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            yield f"{words} {', '.join(names[:3])}{more}"


def _scoring(old: ResultEntry, new: ResultEntry) -> Iterator[str]:
    if old.score is None or new.score is None:
        return
    if old.score.policy != new.score.policy:
        yield f"scoring {old.score.policy} → {new.score.policy}"
    if old.score.max != new.score.max:
        yield f"at most {new.score.max:g} points instead of {old.score.max:g}"
    weights = [
        {share.case: share.weight for share in score.shares} for score in (old.score, new.score)
    ]
    both = weights[0].keys() & weights[1].keys()
    if any(weights[0][case] != weights[1][case] for case in both):
        yield "other weights of the timed sizes"


def _speeds(old: ResultEntry, new: ResultEntry) -> Iterator[str]:
    """Sizes that were timed again and came out otherwise."""
    before = {size_text(case.size): case.timing for case in old.cases}
    for case in new.cases:
        was, now = before.get(size_text(case.size)), case.timing
        if was and now and abs(was.scored_ratio - now.scored_ratio) > _SAME:
            yield (
                f"timed again at {size_text(case.size)}: {100 * was.scored_ratio:.1f} % → "
                f"{100 * now.scored_ratio:.1f} % of {new.problem.baseline}"
            )
