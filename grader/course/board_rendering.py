"""Boards → terminal, HTML, and what course systems read."""

from collections.abc import Callable, Mapping, Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from grader.base import ENGLISH, Language, UsageError, one_line
from grader.course.leaderboard import Board, Row, order, ranked
from grader.course.roster import (
    CANVAS_COLUMNS,
    GRADEBOOK_NEEDED,
    Parties,
    Roster,
    csv_text,
    raw_csv,
)
from grader.report import LongTable, page, sparkline
from ptxsim.text import NOTHING, Message, listed, phrase, verbatim

_SPARKS = "▁▂▃▄▅▆▇█"
CSV_COLUMNS = (
    *("board", "rank", "student", "name", "kind", "verdict", "points", "max_points", "passed"),
    *("cases", "speed", "baseline_ratio", "attempts", "graded", "late", "other_lab_file", "sha256"),
    *("adjusted_points", "lateness", "members"),
)


def for_students(boards: Sequence[Board], alias: Callable[[str], str]) -> tuple[Board, ...]:
    """The boards with ``alias(student)`` for every name, and nothing that leads back to one:
    no times, nothing about lateness, nobody who is missing.
    """

    def hidden(row: Row) -> Row:
        if row.kind in ("baseline", "reference"):
            return row
        nothing = {
            **{"sha256": None, "created": None, "late": False},
            **{"untimed": False, "other_lab": False, "late_days": 0},
        }
        return msgspec.structs.replace(
            row, student=alias(row.student), adjusted=row.points, lateness=NOTHING, **nothing
        )

    found = []
    for board in boards:
        rows = [hidden(row) for row in board.rows if row.kind != "missing"]
        rows.sort(key=order)  # ties were in the order of the real names
        found.append(msgspec.structs.replace(board, rows=tuple(ranked(rows))))
    return tuple(found)


def marks(row: Row) -> Message:
    """``missing``, ``2 days late``, ``other lab file``: what an instructor must look at."""
    if row.kind == "missing":
        return phrase("missing")
    said = [row.lateness or phrase("late")] if row.late else []
    said += [phrase("hand-in time unknown")] if row.untimed else []
    return listed([*said, phrase("other lab file")] if row.other_lab else said)


# --- terminal ---------------------------------------------------------------------------------


def terminal(
    boards: Sequence[Board], roster: Roster | None, language: Language = ENGLISH
) -> RenderableType:
    parts: list[RenderableType] = []
    for board in boards:
        parts += [_table(board, roster, language), ""]
        if board.caution:
            parts += [Text(language(board.caution), style="dim"), ""]
    return Group(*parts)


def _table(board: Board, roster: Roster | None, language: Language) -> LongTable:
    timed, scored = board.device == "gpu", board.device == "gpu" or board.modelled
    losing = loses(board)
    adjusted = [(phrase("adjusted"), True)] if losing else []
    beside = phrase("of {baseline}", baseline=board.baseline)
    figures = [(verbatim(board.unit), True), (beside, True)] if timed else []
    columns = [
        *((NOTHING, True), (phrase("student"), False), (phrase("verdict"), False)),
        *((phrase("score") if scored else phrase("sizes right"), True), *adjusted, *figures),
        *((phrase("history"), False), (NOTHING, False)),
    ]
    table = LongTable(
        one_line(language(board.title)),
        [(language(name), number) for name, number in columns],
        give_way=(1,),
        prose=len(columns) - 1,
        spare=len(columns) - 2,
    )
    for row in board.rows:
        cells = [
            str(row.rank or ""),
            _named(row, roster),
            row.verdict.value if row.verdict else "",
            language(_points(row, board)),
        ]
        if losing:
            cells.append(_adjusted(row))
        if timed:
            cells.append(f"{row.speed:.4g}" if row.speed is not None else "")
            cells.append(f"{100 * row.ratio:.1f} %" if row.ratio is not None else "")
        cells += [_spark(row.history), language(marks(row))]
        table.add(cells, "" if row.kind == "student" else "dim")
    return table


def _named(row: Row, roster: Roster | None) -> str:
    person = roster.get(row.student) if roster else None
    name = f"{row.student} ({person.name})" if person and person.name else row.student
    return one_line(name)


