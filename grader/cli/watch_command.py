"""``grade watch FOLDER``: grade again whenever a file is saved.

It polls. The kernel's notices (inotify) do not come for network folders or for Windows' folders
under WSL2, and looking at the few files of a submission takes microseconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from grader.base import Rejected
from grader.cli.bench import open_bench
from grader.cli.chosen_lab import LAB, LabName, chosen_lab
from grader.cli.console import DONE, say, speak_as, spoken, status_of
from grader.cli.options import OptionGroup, flag
from grader.cli.shared_options import DEVICE, SANDBOX, SUBMISSION, Device, Verbosity
from grader.judge import grade
from grader.labs import SubmissionError, load_submission, student_of
from grader.report import terminal
from grader.results import Result
from grader.run import quietly
from grader.sandbox import Mode
from ptxsim.text import phrase

_PAUSE_S = 0.1
_ENTRIES = 4096  # as many as a submission may have

_Seen = frozenset[tuple[str, int, int, int]]


class WatchOptions(OptionGroup):
    """Grade a submission, and again whenever a file in it is saved; Ctrl-C ends it. It stores
    nothing and does not explain the speed: grade does."""

    submission: Path = SUBMISSION
    lab: LabName = LAB
    device: Device = DEVICE
    sandbox: Mode = SANDBOX
    verbosity: Verbosity
    once: bool = flag("end after the first result")


def run(chosen: WatchOptions, console: Console) -> int:
    lab = chosen_lab(chosen.lab)
    speak_as(lab, console)
    context = open_bench(lab, chosen.device, chosen.sandbox, console)
    folder = chosen.submission
    student = student_of(folder)
    graded: tuple[str, Result] | None = None  # the sources' hash, and what came of them
    for _ in _saves(folder):
        sources = _hash(folder, lab.problem.interface.main)
        if graded is not None and sources and graded[0] == sources:
            same = phrase("{student}: nothing changed: {verdict}", student=student)
            say(console, same.given(verdict=graded[1].verdict.value))
            continue
        started = time.monotonic()
        found = grade(folder, context, quietly)
        shown = terminal.render(
            found.result, found.sources, spoken(console), chosen.verbosity.detail
        )
        console.print(shown)
        if chosen.once:
            return status_of(found.result)
        waiting = phrase("{seconds:.1f} s; waiting for {folder} to be saved", folder=str(folder))
        say(console, waiting.given(seconds=time.monotonic() - started))
        graded = sources, found.result
    return DONE


def _saves(folder: Path) -> Iterator[None]:
    """Now, and after every change, once the files have been quiet for a moment."""
    last: _Seen | None = None
    while True:
        seen = _look(folder)
        time.sleep(_PAUSE_S)
        if seen != last and _look(folder) == seen:  # an editor may write a file in several steps
            last = seen
            yield


def _look(folder: Path) -> _Seen:
    """Names, times and sizes of the files that are not hidden. Raises SubmissionError."""
    if not folder.is_dir():
        absent = phrase("{place}: {what}", place=str(folder), what=phrase("no such folder"))
        raise SubmissionError(absent)
    seen = []
    for place, below, names in os.walk(folder):
        below[:] = [name for name in below if not name.startswith(".")]
        for name in names:
            path = os.path.join(place, name)  # noqa: PTH118 - many, ten times a second
            try:
                state = os.lstat(path)
            except OSError:  # gone meanwhile
                continue
            if not name.startswith("."):
                seen.append((path, state.st_mtime_ns, state.st_size, state.st_ino))
            if len(seen) > _ENTRIES:
                return frozenset(seen)
    return frozenset(seen)


def _hash(folder: Path, main: str) -> str:
    """Hash the sources; "" if they cannot be graded, which grading will explain."""
    try:
        return load_submission(folder, main).sha256
    except (Rejected, SubmissionError, OSError):
        return ""
