"""Files of odd kinds, and programs that tests read from files beside them."""

import ast
import os
import socket
from pathlib import Path
from typing import Any

from ptxsim import answer_of
from tests.support.places import ROOT


def tracked(*patterns: str) -> list[Path]:
    """Files of the checkout that match one of git's patterns; none outside a checkout."""
    listed = answer_of(["git", "ls-files", "-z", "--", *patterns], cwd=ROOT)
    paths = (ROOT / name for name in listed.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()] if not listed.returncode else []


def beside(test: str, name: str, /, **holes: object) -> str:
    """Read data/``name`` beside ``test`` and put ``holes`` in the place of ``$HOLES``."""
    text = (Path(test).parent / "data" / name).read_text()
    for hole, filling in holes.items():
        text = text.replace(f"${hole.upper()}", str(filling))
    return text


def table(test: str, name: str) -> list[list[str]]:
    """Read data/``name`` beside ``test``: a row a line, ¦ between its columns."""
    lines = (line for line in beside(test, name).splitlines() if not line.startswith("#"))
    return [[cell.strip() for cell in line.split("¦")] for line in lines]


def values(test: str, name: str) -> list[list[Any]]:
    """As ``table``, but a cell that Python reads as a literal stands for its value."""
    return [list(map(_value, row)) for row in table(test, name)]


def _value(cell: str) -> Any:
    try:
        return ast.literal_eval(cell)
    except (SyntaxError, ValueError):
        return cell


def attempts(test: str, name: str) -> str:
    """Write a program that tries each row of a table (a name, an expression) in ``attempt()``.

    It prints the names, each with the error that the system answered or with "open".
    """
    return beside(__file__, "attempts.py.in", rows=table(test, name))


def bind(path: Path) -> None:
    """A socket there. Its path may be longer than bind takes."""
    with socket.socket(socket.AF_UNIX) as made:
        descriptor = os.open(path.parent, os.O_RDONLY)
        made.bind(f"/proc/self/fd/{descriptor}/{path.name}")
        os.close(descriptor)


def grow(path: Path, size: int) -> None:
    """A file of ``size`` bytes that takes none on the disk."""
    with path.open("wb") as file:
        file.truncate(size)
