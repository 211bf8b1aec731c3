"""The sources of stored results: ``<out>/<lab>/<student>/.sources/<sha256 of the file>``.

A result document names its files with their hashes, so the folder holds each content once, and a
result stays whole when the student changes the file that it graded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from grader.model import SourceFile
from grader.results import store
from grader.submission.folder import source_texts
from grader.submission.reading import read

_FOLDER = ".sources"  # hidden: it holds no results


def keep_sources(beside: Path, contents: Iterable[bytes]) -> None:
    """Keep the files of the result document ``beside``. Raises StoreError."""
    for content in contents:
        path = beside.parent / _FOLDER / hashlib.sha256(content).hexdigest()
        if not path.exists():
            store.write(path, content)


def kept_sources(beside: Path, files: Iterable[SourceFile]) -> dict[str, str] | None:
    """The texts of a stored result's files by name, or None if one was not kept or has changed."""
    contents: dict[str, bytes] = {}
    for file in files:
        try:
            content = read(beside.parent / _FOLDER / file.sha256)
        except (OSError, ValueError):
            return None
        if hashlib.sha256(content).hexdigest() != file.sha256:
            return None
        contents[file.name] = content
    return source_texts(contents)
