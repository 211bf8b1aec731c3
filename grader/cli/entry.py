"""Choose and run a command: streams, signals, errors, the exit status.

A command is the record ``<Name>Options`` and the function ``run`` of a module ``<name>_command``,
or the ``COMMAND`` of one that has subcommands. It is imported only when it is used: imports take
time. The answer goes to stdout, everything else to stderr.
"""

from __future__ import annotations

import argparse
import io
import os
import platform
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import FrameType

from rich.console import Console

from grader.base import ENGLISH, GraderError, Language, MachineError, OutOfTime, UsageError
from grader.cli import ahead
from grader.cli import console as terminal
from grader.cli.defaults import default_of, describe_choices_of_file
from grader.cli.options import Command, record
from grader.cli.parser import Parser, language_of
from grader.cli.shared_options import find_submission
from ptxsim.text import Message, phrase, verbatim

DEFAULT = "grade"  # what is meant where no command is named
_ALIASES = {"result": ["report", "--no-report"], "version": ["--version"]}  # of the first words
_BEGIN = phrase(
    "grade SUBMISSION…            compile it, run it, verify it, and point at bugs\n"
    "grade COMMAND [...]          see below; grade help COMMAND says more\n"
)

LINES: Mapping[str, Message] = {  # in the order of the list: for students, then for instructors
    "new": phrase("copy a lab's starter to submissions/NAME"),
    "watch": phrase("grade a folder again whenever a file in it is saved"),
    "report": phrase("show a stored result again, and write its page"),
    "history": phrase("a student's graded versions: what changed, and the climb"),
    "submit": phrase("hand in from anywhere, by ssh, to a cluster that grades"),
    "labs": phrase("the labs that ship with the grader"),
    "doctor": phrase("what works on this machine, and how to fix what does not"),
    "completion": phrase("a script by which your shell completes commands and options"),
    "calibrate": phrase("measure this machine's GPU, so that estimates of speeds on it need none"),
    "sass": phrase("what the compiler made of a kernel's main loop"),
    "sweep": phrase("one kernel over many sizes and values of its macros"),
    "profile": phrase("Nsight Compute's counters beside the model's"),
    "rung": phrase("print a kernel of the reference ladder, which explains itself"),
    "ladder": phrase("grade the reference rungs; table and picture beside the baseline"),
    "class": phrase("grade every submission in DIR; resumes where it stopped"),
    "leaderboard": phrase("rank the stored results"),
    "similar": phrase("pairs in DIR that share too much code, for the instructor"),
    "course": phrase("marks for lab reports, grades, and what a regrade changed"),
    "export": phrase("results for Gradescope, Canvas, spreadsheets and scripts"),
    "kit": phrase("an autograder for Gradescope, GitHub or CSOJ"),
    "import": phrase("a lab of whole programs from a course's skeleton"),
    "serve-submission": phrase("the course's side of grade submit, for ssh to start"),
    "hidden": phrase("a lab's hidden sizes; requires the seed file"),
}
_MACHINES = ("x86_64", "aarch64")

_EPILOG = phrase(
    "grade COMMAND --help shows more. If a folder has the name of a command, give it as a path:\n"
    "grade ./doctor\n\n"
    "exit status: 0 accepted; 1 graded, not accepted; 2 wrong usage, lab file or folder;\n"
    "3 the grader or the machine failed (no score is recorded: try again)\n"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status, 130 after Ctrl-C."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if missing := unsupported(sys.platform, platform.machine()):
        print(f"grade: {missing}", file=sys.stderr)
        return terminal.FAULT
    # OpenBLAS's threads spin while NumPy is imported, and the products here are small.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    ahead.leave_garbage()
    _open_standard_streams()
    option, arguments = language_of(arguments)
    try:
        console = terminal.Terminal(option or str(default_of("language") or "") or None)
    except UsageError as error:
        terminal.complain(error, terminal.Terminal(None))
        return error.exit_status
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, _terminate)
    signal.signal(signal.SIGUSR1, _out_of_time)
    try:
        try:
            status = _run(arguments, console, option)
        finally:  # after --help too
            sys.stdout.flush()
    except GraderError as error:
        terminal.complain(error, console)
        return error.exit_status
    except KeyboardInterrupt:
        terminal.say(console, phrase("grade: {what}", what=phrase("interrupted")))
        return terminal.INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return terminal.UNREAD
    except OSError as error:  # unexpected: a full disk behind stdout, a deleted folder
        failure = MachineError.of(error)
        terminal.complain(failure, console)
        _drop_output()
        return failure.exit_status
    except Exception:  # a mistake of the grader's: it says nothing about the submission
        traceback.print_exc()
        return terminal.FAULT
    return status


