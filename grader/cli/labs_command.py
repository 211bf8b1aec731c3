"""``grade labs``: the labs that ship with the grader."""

from __future__ import annotations

import argparse

from rich import box
from rich.console import Console
from rich.table import Table

from grader.cli.console import DONE, spoken
from grader.cli.options import Parser
from grader.labs import DEFAULT_LAB, load_lab, shipped_labs
from ptxsim.message import Message, phrase, verbatim


def add_options(parser: Parser) -> None:
    parser.describe(
        phrase("List the labs that ship with the grader. --lab takes their names as well as files.")
    )


def run(_chosen: argparse.Namespace, console: Console) -> int:
    language = spoken(console)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(language(phrase("lab")), no_wrap=True)
    table.add_column(language(phrase("task")))
    table.add_column(language(phrase("hand in")), no_wrap=True)
    table.add_column(language(phrase("speed in")), no_wrap=True)
    labs = shipped_labs()
    for name in sorted(labs, key=lambda name: labs[name] != DEFAULT_LAB):  # the default one first
        problem = load_lab(labs[name]).problem
        default = phrase("{lab} (default)", lab=name)
        shown = default if labs[name] == DEFAULT_LAB else verbatim(name)
        title = problem.title if isinstance(problem.title, Message) else verbatim(problem.title)
        beside = phrase(
            "{unit}, beside {baseline}", unit=problem.unit.name, baseline=problem.baseline
        )
        table.add_row(*(language(shown), language(title), problem.interface.main, language(beside)))
    console.print(table)
    return DONE
