"""``grade serve-submission``: the course's side of ``grade submit``, started by ssh."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

from rich.console import Console

import grader
from grader.cli.options import Command, OptionGroup, option
from grader.course import Service


class ServeOptions(OptionGroup):
    """Take a hand-in that ssh brings on stdin, and answer on stdout; docs/submit.md says how. In a
    shared account, authorized_keys names the student of each key."""

    student: str | None = option(
        "whose key it is, in an account that all students share (default: the user)", "NAME"
    )
    home: Path = option(
        "the course's checkout, with slurm/ (default: that of this grader)",
        "DIR",
        factory=lambda: Path(grader.__file__).resolve().parents[1],
    )


def run(chosen: ServeOptions, _console: Console) -> int:
    student = chosen.student or pwd.getpwuid(os.getuid()).pw_name
    service = Service(chosen.home, student, shared=chosen.student is not None)
    return service.serve(sys.stdin.buffer, sys.stdout.buffer)


COMMAND = Command(ServeOptions, run)
