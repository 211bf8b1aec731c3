"""``grade course``: the lab reports' marks, and whose points a change of the lab changed.

``rubric``: measured points and a human's marks, in a sheet, in pages, in grades.
``regrade``: whose points a change of the lab file changed, and why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console

from grader import course, labs
from grader.base import Language, UsageError, one_line
from grader.cli import boards
from grader.cli.console import DONE, answer, beside, say, skipped, spoken, warn, write
from grader.cli.options import Command, OptionGroup, option
from grader.course import rubric as marking
from grader.report import titles
from grader.results import ResultEntry, entry_or_complaint, read_entries, read_index, store
from ptxsim.text import Message, phrase

_PRIVATE = 0o600  # names and marks: only the instructor may read them
_POINTS = 10.0  # of each question, where no rubric says more


class CourseOptions(OptionGroup):
    """For the instructor: the lab reports' marks, and what a regrade changed."""


# --- rubric ------------------------------------------------------------------------------------


class RubricOptions(OptionGroup):
    """Write a sheet (CSV) with the measured points and room for a human's, and a page per student.
    With --marks, read the sheet back and combine both into grades."""

    selection: boards.Selection
    rubric: Path | None = option("questions and weights, instead of the lab's", "FILE")
    weights: labs.Weights | None = option(
        "such as measured=60,report=40", "W", type=labs.read_weights
    )
    to: Path | None = option("where sheet and pages go (default: OUT/rubric/LAB)", "DIR")
    marks: Path | None = option("the sheet with a human's points and comments", "FILE")
    csv: Path | None = option("with --marks: the grades; - is stdout", "FILE")
    canvas: Path | None = option("with --marks: a gradebook for Canvas", "FILE")
    assignment: str | None = option("with --canvas: the column's title in the gradebook", "TITLE")
    gradescope: Path | None = option("with --marks: a results.json per student", "DIR")
    points: float = option("points possible (default: 100)", "N", 100.0)


class _Work(NamedTuple):
    """Data from which all outputs are written."""

    board: course.Board
    rows: Sequence[course.Row]  # of students, those without a result too
    parties: course.Parties
    rubric: labs.Rubric
    grades: Mapping[str, marking.RubricGrade]  # {} without marks


def _run_rubric(chosen: RubricOptions, console: Console) -> int:
    exports = [chosen.csv, chosen.canvas, chosen.gradescope]
    if chosen.marks is None and any(exports):
        needed = phrase("--csv, --canvas and --gradescope need --marks, the sheet filled in")
        raise UsageError(needed)
    column = ""
    if chosen.canvas:
        if not (chosen.assignment and chosen.selection.roster):
            needed = phrase("--canvas needs --roster, Canvas's gradebook, and --assignment")
            raise UsageError(needed)
        column = course.assignment_column(chosen.selection.roster, chosen.assignment)
    if not 0 < chosen.points < 1e6:
        no = phrase("--points: expected a number > 0, got {points:g}", points=chosen.points)
        raise UsageError(no)
    console = beside(console, chosen.csv)
    work = _work(chosen, console)
    folder = chosen.to or chosen.selection.out / "rubric" / store.folder_name(work.board.lab)
    _write_pages(work, folder, spoken(console))
    pages = phrase("pages: {folder} ({number})", folder=str(folder), number=len(work.rows))
    if chosen.marks is None:
        _write_sheet(folder / "marks.csv", work, console)
        answer(console, pages)
        return DONE
    assert work.rubric.weights
    grades = list(work.grades.values())
    console.print(marking.terminal(grades, work.rubric.weights, spoken(console)))
    lacking = sum(grade.total is None for grade in grades)
    done = len(grades) - lacking
    answer(console, phrase("graded: {done}, not graded: {lacking}", done=done, lacking=lacking))
    answer(console, pages)
    _export(work, chosen, column, console)
    return DONE


