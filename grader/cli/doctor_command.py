"""``grade doctor``: what works on this machine; ``doctor.py`` holds the checks."""

from __future__ import annotations

import argparse

from rich.console import Console

from grader.cli import exit_status
from grader.cli.doctor import examine, render
from grader.cli.parser import Parser
from grader.cli.speaking import spoken
from grader.model import phrase


def add_options(parser: Parser) -> None:
    parser.describe(phrase("What works on this machine, and the command that fixes what does not."))


def run(_chosen: argparse.Namespace, console: Console) -> int:
    checks = examine()
    console.print(render(checks, spoken(console)))
    unable = any(check.needed and not check.ok for check in checks)
    return exit_status.FAULT if unable else exit_status.DONE
