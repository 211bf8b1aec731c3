"""The command line's frame: the command chosen, streams, signals, errors, the exit status.

Result documents go to stdout (``--json``), everything else to stderr.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType
from typing import Protocol, cast

from rich.console import Console

from grader.cli import exit_status
from grader.cli.notices import complain
from grader.errors import GraderError, MachineError, OutOfTime

_COMMANDS = {
    "class": "grade every submission in DIR; goes on where it stopped",
    "ladder": "grade the reference rungs; table and picture beside cuBLAS",
    "doctor": "what this machine can do, and the command that fixes what it can't",
    "new": "copy starter/ to submissions/NAME",
    "report": "show a stored result, FILE, again",
    "result": "the stored result of a submission, with its exit status",
    "sass": "what the compiler made of a kernel's main loop",
    "profile": "Nsight Compute's counters beside the model's",
    "leaderboard": "rank the stored results",
    "similar": "pairs in DIR that share too much code, for the instructor",
    "export": "results for Gradescope, Canvas, spreadsheets and scripts",
}
"""Each is a module ``<name>_command``, loaded only when it is named: their imports take time."""

_EPILOG = """\
grade COMMAND --help says more. A folder that is named like a command is given as a path:
grade ./doctor

exit status: 0 accepted; 1 graded, not accepted; 2 wrong usage, lab file or folder;
3 the grader or the machine failed (no score is recorded: try again)
"""


class _Command(Protocol):
    """What the module of a command holds."""

    def add_options(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, options: argparse.Namespace, console: Console) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status, 130 after Ctrl-C."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_standard_streams()
    console = Console(stderr=True, highlight=False)
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGUSR1, _out_of_time)
    try:
        status = _run(arguments, console)
        sys.stdout.flush()
    except GraderError as error:
        complain(error, console)
        return error.exit_status
    except KeyboardInterrupt:
        console.print("grade: interrupted")
        return exit_status.INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return exit_status.FAULT
    except OSError as error:  # what no stage foresaw: a full disk behind stdout, a folder gone
        failure = MachineError.of(error)
        complain(failure, console)
        _drop_output()
        return failure.exit_status
    return status


def _run(arguments: list[str], console: Console) -> int:
    """The command that the first word names; else ``grade SUBMISSION…``."""
    root = argparse.ArgumentParser(
        prog="grade",
        usage=argparse.SUPPRESS,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    subparsers = root.add_subparsers(prog="grade", title="other commands", metavar="COMMAND [...]")
    for name, line in _COMMANDS.items():
        subparsers.add_parser(name, help=line)
    if arguments and arguments[0] in _COMMANDS:
        name, *arguments = arguments
        parser = subparsers.choices[name]
    else:
        # Not a subparser, so that a folder may have any name that is no command's.
        name = "grade"
        parser = argparse.ArgumentParser(
            prog="grade",
            epilog=root.format_help(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
    command = cast(_Command, import_module(f"grader.cli.{name}_command"))
    command.add_options(parser)
    return command.run(parser.parse_args(arguments), console)


def _open_standard_streams() -> None:
    """Started with a stream closed, Python has none, and the next file opened takes its place."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper):  # documents are UTF-8 whatever the terminal is
        sys.stdout.reconfigure(encoding="utf-8")


def _drop_output() -> None:
    """Whoever read the output is gone. Python would complain once more when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM ends as Ctrl-C does: children killed, temporary files removed."""
    raise SystemExit(exit_status.TERMINATED)


def _out_of_time(_signal: int, _frame: FrameType | None) -> None:
    """What a batch system sends before a job's time limit, if it is asked to."""
    raise OutOfTime("out of time: the job's time limit came before the grading's end")
