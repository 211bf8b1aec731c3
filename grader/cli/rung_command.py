"""``grade rung NAME``: a kernel of the reference ladder, whose first lines explain it."""

from __future__ import annotations

import argparse

from rich.console import Console

from grader.base import translated
from grader.cli.console import DONE, spoken, to_stdout
from grader.results import find_rung


def run(chosen: argparse.Namespace, console: Console) -> int:
    for file in find_rung(chosen.rung):
        text = file.read_text(encoding="utf-8", errors="replace")
        to_stdout(translated(text, spoken(console)))
    return DONE
