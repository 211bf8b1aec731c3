"""Boards → terminal, HTML, CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence

import msgspec
from rich.console import Group, RenderableType

from grader.course.leaderboard.ranking import Board, Row, order, ranked
from grader.course.roster import Roster
from grader.course.spreadsheet import harmless
from grader.errors import one_line
from grader.language import ENGLISH, Language
from grader.model import NOTHING, Message, listed, phrase, verbatim
from grader.report.charts import sparkline
from grader.report.long_table import LongTable
from grader.report.page import page

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
    return tuple(
        msgspec.structs.replace(board, rows=tuple(_anonymous(board.rows, alias)))
        for board in boards
    )


def _anonymous(rows: Sequence[Row], alias: Callable[[str], str]) -> list[Row]:
    hidden = [
        row
        if row.kind in ("baseline", "reference")
        else msgspec.structs.replace(
            row,
            student=alias(row.student),
            sha256=None,
            created=None,
            late=False,
            other_lab=False,
            adjusted=row.points,
            lateness=NOTHING,
        )
        for row in rows
        if row.kind != "missing"
    ]
    # Ties were in the order of the real names.
    hidden.sort(key=order)
    return ranked(hidden)


def marks(row: Row) -> Message:
    """``missing``, ``2 days late``, ``other lab file``: what an instructor must look at."""
    if row.kind == "missing":
        return phrase("missing")
    said = [row.lateness or phrase("late")] if row.late else []
    return listed([*said, phrase("other lab file")] if row.other_lab else said)


# --- terminal ---------------------------------------------------------------------------------


def terminal(
    boards: Sequence[Board], roster: Roster | None, language: Language = ENGLISH
) -> RenderableType:
    parts: list[RenderableType] = []
    for board in boards:
        parts += [_table(board, roster, language), ""]
    return Group(*parts)


def _table(board: Board, roster: Roster | None, language: Language) -> LongTable:
    timed = board.device == "gpu"
    losing = loses(board)
    adjusted = [(phrase("adjusted"), True)] if losing else []
    beside = phrase("of {baseline}", baseline=board.baseline)
    figures = [(verbatim(board.unit), True), (beside, True)] if timed else []
    columns = [
        *((NOTHING, True), (phrase("student"), False), (phrase("verdict"), False)),
        *((phrase("score") if timed else phrase("sizes right"), True), *adjusted, *figures),
        *((phrase("history"), False), (NOTHING, False)),
    ]
    table = LongTable(
        one_line(language(board.title)),
        [(language(name), number) for name, number in columns],
        give_way=(1, len(columns) - 2, len(columns) - 1),
    )
    for row in board.rows:
        cells = [
            str(row.rank or ""),
            _named(row, roster),
            row.verdict.value if row.verdict else "",
            language(_points(row, timed)),
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


def _points(row: Row, timed: bool) -> Message:
    if timed:
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
    return "".join(_SPARKS[min(7, int(8 * value / top))] for value in history[-20:])


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


# --- CSV --------------------------------------------------------------------------------------


def table_csv(boards: Sequence[Board], roster: Roster | None) -> str:
    """One row per student and board, for spreadsheets."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(CSV_COLUMNS)
    for board in boards:
        for row in board.rows:
            person = roster.get(row.student) if roster else None
            cells = (
                *(str(board.title), row.rank, row.student, person.name if person else ""),
                *(row.kind, row.verdict.value if row.verdict else None, row.points),
                *(row.max_points, row.passed, row.cases, row.speed, row.ratio),
                *(len(row.history), row.created, *(_yes(row.late), _yes(row.other_lab))),
                *(
                    row.sha256,
                    row.adjusted,
                    str(row.lateness),
                    " ".join(person.members) if person else "",
                ),
            )
            writer.writerow([harmless(cell) for cell in cells])
    return buffer.getvalue()


def _yes(value: bool) -> str:
    return "yes" if value else ""
