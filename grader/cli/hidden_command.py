"""``grade hidden``: the hidden sizes of a lab, for who has its secret; and a new secret."""

from __future__ import annotations

import argparse
import os
import secrets
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from grader.cli import exit_status, options
from grader.cli.notices import say
from grader.cli.parser import Parser
from grader.errors import StoreError, UsageError
from grader.labs.groups import KINDS
from grader.labs.lab import Hidden, Lab, find_lab, load_lab
from grader.model import phrase

_SEED_BYTES = 32


def add_options(parser: Parser) -> None:
    parser.description = (
        "List the hidden sizes that a lab's seed file draws: for the instructor. Students have no "
        "such file."
    )
    options.lab(parser)
    parser.add_argument(
        "--new-seed", metavar="FILE", type=Path, help="write a new secret, and list nothing"
    )


def run(chosen: argparse.Namespace, console: Console) -> int:
    if chosen.new_seed:
        _write_seed(chosen.new_seed)
        say(console, f"seed: {chosen.new_seed}")
        return exit_status.DONE
    lab = load_lab(find_lab(chosen.lab))
    hidden = known_hidden(lab)
    if hidden is None:
        raise UsageError(
            phrase(
                "the lab {lab} has no hidden sizes; its field groups would name some", lab=lab.id
            )
        )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in ("size", "for", "weight"):
        table.add_column(column, no_wrap=True)
    for kind in KINDS:
        for case in getattr(hidden, kind):
            weight = f"{case.weight:g}" if kind == "performance" else ""
            table.add_row(str(case.size), kind, weight)
    console.print(table)
    return exit_status.DONE


def known_hidden(lab: Lab) -> Hidden | None:
    """The lab's hidden sizes, if it has some. Raises UsageError where their seed is missing."""
    hidden = lab.hidden
    if hidden is not None and not hidden.known:
        raise UsageError(
            phrase(
                "{file}: no seed file that can be read here, so nobody knows the hidden sizes of "
                "the lab {lab}; put it there, or leave groups out of the lab file",
                file=str(hidden.seed_file),
                lab=lab.id,
            )
        )
    return hidden


def _write_seed(path: Path) -> None:
    """Never over another: its sizes would be lost."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise StoreError(
            phrase("{path}: cannot be made: {why}", path=str(path), why=str(error.strerror))
        ) from None
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{secrets.token_hex(_SEED_BYTES)}\n")
