"""A term: its labs' boards, on which late days are spent in the order of dates, and their sum."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from grader.base import Language, UsageError, one_line
from grader.course.board_rendering import marks
from grader.course.leaderboard import Board, Row, make_boards
from grader.course.roster import Parties, Person, Roster, csv_text, read_roster
from grader.labs import Lab, Term, TimeRules
from grader.report import LongTable, page
from grader.results import ResultEntry, weighted_mean
from ptxsim.text import NOTHING, Message, clauses, listed, phrase, verbatim

Floats = Sequence[float]
Gradebook = Sequence[Sequence[Message]]  # columns' names, then a line per student, the best first


def term_boards(
    term: Term, labs: Sequence[Lab], entries: Sequence[ResultEntry]
) -> tuple[list[Board], Roster, list[Message]]:
    """Return the board of each lab that has results, with a row for every member of a group; who is
    on a roster; and a line for each name that would put a student into two groups. Raises
    UsageError for a wrong roster, and for results of several GPUs."""
    bank: dict[str, int] = defaultdict(lambda: term.late_days)
    boards, people, complaints = [], dict[str, Person](), []
    for given, lab in zip(term.labs, labs, strict=True):
        who = Parties(read_roster(*map(Path, given.roster)))
        people |= who.people
        merged, doubled = who.merged(each for each in entries if each.lab.id == lab.id)
        complaints += doubled
        merged = [each for each in merged if each.environment.device == "gpu"] or merged
        roster, members = dict(who.roster), dict[str, list[str]]()
        for party in {*roster, *(each.submission.student for each in merged)}:
            members[party] = [each.student for each in who.members(party)] or [party]
            left = min(bank[each] for each in members[party])  # each pays for what the group uses
            roster[party] = replace(roster.get(party) or Person(student=party), late_days=left)
        rules = lab.time or TimeRules()
        made = make_boards(merged, rules.attempts, roster=roster, rules=rules)
        if len(made) > 1:
            several = phrase("{lab}: results of several GPUs; keep each one's in its own --out")
            raise UsageError(several.given(lab=lab.id))
        for board in made:
            split = ((row, name) for row in board.rows for name in members.get(row.student, ()))
            rows = tuple(replace(row, student=name) for row, name in split)
            boards.append(replace(board, rows=rows))
            for row in rows:
                bank[row.student] -= row.late_days
    return boards, people, complaints


def weigh(shares: Floats, weights: Floats, drop: int) -> tuple[float, frozenset[int]]:
    """Return the weighted mean without the lowest shares, and which these are: of equal ones those
    that weigh most. At least one counts."""
    lowest = sorted(range(len(shares)), key=lambda i: (shares[i], -weights[i]))
    drop = min(drop, len(shares) - 1)
    return weighted_mean((weights[i], shares[i]) for i in lowest[drop:]), frozenset(lowest[:drop])


def add_up(boards: Sequence[Board], term: Term, people: Roster) -> Gradebook:
    """Add up a term's boards. people: their names, and who has 0 without being on any board."""
    weights = [given.weight for board in boards for given in term.labs if given.lab == board.lab]
    found = [{row.student: row for row in board.rows} for board in boards]
    missing, lowest = phrase("missing"), phrase("not counted")
    sums = []
    for student in {*people, *chain(*found)}:
        rows = [each.get(student, Row(student=student, kind="missing")) for each in found]
        shares = [(row.adjusted or 0) / (row.max_points or 100) for row in rows]
        total, dropped = weigh(shares, weights, term.drop_lowest)
        lost = [lowest if i in dropped else NOTHING for i in range(len(rows))]
        told = [marks(row) if row.verdict else NOTHING for row in rows]
        both = zip(boards, told, lost, strict=True)
        said = [(board.lab, listed(filter(None, two))) for board, *two in both]
        notes = [phrase("{place}: {what}", place=lab, what=what) for lab, what in said if what]
        name = one_line(people[student].name) if student in people else ""
        days = sum(row.late_days for row in rows) or ""
        cells = map(verbatim, [one_line(student), name, f"{100 * total:.2f}", f"{days}"])
        points = [verbatim(f"{row.adjusted:.2f}") if row.verdict else missing for row in rows]
        sums.append((round(100 * total, 2), student, [*cells, *points, clauses(notes)]))
    sums.sort(key=lambda each: (-each[0], each[1]))
    totals = [each[0] for each in sums]
    header = [phrase("rank"), phrase("student"), phrase("full name"), phrase("total")]
    header += [phrase("late days"), *(verbatim(board.lab) for board in boards), phrase("marks")]
    return [header, *([verbatim(f"{totals.index(each[0]) + 1}"), *each[2]] for each in sums)]


def terminal(book: Gradebook, language: Language) -> LongTable:
    header, *lines = ([language(cell) for cell in line] for line in book)
    columns = [(name, i not in (1, 2, len(header) - 1)) for i, name in enumerate(header)]
    table = LongTable("", columns, give_way=(2, 1), prose=len(header) - 1)
    for line in lines:
        table.add(line)
    return table


def html(book: Gradebook, term: Term, language: Language) -> str:
    return page("term.html.j2", language, term=term, book=book)


def table_csv(book: Gradebook) -> str:
    header, *lines = (list(map(str, line)) for line in book)
    return csv_text(header, lines)
