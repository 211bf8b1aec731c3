"""``grade course``: what an instructor does with a whole class's results."""

from __future__ import annotations

import argparse

from rich.console import Console

from grader.cli import course_regrade, course_rubric
from grader.cli.parser import Parser


def add_options(parser: Parser) -> None:
    parser.description = "For the instructor: the lab reports' marks, and what a regrade changed."
    commands = parser.add_subparsers(dest="course", metavar="COMMAND", required=True)
    for name, module, words in (
        ("rubric", course_rubric, "a sheet for marks and a page per student; grades of both"),
        ("regrade", course_regrade, "whose points a change of the lab changed, and why"),
    ):
        each = commands.add_parser(name, help=words, language=parser.language)
        module.add_options(each)
        each.set_defaults(act=module.run)


def run(chosen: argparse.Namespace, console: Console) -> int:
    status: int = chosen.act(chosen, console)
    return status
