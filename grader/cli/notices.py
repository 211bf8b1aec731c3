"""What several commands print, without control characters."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from grader.cli.speaking import spoken
from grader.errors import GraderError, one_line
from grader.model import Message, phrase
from grader.report.text import clean


def say(console: Console, said: Message | str) -> None:
    """Print what the command did."""
    words = spoken(console)(said) if isinstance(said, Message) else said
    console.print(Text(clean(words), style="dim"), soft_wrap=True)


def complain(error: GraderError, console: Console) -> None:
    """Print why the command, or a part of it, failed."""
    words = clean(spoken(console)(error.message))
    console.print(Text(f"grade: {words}", style="bold red"), soft_wrap=True)


def to_stdout(text: str) -> None:
    """For another program, byte for byte; to a terminal without what would control it."""
    sys.stdout.write(clean(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def skipped(complaints: Iterable[Message | str], console: Console) -> None:
    """Print what the command skips, one line each."""
    language = spoken(console)
    for complaint in complaints:
        said = language(complaint) if isinstance(complaint, Message) else complaint
        words = language(phrase("skipped: {what}", what=one_line(said)))
        console.print(Text(words, style="yellow"), soft_wrap=True)
