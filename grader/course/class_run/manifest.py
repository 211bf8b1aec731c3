"""The ungraded part of a class, written once and divided among the tasks of a batch job."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from grader.errors import UsageError
from grader.model import Record
from grader.model.decoding import decode
from grader.results import store
from grader.submission.reading import read

_PART = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")


class Manifest(Record):
    """The students to grade, in the order of the roll."""

    students: tuple[str, ...]

    def part(self, index: int, count: int) -> tuple[str, ...]:
        """Every ``count``-th student from ``index`` on: parts differ by one at most."""
        return self.students[index::count]


def write_manifest(path: Path, students: Sequence[str]) -> None:
    """Raises StoreError."""
    store.write_document(path, Manifest(students=tuple(students)))


def read_manifest(path: Path) -> Manifest:
    """Raises UsageError naming the file."""
    try:
        return decode(read(path), Manifest)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, ValueError) as error:  # ValueError: not UTF-8
        raise UsageError(f"{path}: no manifest of a class: {error}") from None


def read_part(text: str) -> tuple[int, int]:
    """``2/10``: the third of ten parts. Raises UsageError."""
    found = _PART.fullmatch(text)
    if not found or not int(found[1]) < int(found[2]):
        raise UsageError(f"--part {text}: expected I/N with I from 0 to N-1, such as 0/10")
    return int(found[1]), int(found[2])
