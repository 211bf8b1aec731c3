"""``grade new NAME --lab LAB``: a folder for a student to begin with."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.text import Text

from grader.cli import exit_status, options
from grader.cli.scaffold import new_submission
from grader.labs.lab import find_lab, load_lab


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = "Copy a lab's starter to submissions/NAME."
    parser.add_argument("name", metavar="NAME", help="of the new folder")
    options.lab(parser)


def run(chosen: argparse.Namespace, console: Console) -> int:
    lab = load_lab(find_lab(chosen.lab))
    folder = new_submission(chosen.name, Path.cwd(), lab).relative_to(Path.cwd())
    main = lab.problem.interface.main
    which = f" --lab {chosen.lab}" if chosen.lab else ""
    console.print(Text(f"{folder}/ is ready: edit {folder}/{main}, then: grade {folder}{which}"))
    return exit_status.DONE
