"""One result in the format that people or another program ask for."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console, RenderableType

from grader.base import Language, MachineError, Result, one_line
from grader.cli.console import to_stdout
from grader.report import csoj, github, gradescope, html, prairielearn, sarif
from grader.results import store, stored_profile
from ptxsim.text import Message, phrase

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


def write_page(
    document: Path, result: Result, sources: dict[str, str], language: Language
) -> Message:
    """Write the student's page beside the result document; return where. Raises StoreError."""
    page = document.with_suffix(".html")
    store.write(page, html.render(result, sources, language, stored_profile(document)).encode())
    return phrase("report: {file}", file=str(page))