def unsupported(system: str, machine: str) -> str:
    """Why nothing works on such a machine, and what does; "" where it works."""
    if system == "win32":
        return "Windows: install the grader in WSL2 (wsl --install), and run it there"
    if system != "linux":
        return f"{system}: the grader needs Linux; run its container (containers/Dockerfile)"
    if machine not in _MACHINES:
        return f"{machine}: NVIDIA has compilers only for {' and '.join(_MACHINES)}"
    return ""


def _run(arguments: list[str], console: Console, language_option: str | None) -> int:
    """The command named by the first word, or else ``grade SUBMISSION…``."""
    language = terminal.spoken(console)
    first, others = arguments[:1], arguments[1:]
    if first == ["help"]:
        arguments = [*others[:1], "--help"]
    elif first:
        arguments = [*_ALIASES.get(first[0], first), *others]
    root, parsers = _root(language)
    if not arguments:  # an empty variable in a script must not look like an accepted submission
        terminal.answer(console, verbatim(f"{language(_BEGIN)}\n{root.format_help()}".rstrip()))
        return terminal.WRONG_USAGE
    if arguments[0] in parsers:
        name, *arguments = arguments
        parser = parsers[name]
    else:
        # Not a subparser: a folder may have any name that is not a command.
        name = DEFAULT
        if not arguments[0].startswith("-"):
            find_submission(arguments[0], parsers)
        known = root.format_help()
        parser = Parser(prog="grade", epilog=known, language=language, raw=True)
    _describe(parser, name)
    values = parser.read(arguments)
    if note := describe_choices_of_file(values, language_option):
        terminal.say(console, note)
    command: Command = values["command"]
    assert command.run is not None
    return command.run(record(command.options, values), console)


def _root(language: Language) -> tuple[Parser, dict[str, Parser]]:
    """The parser that lists the commands, and theirs, which have no options yet."""
    root = Parser(
        prog="grade",
        usage=argparse.SUPPRESS,
        epilog=language(_EPILOG),
        language=language,
        raw=True,
        add_help=False,
    )
    title = language(phrase("other commands"))
    subparsers = root.add_subparsers(prog="grade", title=title, metavar="COMMAND [...]")
    parsers = {}
    for name, line in LINES.items():
        parsers[name] = subparsers.add_parser(name, help=language(line), language=language)
    return root, parsers


def load(name: str) -> Command:
    """Import a command."""
    module = import_module(f"grader.cli.{name.replace('-', '_')}_command")
    below: Command | None = getattr(module, "COMMAND", None)
    return below or Command(getattr(module, f"{name.title()}Options"), module.run)


def _describe(parser: Parser, name: str) -> None:
    parser.describe(load(name))
    parser.add_language()


def every_parser() -> Parser:
    """The parser of all commands with their options, for the completion of shells."""
    root, parsers = _root(ENGLISH)
    for name, parser in parsers.items():
        _describe(parser, name)
    _describe(root, DEFAULT)
    return root


def _open_standard_streams() -> None:
    """If a stream was closed at the start, the next file opened would take its place."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper):  # documents are UTF-8 on any terminal
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")


def _drop_output() -> None:
    """The reader of the output is gone. Keep Python from complaining again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _terminate(number: int, _frame: FrameType | None) -> None:
    """Clean up as after Ctrl-C: kill children, remove temporary files."""
    raise SystemExit(128 + number)


def _out_of_time(_signal: int, _frame: FrameType | None) -> None:
    """The signal that a batch system sends before the job's time limit, if asked to."""
    raise OutOfTime.saying("out of time: the job's time limit came before the end of the grading")
