"""CSV files that people edit in a spreadsheet, to read and to write."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from grader.errors import UsageError

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def open_csv(path: Path) -> csv.DictReader[str]:
    """Rows by column, strictly quoted, after a byte order mark if there is one. Reading them may
    raise csv.Error. Raises UsageError naming the file and the line."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: not UTF-8 text; save the file as CSV UTF-8") from None
    return csv.DictReader(io.StringIO(text, newline=""), strict=True)


def harmless(cell: object) -> object:
    """A spreadsheet runs what begins like a formula; an apostrophe makes it text."""
    if isinstance(cell, str) and cell.startswith(_FORMULA):
        return f"'{cell}"
    return cell
