"""Stable names for a board that everybody may see.

The pseudonym is an HMAC of the student's name under the instructor's key. Without the key nobody
can compute it from a list of names; with the key a student keeps the same animal all term.
"""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from grader.model import phrase
from grader.results.keys import load_key

KEY_NAME = ".pseudonym-key"
_ANIMALS = (
    *("badger", "beaver", "bison", "condor", "crane", "dolphin", "egret", "falcon"),
    *("ferret", "finch", "gecko", "heron", "ibex", "jackal", "kestrel", "lemur"),
    *("lynx", "magpie", "marten", "newt", "ocelot", "osprey", "otter", "panda"),
    *("petrel", "puffin", "quokka", "raven", "salmon", "tapir", "walrus", "wombat"),
)


def load_pseudonym_key(out: Path) -> bytes:
    """The key beside the results. Raises StoreError."""
    return load_key(out / KEY_NAME, phrase("all pseudonyms change"))


def pseudonym(key: bytes, student: str) -> str:
    """``otter-3fa9c1``."""
    digest = hmac.new(key, student.encode(errors="surrogateescape"), hashlib.sha256).digest()
    return f"{_ANIMALS[digest[0] % len(_ANIMALS)]}-{digest[1:4].hex()}"
