"""``grade export``: results for Gradescope, Canvas, spreadsheets and scripts."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rich.console import Console

from grader.base import UsageError
from grader.cli import boards
from grader.cli.console import DONE, skipped, spoken, write
from grader.cli.formats import RENDERERS, in_workspace
from grader.cli.options import Command, OptionGroup, argument, option
from grader.cli.shared_options import stored_document
from grader.course import GRADEBOOK_NEEDED, assignment_column
from grader.course import board_rendering as render
from grader.report import Shown, Visibility, gradescope
from grader.results import store
from ptxsim.text import phrase

TO: Path = option("default: stdout", "FILE", Path("-"))


class ExportOptions(OptionGroup):
    """Export results to other systems; FILE - is stdout."""


# --- of one result document --------------------------------------------------------------------


class OneResult(OptionGroup):
    result: Path = argument("a stored result document", "RESULT", type=stored_document)
    folder: Path = option("of its sources (default: .)", "DIR", Path())


class ResultOptions(OneResult):
    to: Path = TO


class GradescopeOptions(OneResult):
    visibility: Visibility = option("when students see it (default: {default})", default="visible")
    hidden_visibility: Visibility = option(
        "when students see the hidden sizes (default: {default})", default="hidden"
    )
    stdout_visibility: Visibility = option(
        "when students see what the autograder printed (default: {default})", default="hidden"
    )
    to: Path = TO

    @property
    def shown(self) -> Shown:
        return Shown(
            visibility=self.visibility, hidden=self.hidden_visibility, stdout=self.stdout_visibility
        )


def _one(name: str, chosen: ResultOptions | GradescopeOptions, console: Console) -> int:
    """Raises UsageError for what has no grade."""
    result, language = store.load(chosen.result), spoken(console)
    if isinstance(chosen, GradescopeOptions):
        text = gradescope(result, chosen.shown, language)
    else:
        text = RENDERERS[name](result, in_workspace(chosen.folder), language)
    if not text:
        none = phrase("verdict IE is the grader's own fault and no grade; grade again")
        if result.by_model and result.by_model.ungraded:
            none = phrase("not gradable for speed: {why}", why=result.by_model.ungraded)
        raise UsageError(none)
    write(text, chosen.to, console)
    return DONE


# --- of boards ---------------------------------------------------------------------------------


class CanvasOptions(OptionGroup):
    assignment: str = option(
        "a column of the exported gradebook, e.g. 'SGEMM (12345)'; its number may be left out",
        "TITLE",
    )
    points: float = option("points possible (default: 100)", default=100.0)
    selection: boards.Selection
    to: Path = TO


class BoardOptions(OptionGroup):
    selection: boards.Selection
    to: Path = TO


def _canvas(chosen: CanvasOptions, console: Console) -> int:
    found, parties = boards.select(chosen.selection, console)
    if parties is None:
        raise UsageError.saying("canvas: {needed}", needed=GRADEBOOK_NEEDED)
    column = assignment_column(chosen.selection.roster, chosen.assignment)
    shares = render.board_shares(boards.only(found))
    text, left_out = render.canvas(shares, parties, column, chosen.points)
    skipped(left_out, console)
    write(text, chosen.to, console)
    return DONE


def _csv(chosen: BoardOptions, console: Console) -> int:
    selected = boards.select(chosen.selection, console)
    text = render.table_csv(selected.boards, selected.roster)
    write(text, chosen.to, console, sheet=True)
    return DONE


def _json(chosen: BoardOptions, console: Console) -> int:
    write(render.board_json(boards.select(chosen.selection, console).boards), chosen.to, console)
    return DONE


def _of_result(name: str) -> Command:
    options = GradescopeOptions if name == "gradescope" else ResultOptions
    return Command(options, partial(_one, name), "of one result document")


COMMAND = Command(
    ExportOptions,
    metavar="FORMAT",
    commands={
        **{name: _of_result(name) for name in RENDERERS if name != "json"},
        "canvas": Command(CanvasOptions, _canvas, "gradebook CSV to import into Canvas"),
        "csv": Command(BoardOptions, _csv, "one row for each student and board"),
        "json": Command(BoardOptions, _json, "the same, with all fields of a board"),
    },
)
