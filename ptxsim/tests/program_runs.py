"""Whole programs of programs/, built and run by the command."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ptxsim.cli import main

PROGRAMS = Path(__file__).parent / "programs"


def rows(table: str) -> list[list[str]]:
    """The rows of a table, with cells between bars."""
    lines = (Path(__file__).parent / "tables" / table).read_text().splitlines()
    return [
        [cell.strip() for cell in line.split("|")]
        for line in lines
        if line and not line.startswith("#")
    ]


@contextmanager
def current(folder: Path) -> Iterator[None]:
    """The folder is the one that one works in."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def ptxsim(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ptxsim", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def called(
    *arguments: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> subprocess.CompletedProcess[str]:
    """The same without another Python."""
    with current(folder):
        status = main([*arguments])
    said = capfd.readouterr()
    return subprocess.CompletedProcess(arguments, status, said.out, said.err)


def built(program: str, folder: Path) -> Path:
    """The folder with the program of that name, and its source."""
    shutil.copy(PROGRAMS / f"{program}.cu", folder)
    done = ptxsim("nvcc", f"{program}.cu", "-o", program, folder=folder)
    assert done.returncode == 0, done.stderr
    return folder


def line_of(program: str, marker: str) -> int:
    """The line that ends with this comment; 0: there is none."""
    lines = (PROGRAMS / f"{program}.cu").read_text().splitlines()
    return next((at for at, text in enumerate(lines, 1) if text.endswith(f"// {marker}")), 0)
