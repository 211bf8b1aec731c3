"""``grade export``: results for Gradescope, Canvas, spreadsheets and scripts."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from rich.console import Console

from grader.cli import boards, exit_status, options
from grader.cli.formats import RENDERERS, in_workspace
from grader.cli.parser import Parser
from grader.cli.speaking import spoken
from grader.course import export
from grader.course.leaderboard import board_render as render
from grader.errors import UsageError
from grader.report.formats.gradescope import Shown, Visibility, gradescope
from grader.results import store


def add_options(parser: Parser) -> None:
    parser.description = "Export results to other systems; FILE - is stdout."
    formats = parser.add_subparsers(dest="format", metavar="FORMAT", required=True)
    scope = formats.add_parser("gradescope", help="results.json for one result document")
    _result(scope)
    for option, default, what in (
        ("--visibility", "visible", "it"),
        ("--hidden-visibility", "hidden", "the hidden sizes"),
        ("--stdout-visibility", "hidden", "what the autograder printed"),
    ):
        scope.add_argument(
            option,
            choices=get_args(Visibility),
            default=default,
            help=f"when students see {what} (default: {default})",
        )
    learn = formats.add_parser("prairielearn", help="results.json for one result document")
    judge = formats.add_parser("csoj", help="the line of JSON that CSOJ reads, of one result")
    problems = formats.add_parser("sarif", help="SARIF of one result, for editors")
    for one in (learn, judge, problems):
        _result(one)
    problems.add_argument(
        "--folder", metavar="DIR", type=Path, default=Path(), help="of the sources (default: .)"
    )
    canvas = formats.add_parser("canvas", help="gradebook CSV to import into Canvas")
    canvas.add_argument(
        "--assignment",
        metavar="TITLE",
        required=True,
        help="the column's title in the exported gradebook, e.g. 'SGEMM (12345)'",
    )
    canvas.add_argument("--points", type=float, default=100, help="points possible (default: 100)")
    table = formats.add_parser("csv", help="one row for each student and board")
    document = formats.add_parser("json", help="the same, with all fields of a board")
    for one in (canvas, table, document):
        options.selection(one)
    for one in (scope, learn, judge, problems, canvas, table, document):
        one.add_argument(
            "--to", metavar="FILE", type=Path, default=Path("-"), help="default: stdout"
        )


def run(chosen: argparse.Namespace, console: Console) -> int:
    boards.write(_FORMATS[chosen.format](chosen, console), chosen.to, console)
    return exit_status.DONE


def _result(parser: Parser) -> None:
    parser.add_argument("result", metavar="RESULT", type=Path, help="a stored result document")


def _gradescope(chosen: argparse.Namespace, console: Console) -> str:
    shown = Shown(
        visibility=chosen.visibility,
        hidden=chosen.hidden_visibility,
        stdout=chosen.stdout_visibility,
    )
    return _graded(gradescope(store.load(chosen.result), shown, spoken(console)))


def _one(chosen: argparse.Namespace, console: Console) -> str:
    folder = getattr(chosen, "folder", Path())
    result, render = store.load(chosen.result), RENDERERS[chosen.format]
    return _graded(render(result, in_workspace(folder), spoken(console)))


def _graded(text: str) -> str:
    """Raises UsageError for what has no grade."""
    if not text:
        raise UsageError("verdict IE is the grader's own fault and no grade; grade again")
    return text


def _canvas(chosen: argparse.Namespace, console: Console) -> str:
    found, parties = boards.select(chosen, console)
    if parties is None:
        raise UsageError("canvas: give the gradebook exported from Canvas with --roster")
    shares = export.board_shares(boards.only(found))
    return export.canvas(shares, parties, chosen.assignment, chosen.points)


def _csv(chosen: argparse.Namespace, console: Console) -> str:
    selected = boards.select(chosen, console)
    return render.table_csv(selected.boards, selected.roster)


def _json(chosen: argparse.Namespace, console: Console) -> str:
    return export.board_json(boards.select(chosen, console).boards)


_FORMATS: dict[str, Callable[[argparse.Namespace, Console], str]] = {
    "gradescope": _gradescope,
    "prairielearn": _one,
    "csoj": _one,
    "sarif": _one,
    "canvas": _canvas,
    "csv": _csv,
    "json": _json,
}
