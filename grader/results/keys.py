"""Secret keys in files, made on first use and readable by their owner only."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from pathlib import Path

from grader.errors import StoreError
from grader.model import Message, phrase
from grader.submission.reading import read

_BYTES = 32


def load_key(path: Path, when_lost: Message) -> bytes:
    """The key in this file. when_lost: what deleting a damaged one leads to, for the message.

    Raises StoreError.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(path):
            _make(path)
        key = read(path)
    except OSError as error:
        raise StoreError(
            phrase(
                "{path}: cannot be used as the key: {why}", path=str(path), why=str(error.strerror)
            )
        ) from None
    if len(key) != _BYTES:
        raise StoreError(
            phrase(
                "{path}: damaged key; delete it, and {when_lost}",
                path=str(path),
                when_lost=when_lost,
            )
        )
    return key


def _make(path: Path) -> None:
    """Of two who make it at the same time, the first one's key stays. Linking a whole file is
    atomic on network file systems too."""
    with tempfile.NamedTemporaryFile(prefix=".", suffix=".tmp", dir=path.parent) as file:
        file.write(secrets.token_bytes(_BYTES))
        file.flush()
        os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(file.name, path)
