"""``grade export``: results for Gradescope, Canvas, spreadsheets and scripts."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from grader.cli import boards
from grader.course import export
from grader.course.leaderboard import board_render as render
from grader.errors import UsageError
from grader.results import store


def run(arguments: list[str], console: Console) -> int:
    parser = argparse.ArgumentParser(
        prog="grade export", description="Results for other systems; - as FILE is stdout."
    )
    formats = parser.add_subparsers(dest="format", metavar="FORMAT", required=True)
    scope = formats.add_parser("gradescope", help="results.json for one result document")
    scope.add_argument("result", metavar="RESULT", type=Path, help="a stored result document")
    scope.add_argument(
        "--visibility",
        choices=("hidden", "after_due_date", "after_published", "visible"),
        default="visible",
        help="who sees it when (default: visible)",
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
    document = formats.add_parser("json", help="the same, with everything a board knows")
    for one in (canvas, table, document):
        boards.add_selection(one)
    for one in (scope, canvas, table, document):
        one.add_argument(
            "--to", metavar="FILE", type=Path, default=Path("-"), help="default: stdout"
        )
    options = parser.parse_args(arguments)
    boards.write(_FORMATS[options.format](options, console), options.to, console)
    return 0


def _gradescope(options: argparse.Namespace, console: Console) -> str:
    return export.gradescope(store.load(options.result), options.visibility)


def _canvas(options: argparse.Namespace, console: Console) -> str:
    found, roster = boards.select(options, console)
    if roster is None:
        raise UsageError("canvas: give the gradebook exported from Canvas with --roster")
    return export.canvas(boards.only(found), roster, options.assignment, options.points)


def _csv(options: argparse.Namespace, console: Console) -> str:
    return render.table_csv(*boards.select(options, console))


def _json(options: argparse.Namespace, console: Console) -> str:
    return export.board_json(boards.select(options, console)[0])


_FORMATS: dict[str, Callable[[argparse.Namespace, Console], str]] = {
    "gradescope": _gradescope,
    "canvas": _canvas,
    "csv": _csv,
    "json": _json,
}
