"""Stable names for a board that everybody may see.

The pseudonym is an HMAC of the student's name under the instructor's key. Without the key nobody
can compute it from a list of names; with the key a student keeps the same animal all term.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from grader.errors import StoreError
from grader.submission.reading import read

KEY_NAME = ".pseudonym-key"
_KEY_BYTES = 32
_ANIMALS = (
    *("badger", "beaver", "bison", "condor", "crane", "dolphin", "egret", "falcon"),
    *("ferret", "finch", "gecko", "heron", "ibex", "jackal", "kestrel", "lemur"),
    *("lynx", "magpie", "marten", "newt", "ocelot", "osprey", "otter", "panda"),
    *("petrel", "puffin", "quokka", "raven", "salmon", "tapir", "walrus", "wombat"),
)


def load_key(out: Path) -> bytes:
    """The key beside the results, made on first use and readable by its owner only.

    Raises StoreError.
    """
    path = out / KEY_NAME
    try:
        out.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            key = read(path)
        else:
            key = secrets.token_bytes(_KEY_BYTES)
            with os.fdopen(descriptor, "wb") as file:
                file.write(key)
    except OSError as error:
        raise StoreError(f"{path}: cannot be used as the key: {error.strerror}") from None
    if len(key) != _KEY_BYTES:
        raise StoreError(f"{path}: damaged key; delete it, and all pseudonyms change")
    return key


def pseudonym(key: bytes, student: str) -> str:
    """``otter-3fa9c1``."""
    digest = hmac.new(key, student.encode(errors="surrogateescape"), hashlib.sha256).digest()
    return f"{_ANIMALS[digest[0] % len(_ANIMALS)]}-{digest[1:4].hex()}"