def _work(chosen: RubricOptions, console: Console) -> _Work:
    selected = boards.select(chosen.selection, console)
    board = boards.only(selected.boards)
    parties = selected.parties or course.Parties({})
    rubric = _rubric(chosen, board, console)
    weights = chosen.weights or rubric.weights
    rubric = msgspec.structs.replace(rubric, weights=weights)
    rows = [row for row in board.rows if row.kind in ("student", "missing")]
    rows.sort(key=lambda row: row.student)
    if chosen.marks is None:
        return _Work(board, rows, parties, rubric, {})
    if weights is None:
        none = phrase("no weights: give them with --weights measured=60,report=40")
        raise UsageError(none)
    marked = marking.read_sheet(chosen.marks, rubric, {row.student for row in rows})
    grades = {
        row.student: marking.grade_rubric(row, marked.get(row.student), rubric) for row in rows
    }
    return _Work(board, rows, parties, rubric, grades)


def _rubric(chosen: RubricOptions, board: course.Board, console: Console) -> labs.Rubric:
    """The rubric of --rubric or of the lab, else the questions that the grader answers itself."""
    if chosen.rubric:
        return labs.read_rubric(chosen.rubric)
    lab = _lab(chosen.selection.lab, board.lab)
    if lab and lab.rubric:
        return lab.rubric
    if lab is None:
        unknown = phrase(
            "{lab}: not a lab of the grader's own, so these are the grader's own questions; if its "
            "file has a rubric, name it with --lab",
            lab=one_line(board.lab),
        )
        say(console, unknown)
    questions = (
        labs.RubricQuestion(id=name, points=_POINTS, text=spoken(console)(title))
        for name, title in titles(board.problem)
    )
    return labs.Rubric(questions=tuple(questions))


def _lab(named: str | None, lab_id: str) -> labs.Lab | None:
    if named is not None and Path(named).is_file():
        return labs.load_lab(Path(named))
    shipped = (labs.load_lab(path) for path in labs.shipped_labs().values())
    return next((lab for lab in shipped if lab.id == lab_id), None)


def _write_pages(work: _Work, folder: Path, language: Language) -> None:
    roster = work.parties.roster
    for row in work.rows:
        person, grade = roster.get(row.student), work.grades.get(row.student)
        text = marking.student_page(row, work.board, person, work.rubric, grade, language)
        path = folder / f"{store.folder_name(row.student)}.html"
        store.write(path, text.encode(), mode=_PRIVATE, lasting=False)


def _write_sheet(path: Path, work: _Work, console: Console) -> None:
    """Never replaces a sheet: somebody may have filled it in."""
    if path.exists():
        raise UsageError.saying(
            "{path} is there already, perhaps with marks; read it with --marks, move it, or name "
            "another folder with --to",
            path=one_line(path),
        )
    sheet = marking.write_sheet(work.rows, work.parties.roster, work.rubric)
    store.write(path, sheet.encode("utf-8-sig"), mode=_PRIVATE)
    answer(console, phrase("sheet: {path}", path=str(path)))


def _export(work: _Work, chosen: RubricOptions, column: str, console: Console) -> None:
    grades = work.grades.values()
    if chosen.csv:
        text = marking.grades_csv(list(grades), work.parties, chosen.points)
        write(text, chosen.csv, console, sheet=True)
    if chosen.canvas:
        shares = {each.student: each.total / 100 for each in grades if each.total is not None}
        render = course.board_rendering.canvas
        text, left_out = render(shares, work.parties, column, chosen.points)
        skipped(left_out, console)
        write(text, chosen.canvas, console)
    if chosen.gradescope:
        _write_gradescope(work, chosen, chosen.gradescope, console)


def _write_gradescope(work: _Work, chosen: RubricOptions, to: Path, console: Console) -> None:
    documents = {
        (each.entry.submission.sha256, each.entry.created): each.path
        for each in read_index(chosen.selection.out).documents
        if (each.entry.lab.id, each.entry.environment.device) == (work.board.lab, work.board.device)
    }
    written = 0
    for row in work.rows:
        grade = work.grades[row.student]
        if grade.total is None or grade.marks is None or row.sha256 is None or row.created is None:
            continue
        result = store.load(documents[(row.sha256, row.created)])
        text = marking.marked_gradescope(result, grade, work.rubric, chosen.points, spoken(console))
        name = f"{store.folder_name(row.student)}.json"
        store.write(to / name, text.encode(), mode=_PRIVATE, lasting=False)
        written += 1
    place, many = one_line(to), phrase("written: {place} ({written} files)", written=written)
    say(console, many.given(place=place))


# --- regrade -----------------------------------------------------------------------------------


