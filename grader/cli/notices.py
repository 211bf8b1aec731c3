"""Lines on stderr that several commands print, without control characters."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from grader.errors import GraderError, one_line
from grader.report.text import clean


def say(console: Console, text: str) -> None:
    """Print what the command did."""
    console.print(Text(clean(text), style="dim"), soft_wrap=True)


def complain(error: GraderError, console: Console) -> None:
    """Print why the command, or a part of it, failed."""
    console.print(Text(f"grade: {clean(str(error))}", style="bold red"), soft_wrap=True)


def skipped(complaints: Iterable[str], console: Console) -> None:
    """Print what the command skips, one line each."""
    for complaint in complaints:
        console.print(Text(f"skipped: {one_line(complaint)}", style="yellow"), soft_wrap=True)
