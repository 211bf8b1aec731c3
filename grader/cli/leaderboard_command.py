"""``grade leaderboard``: rank the stored results."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.text import Text

from grader.cli import boards
from grader.course.leaderboard import board_render as render
from grader.course.leaderboard.pseudonyms import load_key, pseudonym
from grader.errors import one_line


def run(arguments: list[str], console: Console) -> int:
    parser = argparse.ArgumentParser(
        prog="grade leaderboard",
        description="Rank the stored results; one board for each lab and GPU model.",
    )
    boards.add_selection(parser)
    add = parser.add_argument
    add("--html", metavar="FILE", type=Path, help="write a page; - is stdout")
    add("--csv", metavar="FILE", type=Path, help="write a table; - is stdout")
    add(
        "--pseudonyms",
        action="store_true",
        help="for students: stable made-up names, by a key kept beside the results",
    )
    options = parser.parse_args(arguments)
    found, roster = boards.select(options, console)
    if options.pseudonyms:
        key = load_key(options.out)
        found = render.for_students(found, lambda student: pseudonym(key, student))
        roster = None
    if options.html:
        boards.write(render.html(found, roster), options.html, console)
    if options.csv:
        boards.write(render.table_csv(found, roster), options.csv, console)
    if not options.html and not options.csv:
        nothing = Text(f"no results in {one_line(options.out)}")
        console.print(render.terminal(found, roster) if found else nothing)
    return 0
