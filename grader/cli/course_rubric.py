"""``grade course rubric``: measured points and a human's marks, in a sheet, in pages, in grades."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from grader.cli import boards, exit_status, options
from grader.cli.notices import say
from grader.cli.parser import Parser
from grader.cli.speaking import spoken
from grader.course import export
from grader.course.leaderboard.ranking import Board, Row
from grader.course.parties import Parties
from grader.course.rubric import rubric_render as render
from grader.course.rubric.grades import Grade, grade_all
from grader.course.rubric.handed_back import marked_gradescope
from grader.course.rubric.sheet import Marks, read_sheet, write_sheet
from grader.errors import UsageError, one_line
from grader.labs.lab import Lab, load_lab, shipped_labs
from grader.labs.rubric import Question, Rubric, Weights, read_rubric, read_weights
from grader.language import Language
from grader.report.formats.gradescope import Shown
from grader.report.why import titles
from grader.results import store
from grader.results.index import read_index

_PRIVATE = 0o600  # names and marks: only the instructor may read them
_POINTS = 10.0  # of each question, where no rubric says more


class _Work(NamedTuple):
    """What all outputs are made of."""

    board: Board
    rows: Sequence[Row]  # of students, those without a result too
    parties: Parties
    rubric: Rubric
    weights: Weights | None
    marked: Mapping[str, Marks]
    grades: Mapping[str, Grade]  # {} without marks


def add_options(parser: Parser) -> None:
    parser.description = (
        "Write a sheet (CSV) with the measured points and room for a human's, and a page per "
        "student. With --marks, read the sheet back and combine both into grades."
    )
    options.selection(parser)
    add = parser.add_argument
    add("--rubric", metavar="FILE", type=Path, help="questions and weights, instead of the lab's")
    add("--weights", metavar="W", type=_weights, help="such as measured=60,report=40")
    add("--to", metavar="DIR", type=Path, help="where sheet and pages go (default: OUT/rubric/LAB)")
    add("--marks", metavar="FILE", type=Path, help="the sheet with a human's points and comments")
    add("--csv", metavar="FILE", type=Path, help="with --marks: the grades; - is stdout")
    add("--canvas", metavar="FILE", type=Path, help="with --marks: a gradebook for Canvas")
    add("--assignment", metavar="TITLE", help="with --canvas: the column's title in the gradebook")
    add("--gradescope", metavar="DIR", type=Path, help="with --marks: a results.json per student")
    add("--points", metavar="N", type=float, default=100.0, help="points possible (default: 100)")


def run(chosen: argparse.Namespace, console: Console) -> int:
    exports = [chosen.csv, chosen.canvas, chosen.gradescope]
    if chosen.marks is None and any(exports):
        raise UsageError("--csv, --canvas and --gradescope need --marks, the sheet filled in")
    if chosen.canvas and not (chosen.assignment and chosen.roster):
        raise UsageError("--canvas needs --roster, Canvas's gradebook, and --assignment")
    if not 0 < chosen.points < 1e6:
        raise UsageError(f"--points: expected a number > 0, got {chosen.points:g}")
    work = _work(chosen, console)
    folder = chosen.to or chosen.out / "rubric" / store.folder_name(work.board.lab)
    _write_pages(work, folder, spoken(console))
    if chosen.marks is None:
        sheet = write_sheet(work.rows, work.parties.roster, work.rubric, {})
        _write(folder / "marks.csv", sheet, console, "\ufeff")
        say(console, f"pages: {folder} ({len(work.rows)})")
        return exit_status.DONE
    assert work.weights
    console.print(render.terminal(list(work.grades.values()), work.weights))
    lacking = sum(grade.total is None for grade in work.grades.values())
    console.print(Text(f"{len(work.grades) - lacking} grades, {lacking} without one"))
    say(console, f"pages: {folder} ({len(work.rows)})")
    _export(work, chosen, console)
    return exit_status.DONE


def _work(chosen: argparse.Namespace, console: Console) -> _Work:
    selected = boards.select(chosen, console)
    board = boards.only(selected.boards)
    parties = selected.parties or Parties({})
    rubric = _rubric(chosen, board, spoken(console))
    rows = sorted(
        (row for row in board.rows if row.kind in ("student", "missing")),
        key=lambda row: row.student,
    )
    weights = chosen.weights or rubric.weights
    if chosen.marks is None:
        return _Work(board, rows, parties, rubric, weights, {}, {})
    if weights is None:
        raise UsageError("what counts how much? say it with --weights measured=60,report=40")
    marked = read_sheet(chosen.marks, rubric, {row.student for row in rows})
    grades = {grade.student: grade for grade in grade_all(rows, marked, rubric, weights)}
    return _Work(board, rows, parties, rubric, weights, marked, grades)


def _rubric(chosen: argparse.Namespace, board: Board, language: Language) -> Rubric:
    """Of --rubric, of the lab, or the questions that the grader itself answers."""
    if chosen.rubric:
        return read_rubric(chosen.rubric)
    lab = _lab(chosen.lab, board.lab)
    if lab.rubric:
        return lab.rubric
    return Rubric(
        questions=tuple(
            Question(id=name, points=_POINTS, text=language(title))
            for name, title in titles(lab.problem.info())
        )
    )


def _lab(named: str | None, lab_id: str) -> Lab:
    if named is not None and Path(named).is_file():
        return load_lab(Path(named))
    shipped = (load_lab(path) for path in shipped_labs().values())
    found = next((lab for lab in shipped if lab.id == lab_id), None)
    if found is None:
        raise UsageError(f"{lab_id}: not a lab of the grader's own; name its file with --lab")
    return found


# --- outputs ----------------------------------------------------------------------------------


def _write_pages(work: _Work, folder: Path, language: Language) -> None:
    roster = work.parties.roster
    for row in work.rows:
        text = render.student_page(
            row,
            work.board,
            roster.get(row.student),
            work.rubric,
            work.marked.get(row.student),
            work.grades.get(row.student),
            work.weights,
            language,
        )
        path = folder / f"{store.folder_name(row.student)}.html"
        store.write(path, text.encode(), mode=_PRIVATE, lasting=False)


def _export(work: _Work, chosen: argparse.Namespace, console: Console) -> None:
    shares = {
        grade.student: grade.total / 100
        for grade in work.grades.values()
        if grade.total is not None
    }
    if chosen.csv:
        text = export.grades_csv(list(work.grades.values()), work.parties, chosen.points)
        boards.write(text, chosen.csv, console)
    if chosen.canvas:
        text = export.canvas(shares, work.parties, chosen.assignment, chosen.points)
        boards.write(text, chosen.canvas, console)
    if chosen.gradescope:
        _write_gradescope(work, chosen, console)


def _write_gradescope(work: _Work, chosen: argparse.Namespace, console: Console) -> None:
    assert work.weights
    documents = {
        (each.entry.submission.sha256, each.entry.created): each.path
        for each in read_index(chosen.out).documents
        if (each.entry.lab.id, each.entry.environment.device) == (work.board.lab, work.board.device)
    }
    written = 0
    for row in work.rows:
        grade, marks = work.grades[row.student], work.marked.get(row.student)
        if grade.total is None or marks is None or row.sha256 is None or row.created is None:
            continue
        text = marked_gradescope(
            store.load(documents[(row.sha256, row.created)]),
            grade,
            marks,
            work.rubric,
            work.weights,
            chosen.points,
            Shown(),
            spoken(console),
        )
        name = f"{store.folder_name(row.student)}.json"
        store.write(chosen.gradescope / name, text.encode(), mode=_PRIVATE, lasting=False)
        written += 1
    say(console, f"written: {one_line(chosen.gradescope)} ({written} files)")


def _write(path: Path, text: str, console: Console, mark: str) -> None:
    """mark: the byte order mark by which spreadsheets know UTF-8. Never replaces a sheet: somebody
    may have filled it in."""
    if path.exists():
        raise UsageError(
            f"{one_line(path)} is there already, perhaps with marks; read it with --marks, move "
            "it, or name another folder with --to"
        )
    store.write(path, (mark + text).encode(), mode=_PRIVATE)
    say(console, f"sheet: {path}")


def _weights(text: str) -> Weights:
    try:
        return read_weights(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
