"""``grade export``: results for Gradescope, Canvas, spreadsheets and scripts."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from grader.cli import boards, exit_status, options
from grader.course import export
from grader.course.leaderboard import board_render as render
from grader.errors import UsageError
from grader.results import store


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = "Export results to other systems; FILE - is stdout."
    formats = parser.add_subparsers(dest="format", metavar="FORMAT", required=True)
    scope = formats.add_parser("gradescope", help="results.json for one result document")
    scope.add_argument("result", metavar="RESULT", type=Path, help="a stored result document")
    scope.add_argument(
        "--visibility",
        choices=("hidden", "after_due_date", "after_published", "visible"),
        default="visible",
        help="when students see it (default: visible)",
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
    for one in (scope, canvas, table, document):
        one.add_argument(
            "--to", metavar="FILE", type=Path, default=Path("-"), help="default: stdout"
        )


def run(chosen: argparse.Namespace, console: Console) -> int:
    boards.write(_FORMATS[chosen.format](chosen, console), chosen.to, console)
    return exit_status.DONE


def _gradescope(chosen: argparse.Namespace, console: Console) -> str:
    return export.gradescope(store.load(chosen.result), chosen.visibility)


def _canvas(chosen: argparse.Namespace, console: Console) -> str:
    found, roster = boards.select(chosen, console)
    if roster is None:
        raise UsageError("canvas: give the gradebook exported from Canvas with --roster")
    return export.canvas(boards.only(found), roster, chosen.assignment, chosen.points)


def _csv(chosen: argparse.Namespace, console: Console) -> str:
    return render.table_csv(*boards.select(chosen, console))


def _json(chosen: argparse.Namespace, console: Console) -> str:
    return export.board_json(boards.select(chosen, console)[0])


_FORMATS: dict[str, Callable[[argparse.Namespace, Console], str]] = {
    "gradescope": _gradescope,
    "canvas": _canvas,
    "csv": _csv,
    "json": _json,
}
