"""The command line: wiring, the only place that prints and exits.

Result documents go to stdout (``--json``), everything else to stderr.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.text import Text

import grader
from grader.backends.protocol import Progress
from grader.cli import class_command as classroom_command
from grader.cli import (
    export_command,
    ladder_command,
    leaderboard_command,
    profile_command,
    result_command,
    sass_command,
    similar_command,
)
from grader.cli.boards import known_ladders
from grader.cli.device import choose_device
from grader.cli.doctor import examine, render
from grader.cli.scaffold import new_submission
from grader.errors import (
    GraderError,
    MachineError,
    OutOfTime,
    Rejected,
    StoreError,
    SubmissionError,
    one_line,
)
from grader.grading.pipeline import Bench, grade, read_sources
from grader.labs.lab import load_lab
from grader.model import Result, SubmissionRef, Verdict
from grader.report import html, terminal
from grader.report.text import clean
from grader.results import store
from grader.sandbox.running import Sandbox
from grader.submission.folder import load_submission, student_of
from grader.toolchain.discovery import find_toolchain

_EPILOG = """\
other commands:
  grade class DIR    grade every submission in DIR; goes on where it stopped
  grade ladder       grade the reference rungs; table and picture beside cuBLAS
  grade doctor       what this machine can do, and the command that mends what it can't
  grade new NAME     copy starter/ to submissions/NAME
  grade report FILE  show a stored result again
  grade result PATH  the stored result of a submission, with its exit status
  grade sass PATH    what the compiler made of a kernel's main loop
  grade profile PATH Nsight Compute's counters beside the model's
  grade leaderboard  rank the stored results
  grade similar DIR  pairs of submissions that share too much code, for the instructor
  grade export       results for Gradescope, Canvas, spreadsheets and scripts

A folder that is named like a command is given as a path: grade ./doctor

exit status: 0 accepted; 1 graded, not accepted; 2 wrong usage, lab file or folder;
3 the grader or the machine failed (no score is recorded: try again)
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status, 130 after Ctrl-C."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_standard_streams()
    console = Console(stderr=True, highlight=False)
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGUSR1, _out_of_time)
    command = _COMMANDS.get(arguments[0]) if arguments else None
    try:
        status = command(arguments[1:], console) if command else _grade(arguments, console)
        sys.stdout.flush()
    except GraderError as error:
        _complain(error, console)
        return error.exit_status
    except KeyboardInterrupt:
        console.print("grade: interrupted")
        return 130
    except BrokenPipeError:
        _drop_output()
        return 3
    except OSError as error:  # what no stage foresaw: a full disk behind stdout, a folder gone
        failure = MachineError.of(error)
        _complain(failure, console)
        _drop_output()
        return failure.exit_status
    return status


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
    raise SystemExit(143)


def _out_of_time(_signal: int, _frame: FrameType | None) -> None:
    """What a batch system sends before a job's time limit, if it is asked to."""
    raise OutOfTime("out of time: the job's time limit came before the grading's end")


def _complain(error: GraderError, console: Console) -> None:
    console.print(Text(f"grade: {clean(str(error))}", style="bold red"), soft_wrap=True)


# --- grade SUBMISSION… ------------------------------------------------------------------------


def _grade(arguments: list[str], console: Console) -> int:
    options = _grade_parser().parse_args(arguments)
    lab = load_lab(options.lab)
    bench = Bench(
        lab=lab,
        gpu_arch=choose_device(options.device, console),
        toolchain=find_toolchain(),
        sandbox=Sandbox.open(options.sandbox),
        ladders=known_ladders(options.out, console),
    )
    return max(_grade_one(path, bench, options, console) for path in options.submissions)


def _grade_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="grade",
        description="Grade CUDA SGEMM submissions: compile, run, verify, point at bugs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("submissions", metavar="SUBMISSION", nargs="+", type=Path, help="folder with sgemm.cu")
    add("--lab", metavar="FILE", type=Path, help="lab file (default: the SGEMM lab)")
    add(
        "--device",
        choices=("auto", "gpu", "cpu"),
        default="auto",
        help="where kernels run; cpu is the simulator (default: auto)",
    )
    add(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("results"),
        help="where results are written (default: results/)",
    )
    add("--json", action="store_true", help="print each result document on stdout, as one line")
    add("--no-report", action="store_true", help="write no HTML report")
    add(
        "--sandbox",
        choices=("require", "auto", "off"),
        default="auto",
        help="bubblewrap: demand it, use it where it works, or go without (default: auto)",
    )
    add("--version", action="version", version=f"grade {grader.__version__}")
    return parser


