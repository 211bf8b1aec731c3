"""``grade new NAME --lab LAB``: a folder for a student to begin with."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.text import Text

from grader.cli import exit_status, options
from grader.cli.notices import say
from grader.cli.parser import Parser
from grader.cli.scaffold import new_submission
from grader.cli.speaking import speak_as, spoken
from grader.compile.editor_flags import FILE, editor_flags
from grader.errors import ToolchainError
from grader.labs.lab import find_lab, load_lab
from grader.model import phrase
from grader.toolchain.discovery import find_toolchain


def add_options(parser: Parser) -> None:
    parser.describe(
        phrase("Copy a lab's starter to submissions/NAME, with compile_flags.txt for clangd.")
    )
    parser.add_argument("name", metavar="NAME", help=phrase("of the new folder"))
    options.lab(parser)


def run(chosen: argparse.Namespace, console: Console) -> int:
    lab = load_lab(find_lab(chosen.lab))
    speak_as(lab, console)
    flags: str | None = None
    try:
        flags = editor_flags(find_toolchain())
    except ToolchainError as error:  # a student may begin before the machine can grade
        without = phrase(
            "without {file}, which tells an editor where CUDA is: {reason}",
            file=FILE,
            reason=error.message,
        )
        say(console, without)
    folder = new_submission(chosen.name, Path.cwd(), lab, flags, spoken(console))
    folder = folder.relative_to(Path.cwd())
    main = lab.problem.interface.main
    which = f" --lab {chosen.lab}" if chosen.lab else ""
    ready = phrase(
        "{folder}/ is ready: edit {folder}/{main}, then: {command}",
        folder=str(folder),
        main=main,
        command=f"grade {folder}{which}",
    )
    console.print(Text(spoken(console)(ready)))
    return exit_status.DONE
