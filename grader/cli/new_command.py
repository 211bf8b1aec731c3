"""``grade new NAME``: a folder for a student to begin with."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.text import Text

from grader.cli import exit_status
from grader.cli.scaffold import new_submission


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = "Copy starter/ to submissions/NAME."
    parser.add_argument("name", metavar="NAME", help="of the new folder")


def run(chosen: argparse.Namespace, console: Console) -> int:
    folder = new_submission(chosen.name, Path.cwd()).relative_to(Path.cwd())
    console.print(Text(f"{folder}/ is ready: edit {folder}/sgemm.cu, then: grade {folder}"))
    return exit_status.DONE