def _grade_one(path: Path, bench: Bench, options: argparse.Namespace, console: Console) -> int:
    try:
        with _progress(student_of(path), console) as progress:
            graded = grade(path, bench, progress)
    except SubmissionError as error:  # the other submissions are graded all the same
        _complain(error, console)
        return error.exit_status
    result = graded.result
    console.print(terminal.render(result, graded.sources))
    if graded.printed:
        # Indented, so that no line of it looks like one of ours.
        words = textwrap.indent(clean(graded.printed), "  ", lambda _line: True)
        console.print(Text(f"\nprinted by the kernels:\n{words}"))
    status = result_command.status(result)
    if result.verdict is not Verdict.IE:  # a fault of ours must not replace a real result
        try:
            written = store.save(options.out, result)
            console.print(Text(f"result: {written}", style="dim"), soft_wrap=True)
            if not options.no_report:
                _write_page(written, result, graded.sources, console)
        except StoreError as error:
            _complain(error, console)
            status = error.exit_status
    console.print()
    if options.json:
        sys.stdout.write(store.encode(result).decode() + "\n")
        sys.stdout.flush()
    return status


def _write_page(document: Path, result: Result, sources: dict[str, str], console: Console) -> None:
    """The student's page, beside the result document. Raises StoreError."""
    page = document.with_suffix(".html")
    store.write(page, html.render(result, sources).encode())
    console.print(Text(f"report: {page}", style="dim"), soft_wrap=True)


@contextmanager
def _progress(name: str, console: Console) -> Iterator[Progress]:
    """A line that changes on a terminal; one line per stage in a log."""
    if console.is_terminal:
        with console.status(Text(one_line(name))) as status:
            yield lambda stage, detail: status.update(Text(f"{one_line(name)}: {stage} {detail}"))
        return
    stages: list[str] = []

    def tell(stage: str, detail: str) -> None:
        if stage not in stages:
            stages.append(stage)
            console.print(Text(f"{one_line(name)}: {stage} {detail}".rstrip(), style="dim"))

    yield tell


# --- the other commands -----------------------------------------------------------------------


def _new(arguments: list[str], console: Console) -> int:
    parser = argparse.ArgumentParser(
        prog="grade new", description="Copy starter/ to submissions/NAME."
    )
    parser.add_argument("name", metavar="NAME")
    folder = new_submission(parser.parse_args(arguments).name, Path.cwd()).relative_to(Path.cwd())
    console.print(Text(f"{folder}/ is ready: edit {folder}/sgemm.cu, then: grade {folder}"))
    return 0


def _report(arguments: list[str], console: Console) -> int:
    parser = argparse.ArgumentParser(
        prog="grade report", description="Show a stored result again and write its page."
    )
    parser.add_argument("file", metavar="FILE", type=Path)
    file = parser.parse_args(arguments).file
    result = store.load(file)
    sources = _sources_of(result.submission)
    console.print(terminal.render(result, sources))
    _write_page(file, result, sources, console)
    return 0


def _sources_of(reference: SubmissionRef) -> dict[str, str]:
    """The texts a stored result speaks of, if submissions/ still holds exactly those."""
    try:
        submission = load_submission(Path("submissions") / reference.student)
    except (SubmissionError, Rejected, OSError):
        return {}
    return read_sources(submission) if submission.sha256 == reference.sha256 else {}


def _doctor(arguments: list[str], console: Console) -> int:
    argparse.ArgumentParser(
        prog="grade doctor",
        description="What this machine can do, and the command that mends what it can't.",
    ).parse_args(arguments)
    checks = examine()
    console.print(render(checks))
    return 3 if any(check.needed and not check.ok for check in checks) else 0


_COMMANDS: dict[str, Callable[[list[str], Console], int]] = {
    "class": classroom_command.run,
    "doctor": _doctor,
    "export": export_command.run,
    "ladder": ladder_command.run,
    "leaderboard": leaderboard_command.run,
    "new": _new,
    "report": _report,
    "result": result_command.run,
    "similar": similar_command.run,
    "profile": profile_command.run,
    "sass": sass_command.run,
}
