"""``grade leaderboard``: rank the stored results."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.text import Text

from grader.cli import boards, exit_status, options
from grader.cli.parser import Parser
from grader.cli.speaking import spoken
from grader.course.leaderboard import board_render as render
from grader.course.leaderboard.pseudonyms import load_pseudonym_key, pseudonym
from grader.errors import one_line
from grader.model import phrase


def add_options(parser: Parser) -> None:
    parser.description = "Rank the stored results, on one board for each lab and GPU model."
    options.selection(parser)
    add = parser.add_argument
    add("--html", metavar="FILE", type=Path, help="write a page; - is stdout")
    add("--csv", metavar="FILE", type=Path, help="write a table; - is stdout")
    add(
        "--pseudonyms",
        action="store_true",
        help="for students: stable made-up names, from a key stored with the results",
    )


def run(chosen: argparse.Namespace, console: Console) -> int:
    selected = boards.select(chosen, console)
    found, roster = selected.boards, selected.roster
    if chosen.pseudonyms:
        key = load_pseudonym_key(chosen.out)
        found = render.for_students(found, lambda student: pseudonym(key, student))
        roster = None
    if chosen.html:
        boards.write(render.html(found, roster, spoken(console)), chosen.html, console)
    if chosen.csv:
        boards.write(render.table_csv(found, roster), chosen.csv, console)
    if not chosen.html and not chosen.csv:
        language = spoken(console)
        nothing = Text(language(phrase("no results in {folder}", folder=one_line(chosen.out))))
        console.print(render.terminal(found, roster, language) if found else nothing)
    return exit_status.DONE
