"""``grade hidden``: the hidden sizes of a lab, for who has its secret; and a new secret."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from rich.console import Console

from grader.base import UsageError
from grader.cli.chosen_lab import LAB, LabName, chosen_lab, known_hidden
from grader.cli.console import DONE, answer, spoken
from grader.cli.options import OptionGroup, option
from grader.labs import KINDS
from grader.report import table
from grader.results import StoreError
from ptxsim.text import phrase

_SEED_BYTES = 32


class HiddenOptions(OptionGroup):
    """List the hidden sizes that a lab's seed file draws: for the instructor. Students have no such
    file."""

    lab: LabName = LAB
    new_seed: Path | None = option("write a new secret, and list nothing", "FILE")


def run(chosen: HiddenOptions, console: Console) -> int:
    if chosen.new_seed:
        _write_seed(chosen.new_seed)
        answer(console, phrase("seed: {file}", file=str(chosen.new_seed)))
        return DONE
    lab = chosen_lab(chosen.lab)
    hidden = known_hidden(lab)
    if hidden is None:
        none = phrase("the lab {lab} has no hidden sizes; its field groups would name some")
        raise UsageError(none.given(lab=lab.id))
    rows = [
        (str(case.size), kind, f"{case.weight:g}" if kind == "performance" else "")
        for kind in KINDS
        for case in getattr(hidden, kind)
    ]
    header = [spoken(console)(each) for each in (phrase("size"), phrase("for"), phrase("weight"))]
    console.print(table(header, rows, words=range(3)))
    return DONE


def _write_seed(path: Path) -> None:
    """Never over another: its sizes would be lost."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        failed = phrase("{path}: cannot be made: {why}", path=str(path))
        raise StoreError(failed.given(why=str(error.strerror))) from None
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{secrets.token_hex(_SEED_BYTES)}\n")
