"""``grade labs``: the labs that ship with the grader."""

from __future__ import annotations

import argparse

from rich import box
from rich.console import Console
from rich.table import Table

from grader.cli import exit_status
from grader.cli.parser import Parser
from grader.labs.lab import DEFAULT_LAB, load_lab, shipped_labs
from grader.model import phrase


def add_options(parser: Parser) -> None:
    parser.describe(
        phrase("List the labs that ship with the grader. --lab takes their names as well as files.")
    )


def run(_chosen: argparse.Namespace, console: Console) -> int:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("lab", no_wrap=True)
    table.add_column("task")
    table.add_column("hand in", no_wrap=True)
    table.add_column("speed in", no_wrap=True)
    labs = shipped_labs()
    for name in sorted(labs, key=lambda name: labs[name] != DEFAULT_LAB):  # the default one first
        problem = load_lab(labs[name]).problem
        default = " (default)" if labs[name] == DEFAULT_LAB else ""
        beside = f"{problem.unit.name}, beside {problem.baseline}"
        table.add_row(name + default, problem.title, problem.interface.main, beside)
    console.print(table)
    return exit_status.DONE
