"""``grade export``: results for Gradescope, Canvas, spreadsheets and scripts."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console, RenderableType

from grader.base import Language, MachineError, UsageError, one_line
from grader.cli import leaderboard_command as boards
from grader.cli.console import DONE, skipped, spoken, to_stdout
from grader.course import GRADEBOOK_NEEDED, assignment_column
from grader.course import board_rendering as render
from grader.report import Shown, csoj, github, gradescope, prairielearn, sarif
from grader.results import Result, store
from ptxsim.text import phrase


def shown(chosen: argparse.Namespace) -> Shown:
    return Shown(
        visibility=chosen.visibility,
        hidden=chosen.hidden_visibility,
        stdout=chosen.stdout_visibility,
    )


def run(chosen: argparse.Namespace, console: Console) -> int:
    text = _OF_BOARDS.get(chosen.format, _one)(chosen, console)
    boards.write(text, chosen.to, console, sheet=chosen.format == "csv")
    return DONE


def _one(chosen: argparse.Namespace, console: Console) -> str:
    """Raises UsageError for what has no grade."""
    result, language = store.load(chosen.result), spoken(console)
    if chosen.format == "gradescope":
        text = gradescope(result, shown(chosen), language)
    else:
        text = RENDERERS[chosen.format](result, in_workspace(chosen.folder), language)
    if not text:
        raise UsageError("verdict IE is the grader's own fault and no grade; grade again")
    return text


def _canvas(chosen: argparse.Namespace, console: Console) -> str:
    found, parties = boards.select(chosen, console)
    if parties is None:
        raise UsageError(f"canvas: {GRADEBOOK_NEEDED}")
    column = assignment_column(chosen.roster, chosen.assignment)
    shares = render.board_shares(boards.only(found))
    text, left_out = render.canvas(shares, parties, column, chosen.points)
    skipped(left_out, console)
    return text


def _csv(chosen: argparse.Namespace, console: Console) -> str:
    selected = boards.select(chosen, console)
    return render.table_csv(selected.boards, selected.roster)


_OF_BOARDS: dict[str, Callable[[argparse.Namespace, Console], str]] = {
    "canvas": _canvas,
    "csv": _csv,
    "json": lambda chosen, console: render.board_json(boards.select(chosen, console).boards),
}


# --- formats -----------------------------------------------------------------------------------

_SUMMARY, _OUTPUT = "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"

# Each takes the result and the submission's folder, from the root of the workspace. "" means that
# the format has no place for a failure of the grader.
RENDERERS: dict[str, Callable[[Result, str, Language], str]] = {
    "json": lambda result, _folder, _language: store.encode(result).decode() + "\n",
    "github": github.workflow_commands,
    "sarif": sarif,
    "gradescope": lambda result, _folder, language: gradescope(result, language=language),
    "prairielearn": lambda result, _folder, language: prairielearn(result, language),
    "csoj": lambda result, _folder, language: csoj(result, language),
}


def write(name: str, result: Result, path: Path, language: Language) -> None:
    """Print the result of the submission in ``path``. Raises MachineError."""
    to_stdout(RENDERERS[name](result, in_workspace(path), language))
    if name == "github":
        _append(_SUMMARY, github.job_summary(result, language))
        _append(_OUTPUT, github.outputs(result))


def in_workspace(folder: Path) -> str:
    """The folder from the root of the repository; "" for the root itself."""
    path = os.path.relpath(folder, os.environ.get("GITHUB_WORKSPACE") or None)
    return "" if path == "." else path


def show(name: str | None, report: RenderableType, console: Console) -> None:
    """Print the report for people.

    GitHub's runner looks for commands in everything that is printed, and students write a part of
    it. There it goes to stdout, in front of the annotations, and commands are off meanwhile.
    """
    if name != "github":
        console.print(report)
        return
    sys.stdout.flush()
    token = secrets.token_hex(16)
    sys.stdout.write(f"::stop-commands::{token}\n")
    Console(file=sys.stdout, highlight=False, width=console.width).print(report)
    sys.stdout.write(f"::{token}::\n")
    sys.stdout.flush()


def _append(variable: str, words: str) -> None:
    """To the file that GitHub's runner names; elsewhere there is none."""
    if not (named := os.environ.get(variable)):
        return
    try:
        with Path(named).open("a", encoding="utf-8") as file:
            file.write(words)
    except OSError as error:
        why, value = str(error.strerror), one_line(named)
        failed = phrase("{variable}={value}: {why}; unset it", variable=variable, value=value)
        raise MachineError(failed.given(why=why)) from None
