"""The terminal that speaks a language, and the exit statuses; errors carry their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

from grader import base
from grader.labs import Lab
from grader.report import clean
from grader.results import Result, StoreError
from grader.run import Progress
from ptxsim.text import Message, phrase

DONE = 0
NOT_ACCEPTED = 1
WRONG_USAGE = 2
FAULT = 3  # of the grader or the machine; no score is recorded
INTERRUPTED = 130  # Ctrl-C
UNREAD = 141  # SIGPIPE: nobody reads the answer to its end


def status_of(result: Result) -> int:
    return {base.Verdict.AC: DONE, base.Verdict.IE: FAULT}.get(result.verdict, NOT_ACCEPTED)


_UNBROKEN = 10_000  # characters in a line of a pipe or file


class Terminal(Console):
    """stdout, for answers; ``aside``, which is stderr, for all else; and the language of both."""

    def __init__(self, option: str | None, *, aside: bool = False) -> None:
        """option: ``--language``. Raises UsageError for an unknown one."""
        super().__init__(stderr=aside, highlight=False)
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = _UNBROKEN
        self._option = option
        self.language = base.choose_language(option, os.environ)
        self.aside = self if aside else Terminal(option, aside=True)

    def speak_as(self, lab: Lab) -> None:
        """Take the lab's language if neither the user nor the environment names one."""
        self.language = base.choose_language(self._option, os.environ, lab.language)
        self.aside.language = self.language

    def on_broken_pipe(self) -> None:
        """Leave it to the caller, who ends quietly; rich would exit as if nothing was accepted."""
        raise BrokenPipeError


def spoken(console: Console) -> base.Language:
    return console.language if isinstance(console, Terminal) else base.ENGLISH


def speak_as(lab: Lab, console: Console) -> None:
    if isinstance(console, Terminal):
        console.speak_as(lab)


def aside(console: Console) -> Console:
    """Return the console for what is no answer."""
    return console.aside if isinstance(console, Terminal) else console


# --- notices -----------------------------------------------------------------------------------


def answer(console: Console, said: Message) -> None:
    """Print a line of what the command was asked for; commands and paths in it are not broken."""
    console.print(Text(clean(spoken(console)(said))), soft_wrap=True)


def say(console: Console, said: Message) -> None:
    """Print a note on what the command does."""
    aside(console).print(Text(clean(spoken(console)(said)), style="dim"), soft_wrap=True)


def complain(error: base.GraderError, console: Console) -> None:
    """Print why the command, or a part of it, failed."""
    words = clean(spoken(console)(error.message))
    aside(console).print(Text(f"grade: {words}", style="bold red"), soft_wrap=True)


def to_stdout(text: str) -> None:
    """For another program, byte for byte; to a terminal without what would control it."""
    sys.stdout.write(clean(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def skipped(complaints: Iterable[Message], console: Console) -> None:
    """Print what the command skips, one line each."""
    language = spoken(console)
    for complaint in complaints:
        said = base.one_line(language(complaint))
        words = language(phrase("skipped: {what}", what=said))
        aside(console).print(Text(words, style="yellow"), soft_wrap=True)


def warn(caution: Message, console: Console) -> None:
    """Print one line of caution; nothing for NOTHING."""
    if caution:
        aside(console).print(Text(spoken(console)(caution), style="yellow"), soft_wrap=True)


# --- where an answer goes ----------------------------------------------------------------------


def beside(console: Console, *targets: Path | None) -> Console:
    """Return where the answer for people goes: not to stdout where a target takes that."""
    return aside(console) if any(str(target) == "-" for target in targets) else console


def write(text: str, target: Path, console: Console, *, sheet: bool = False) -> None:
    """Write to a file, or to stdout for ``-``; a sheet with UTF-8's mark. Raises StoreError."""
    if str(target) == "-":
        to_stdout(text)
        return
    try:
        with target.open("w", encoding="utf-8-sig" if sheet else "utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        words = phrase("{target}: cannot be written: {why}")
        raise StoreError(words.given(target=str(target), why=str(error.strerror))) from None
    say(console, phrase("written: {place}", place=str(target)))


# --- progress ----------------------------------------------------------------------------------


@contextmanager
def stages(name: str, console: Console) -> Iterator[Progress]:
    """One changing line on a terminal; one line per stage in a log."""
    language, console = spoken(console), aside(console)

    def line(what: Message) -> Text:
        words = phrase("{place}: {what}", place=base.one_line(name), what=what)
        return Text(language(words), style="" if console.is_terminal else "dim")

    if console.is_terminal:
        with console.status(Text(base.one_line(name))) as status:
            yield lambda stage, words: status.update(line(words or stage))
        return
    told: set[Message] = set()

    def tell(stage: Message, words: Message) -> None:
        if stage not in told:
            told.add(stage)
            console.print(line(words or stage))

    yield tell
