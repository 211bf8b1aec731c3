"""``grade completion SHELL``: a script by which a shell completes commands, options and folders.

shtab writes it from the parsers, once; argcomplete would start Python at every press of Tab.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import shtab
from rich.console import Console

from grader.cli.console import DONE, to_stdout
from grader.cli.entry import every_parser
from grader.cli.options import OptionGroup, argument

_FIRST_WORD = {"bash": "_shtab_grade_pos_0_COMPGEN=_shtab_compgen_dirs"}  # or a command
_FOLDERS = ("SUBMISSION", "DIR", "FOLDER")


class CompletionOptions(OptionGroup):
    """Print a script that completes this command line: eval "$(grade completion bash)" """

    shell: str = argument("", choices=shtab.SUPPORTED_SHELLS)


def run(chosen: CompletionOptions, _console: Console) -> int:
    parser = every_parser()
    _complete_paths(parser)
    to_stdout(shtab.complete(parser, chosen.shell, preamble=_FIRST_WORD) + "\n")  # type: ignore[arg-type]
    return DONE


def _complete_paths(parser: argparse.ArgumentParser) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                _complete_paths(each)
        elif action.metavar in _FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif action.type is Path or action.metavar == "LAB":
            action.complete = shtab.FILE  # type: ignore[attr-defined]
