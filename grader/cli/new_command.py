"""``grade new NAME``: a folder for a student to begin with."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.text import Text

from grader.cli import exit_status
from grader.cli.notices import say
from grader.cli.scaffold import new_submission
from grader.compile.editor_flags import FILE, editor_flags
from grader.errors import ToolchainError
from grader.toolchain.discovery import find_toolchain


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.description = "Copy starter/ to submissions/NAME, with compile_flags.txt for clangd."
    parser.add_argument("name", metavar="NAME", help="of the new folder")


def run(chosen: argparse.Namespace, console: Console) -> int:
    flags: str | None = None
    try:
        flags = editor_flags(find_toolchain())
    except ToolchainError as error:  # a student may begin before the machine can grade
        say(console, f"without {FILE}, which tells an editor where CUDA is: {error}")
    folder = new_submission(chosen.name, Path.cwd(), flags).relative_to(Path.cwd())
    console.print(Text(f"{folder}/ is ready: edit {folder}/sgemm.cu, then: grade {folder}"))
    return exit_status.DONE
