"""``grade hidden``: the hidden sizes of a lab, for who has its secret; and a new secret."""

from __future__ import annotations

import argparse
import os
import secrets
from pathlib import Path

from rich.console import Console

from grader.base import UsageError
from grader.cli.console import DONE, answer
from grader.cli.defaults import chosen_lab
from grader.labs import KINDS, Hidden, Lab
from grader.report import table
from grader.results import StoreError
from ptxsim.text import phrase

_SEED_BYTES = 32


def run(chosen: argparse.Namespace, console: Console) -> int:
    if chosen.new_seed:
        _write_seed(chosen.new_seed)
        answer(console, f"seed: {chosen.new_seed}")
        return DONE
    lab = chosen_lab(chosen)
    hidden = known_hidden(lab)
    if hidden is None:
        none = phrase("the lab {lab} has no hidden sizes; its field groups would name some")
        raise UsageError(none.given(lab=lab.id))
    rows = [
        (str(case.size), kind, f"{case.weight:g}" if kind == "performance" else "")
        for kind in KINDS
        for case in getattr(hidden, kind)
    ]
    console.print(table(("size", "for", "weight"), rows, words=range(3), whole=range(3)))
    return DONE


def known_hidden(lab: Lab) -> Hidden | None:
    """The lab's hidden sizes, if it has some. Raises UsageError where their seed is missing."""
    hidden = lab.hidden
    if hidden is not None and not hidden.known:
        missing = phrase(
            "{file}: no seed file that can be read here, so nobody knows the hidden sizes of the "
            "lab {lab}; put it there, or leave groups out of the lab file"
        )
        raise UsageError(missing.given(file=str(hidden.seed_file), lab=lab.id))
    return hidden


def _write_seed(path: Path) -> None:
    """Never over another: its sizes would be lost."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        failed = phrase("{path}: cannot be made: {why}", path=str(path))
        raise StoreError(failed.given(why=str(error.strerror))) from None
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{secrets.token_hex(_SEED_BYTES)}\n")