class RegradeOptions(OptionGroup):
    """List whose points differ between two versions of a lab file, and why. Grading again with a
    changed lab file keeps the results that it replaces."""

    selection: boards.Selection
    before: str | None = option(
        "a lab file, or how its hash begins (default: the one before --after)", "LAB"
    )
    after: str | None = option(
        "a lab file, or how its hash begins (default: that of the newest result)", "LAB"
    )
    csv: Path | None = option("write a table; - is stdout", "FILE")


def _run_regrade(chosen: RegradeOptions, console: Console) -> int:
    _, lab, rules = boards.lab_and_rules(chosen.selection)
    entries = _entries(chosen, lab, console)
    tables = chosen.selection.roster
    parties = course.Parties(course.read_roster(*tables)) if tables else None
    if parties:
        entries, doubled = parties.merged(entries)
        skipped(doubled, console)
    known = course.regrade.versions(entries)
    after = _side(chosen.after, known, rules, chosen)
    rest = {sha: found for sha, found in known.items() if sha != after.sha256}
    before = _side(chosen.before, rest if chosen.before is None else known, rules, chosen)
    found = course.regrade.compare(before, after, parties.roster if parties else None)
    warn(found.caution, console)
    console = beside(console, chosen.csv)
    if chosen.csv:
        write(course.regrade.table_csv(found), chosen.csv, console, sheet=True)
    words = phrase("lab file {version}: {number} graded, the last {newest}")
    for side in (before, after):
        version, number = side.sha256[:12], len(side.entries)
        answer(console, words.given(version=version, number=number, newest=side.newest))
    if found.changes:
        console.print(course.regrade.terminal(found, spoken(console)))
    changed = len(found.changes)
    answer(console, phrase("{changed} changed, {same} did not", changed=changed, same=found.same))
    return DONE


def _entries(chosen: RegradeOptions, lab: str | None, console: Console) -> list[ResultEntry]:
    """All of one lab, also those that a regrade replaced. Raises UsageError for several labs."""
    current, complaints = read_entries(chosen.selection.out)
    ids = sorted({entry.lab.id for entry in current if lab in (None, entry.lab.id)})
    if len(ids) != 1:
        several = phrase("several labs ({labs}); choose one: --lab", labs=", ".join(ids))
        what = several if ids else phrase("no such results")
        out = one_line(chosen.selection.out)
        raise UsageError(phrase("{place}: {what}", place=out, what=what))
    found = [entry for entry in current if entry.lab.id == ids[0]]
    for replaced in map(entry_or_complaint, store.former(chosen.selection.out, ids[0])):
        if isinstance(replaced, Message):
            complaints.append(replaced)
        else:
            found.append(replaced)
    skipped(complaints, console)
    return [
        each for each in found if chosen.selection.only.wants(each.environment.device, each.gpu)
    ]


def _side(
    named: str | None,
    known: Mapping[str, Sequence[ResultEntry]],
    rules: labs.TimeRules | None,
    chosen: RegradeOptions,
) -> course.regrade.LabVersion:
    """One version of the lab file; a file that is named brings its own rules of time."""
    if not known:
        only = phrase("only one version of the lab file has results: there is nothing to compare")
        raise UsageError(only)
    sha256 = list(known)[-1]
    if named is not None and Path(named).is_file():
        lab = labs.load_lab(Path(named))
        sha256, rules = lab.sha256, chosen.selection.due or lab.time
    elif named is not None:
        matching = [sha for sha in known if sha.startswith(named.lower())]
        sha256 = matching[0] if len(matching) == 1 else ""
    if sha256 not in known:
        have = ", ".join(sha[:12] for sha in known)
        none = phrase("{lab}: no results by this lab file; there are some by {have}")
        raise UsageError(none.given(lab=str(named), have=have))
    choice = chosen.selection.choose or (rules.attempts if rules else "best")
    return course.regrade.LabVersion(
        sha256=sha256, entries=tuple(known[sha256]), rules=rules, choice=choice
    )


_RUBRIC = "a sheet for marks and a page per student; grades of both"
_REGRADE = "whose points a change of the lab changed, and why"
COMMAND = Command(
    CourseOptions,
    metavar="COMMAND",
    commands={
        "rubric": Command(RubricOptions, _run_rubric, _RUBRIC),
        "regrade": Command(RegradeOptions, _run_regrade, _REGRADE),
    },
)