def _points(row: Row, board: Board) -> Message:
    if board.modelled and row.verdict is not None:
        if row.points is None:
            return phrase("not gradable")
        return verbatim(f"≈ {row.points:.2f}")
    if board.device == "gpu":
        return verbatim(f"{row.points:.2f}") if row.points is not None else NOTHING
    if row.passed is None or not row.cases:
        return NOTHING
    return phrase("{part} of {whole}", part=row.passed, whole=row.cases)


def loses(board: Board) -> bool:
    """Whether late work lost points on this board, so that raw and adjusted ones differ."""
    return any(row.adjusted != row.points for row in board.rows)


def _adjusted(row: Row) -> str:
    return f"{row.adjusted:.2f}" if row.adjusted is not None else ""


def _spark(history: Sequence[float]) -> str:
    if len(history) < 2:
        return ""
    top = max(100.0, *history)
    return "".join(_SPARKS[min(7, int(8 * value / top))] for value in history[-8:])


# --- HTML -------------------------------------------------------------------------------------


def html(boards: Sequence[Board], roster: Roster | None, language: Language = ENGLISH) -> str:
    """A self-contained page, sortable where scripts run."""
    return page(
        "leaderboard.html.j2",
        language,
        title=language(phrase("Leaderboard")),
        boards=boards,
        name=lambda row: _named(row, roster),
        points=_points,
        loses=loses,
        adjusted=_adjusted,
        marks=marks,
        spark=lambda row: sparkline(row.history[-40:], max(100.0, *row.history, 0.0), language),
    )


# --- other systems -----------------------------------------------------------------------------


def table_csv(boards: Sequence[Board], roster: Roster | None) -> str:
    """One row per student and board, for spreadsheets."""
    return csv_text(
        CSV_COLUMNS, (_csv_row(board, row, roster) for board in boards for row in board.rows)
    )


def _csv_row(board: Board, row: Row, roster: Roster | None) -> tuple[object, ...]:
    person = roster.get(row.student) if roster else None
    late = "yes" if row.late else "unknown" if row.untimed else ""
    other_lab = "yes" if row.other_lab else ""
    return (
        *(str(board.title), row.rank, row.student, person.name if person else "", row.kind),
        *(row.verdict.value if row.verdict else None, row.points, row.max_points, row.passed),
        *(row.cases, row.speed, row.ratio, len(row.history), row.created, late, other_lab),
        *(row.sha256, row.adjusted, str(row.lateness), " ".join(person.members) if person else ""),
    )


def board_json(boards: Sequence[Board]) -> str:
    """Boards and rows with the names of their fields; sentences in English."""
    fields = msgspec.structs.asdict
    documents = [
        {
            **fields(board),
            **{"unit": board.unit, "baseline": board.baseline},
            "rows": [{**fields(row), "lateness": str(row.lateness)} for row in board.rows],
        }
        for board in boards
    ]
    for row in (row for document in documents for row in document["rows"]):
        del row["late_days"]  # which only a term has
    return msgspec.json.format(msgspec.json.encode(documents), indent=1).decode() + "\n"


def board_shares(board: Board) -> dict[str, float]:
    """Return each student's share of the points after the late penalty, for those with a result."""
    return {
        row.student: row.adjusted / (row.max_points or 100)
        for row in board.rows
        if row.kind == "student" and row.adjusted is not None
    }


def canvas(
    shares: Mapping[str, float], parties: Parties, assignment: str, points: float
) -> tuple[str, list[Message]]:
    """A gradebook to import: identities as the roster has them, shares scaled to ``points``. Every
    member of a group gets the group's. And a line for each who has points and no Canvas ID.

    Students without a share are left out: a blank would clear a grade given by hand. Raises
    UsageError when the roster has no Canvas IDs.
    """
    if not any(person.canvas.get("ID") for person in parties.people.values()):
        none = phrase("canvas: the roster has no Canvas IDs; {needed}", needed=GRADEBOOK_NEEDED)
        raise UsageError(none)
    left_out: list[Message] = []
    rows: list[list[str]] = [
        [*CANVAS_COLUMNS, assignment],
        ["    Points Possible", "", "", "", "", f"{points:g}"],
    ]
    for party, share in shares.items():
        for person in parties.members(party):
            if not person.canvas.get("ID"):
                lacks = phrase("{student}: no ID in Canvas's gradebook")
                left_out.append(lacks.given(student=one_line(person.student)))
                continue
            identity = [person.canvas.get(column, "") for column in CANVAS_COLUMNS]
            rows.append([*identity, f"{share * points:.2f}"])
    return raw_csv(rows), left_out
