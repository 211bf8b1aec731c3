"""The results of two versions of a lab file → whose points changed, and why."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from grader.base import ENGLISH, Language, Verdict, one_line, size_text
from grader.course.leaderboard import Board, Row, make_boards, undated
from grader.course.roster import Roster, csv_text
from grader.labs import Attempts, TimeRules
from grader.report import LongTable
from grader.results import ResultEntry
from ptxsim.plan import Record
from ptxsim.text import Message, clauses, phrase

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
    reasons: tuple[Message, ...]


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


def terminal(found: Comparison, language: Language = ENGLISH) -> LongTable:
    columns = [(phrase("board"), False), (phrase("student"), False), (phrase("before"), True)]
    columns += [(phrase("after"), True), (phrase("why"), False)]
    named = [(language(name), number) for name, number in columns]
    table = LongTable("", named, give_way=(1, 0), prose=4)
    for change in found.changes:
        cells = [one_line(change.board), one_line(change.student)]
        cells += [_told(change.before), _told(change.after), language(clauses(change.reasons))]
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
        rows.append([*cells, str(clauses(change.reasons))])
    return csv_text(_COLUMNS, rows)


# --- why --------------------------------------------------------------------------------------


def _reasons(
    entries: Sequence[Mapping[_Key, ResultEntry]], one: Row | None, other: Row | None
) -> Iterator[Message]:
    if one is None or other is None:
        none = phrase("no result with the new lab file yet")
        yield none if other is None else phrase("no result before")
        return
    old = entries[0][one.student, one.sha256, one.created]
    new = entries[1][other.student, other.sha256, other.created]
    if old.submission.sha256 != new.submission.sha256:
        another = phrase("another attempt counts: {new} instead of {old}")
        yield another.given(new=new.submission.sha256[:12], old=old.submission.sha256[:12])
    yield from _verdicts(old, new)
    if one.points != other.points or one.max_points != other.max_points:
        why = [*_sizes(old, new), *_scoring(old, new), *_speeds(old, new)]
        if not why and old.verdict is new.verdict:
            why = [phrase("the curve or the weights of the groups of sizes changed")]
        yield from why
    lost = [round((row.points or 0) - (row.adjusted or 0), 2) for row in (one, other)]
    if lost[0] != lost[1]:
        loses = phrase("late work loses {new:g} instead of {old:g}", new=lost[1], old=lost[0])
        how = phrase("{what} ({reason})", what=loses, reason=other.lateness)
        yield how if other.lateness else loses


def _verdicts(old: ResultEntry, new: ResultEntry) -> Iterator[Message]:
    if old.verdict is new.verdict:
        return
    failed = next((case for case in new.cases if case.verdict is new.verdict), None)
    words = phrase("verdict {old} → {new}", old=old.verdict.value, new=new.verdict.value)
    if failed and new.verdict is not Verdict.AC:
        words = phrase("{what} at {size}", what=words, size=size_text(failed.size))
        if failed.size not in [case.size for case in old.cases]:
            words = phrase("{what}, a size that the lab did not have", what=words)
    yield words


def _sizes(old: ResultEntry, new: ResultEntry) -> Iterator[Message]:
    one, other = ([size_text(case.size) for case in entry.cases] for entry in (old, new))
    added, gone = phrase("more sizes: {sizes}"), phrase("without the sizes {sizes}")
    for words, sizes, known in ((added, other, one), (gone, one, other)):
        if names := [size for size in sizes if size not in known]:
            shown: Message | str = ", ".join(names[:3])
            if len(names) > 3:
                shown = phrase("{sizes} and {more} more", sizes=shown, more=len(names) - 3)
            yield words.given(sizes=shown)


def _scoring(old: ResultEntry, new: ResultEntry) -> Iterator[Message]:
    if old.score is None or new.score is None:
        return
    if old.score.policy != new.score.policy:
        yield phrase("scoring {old} → {new}", old=old.score.policy, new=new.score.policy)
    if old.score.max != new.score.max:
        most = phrase("at most {new:g} points instead of {old:g}", new=new.score.max)
        yield most.given(old=old.score.max)
    weights = [
        {share.case: share.weight for share in score.shares} for score in (old.score, new.score)
    ]
    both = weights[0].keys() & weights[1].keys()
    if any(weights[0][case] != weights[1][case] for case in both):
        yield phrase("other weights of the timed sizes")


def _speeds(old: ResultEntry, new: ResultEntry) -> Iterator[Message]:
    """Sizes that were timed again and came out otherwise."""
    before = {size_text(case.size): case.timing for case in old.cases}
    for case in new.cases:
        was, now = before.get(size_text(case.size)), case.timing
        if was and now and abs(was.scored_ratio - now.scored_ratio) > _SAME:
            yield phrase(
                "timed again at {size}: {old:.1f} % → {new:.1f} % of {baseline}",
                size=size_text(case.size),
                old=100 * was.scored_ratio,
                new=100 * now.scored_ratio,
                baseline=new.problem.baseline,
            )
