"""A term: its labs' boards, on which late days are spent in the order of dates, and their sum."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from grader.base import Language, UsageError, one_line
from grader.course.board_rendering import marks
from grader.course.leaderboard import Board, Row, make_boards
from grader.course.roster import Parties, Person, Roster, csv_text, read_roster
from grader.labs import Term, TimeRules
from grader.report import LongTable, page
from grader.results import ResultEntry, weighted_mean
from ptxsim.text import Message, clauses, phrase, verbatim

Gradebook = Sequence[Sequence[Message]]  # columns' names, then a line per student, the best first


class TermBoards(NamedTuple):
    """The boards of the labs that have results, with a row for each member of a group."""

    boards: tuple[Board, ...]
    people: Roster  # on any lab's roster
    complaints: tuple[str, ...]  # of names that would put a student into two groups


def term_boards(term: Term, entries: Sequence[ResultEntry]) -> TermBoards:
    """Results of a GPU go before the simulator's. A group has the late days of the member with
    fewest. Raises UsageError for a wrong roster, and for results of two GPUs."""
    bank: dict[str, int] = defaultdict(lambda: term.late_days)
    boards, people, complaints = [], dict[str, Person](), []
    for lab, _, _, rosters in term.labs:
        who = Parties(read_roster(*rosters))
        people |= who.people
        merged, doubled = who.merged(each for each in entries if each.lab.id == lab.id)
        complaints += doubled
        merged = [each for each in merged if each.environment.device == "gpu"] or merged
        roster = dict(who.roster)
        for party in {*roster, *(each.submission.student for each in merged)}:
            members = tuple(each.student for each in who.members(party)) or (party,)
            left = min(bank[each] for each in members)
            person = roster.get(party) or Person(student=party)
            roster[party] = replace(person, members=members, late_days=left)
        rules = lab.time or TimeRules()
        made = make_boards(merged, rules.attempts, roster=roster, rules=rules)
        if len(made) > 1:
            names = ", ".join(str(each.title) for each in made)
            raise UsageError(f"several boards ({names}); keep each GPU's results in its own --out")
        for board in made:
            own = [row for row in board.rows if row.kind != "baseline"]
            split = ((row, name) for row in own for name in roster[row.student].members)
            rows = tuple(replace(row, student=name) for row, name in split)
            boards.append(replace(board, rows=rows))
            for row in rows:
                bank[row.student] -= row.late_days
    return TermBoards(tuple(boards), people, tuple(complaints))


def weigh(
    shares: Sequence[float], weights: Sequence[float], drop: int
) -> tuple[float, frozenset[int]]:
    """Return the weighted mean without the lowest shares, and which these are: of equal ones those
    that weigh most. At least one counts."""
    lowest = sorted(range(len(shares)), key=lambda i: (shares[i], -weights[i]))
    drop = min(drop, len(shares) - 1)
    return weighted_mean((weights[i], shares[i]) for i in lowest[drop:]), frozenset(lowest[:drop])


def add_up(boards: Sequence[Board], term: Term, people: Roster) -> Gradebook:
    """Add up a term's boards. people: their names, and who has 0 without being on any board."""
    by_lab = {each.lab.id: each.weight for each in term.labs}
    weights = [by_lab[board.lab] for board in boards]
    found = [{row.student: row for row in board.rows} for board in boards]
    sums = []
    for student in {*people, *chain(*found)}:
        rows = [each.get(student, Row(student=student, kind="missing")) for each in found]
        shares = [(row.adjusted or 0) / (row.max_points or 100) for row in rows]
        total, dropped = weigh(shares, weights, term.drop_lowest)
        said = [(board.lab, marks(row)) for board, row in zip(boards, rows, strict=True)]
        said += [(boards[i].lab, phrase("not counted")) for i in sorted(dropped)]
        notes = [phrase("{place}: {what}", place=lab, what=what) for lab, what in said if what]
        name = one_line(people[student].name) if student in people else ""
        days = sum(row.late_days for row in rows) or ""
        cells = [one_line(student), name, f"{100 * total:.2f}", f"{days}"]
        cells += [f"{row.adjusted or 0:.2f}" for row in rows]
        sums.append((round(100 * total, 2), student, [*map(verbatim, cells), clauses(notes)]))
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


def html(book: Gradebook, term: Term, title: Message, language: Language) -> str:
    return page("term.html.j2", language, title=language(title), term=term, book=book)


def table_csv(book: Gradebook) -> str:
    header, *lines = (list(map(str, line)) for line in book)
    return csv_text(header, lines)
