"""Mangled names as a reader of the source knows them."""

from __future__ import annotations

import re

_LENGTH = re.compile(r"\d+")


def plain_name(mangled: str) -> str:
    """The last identifier of a mangled C++ name: "_ZZ1kvE2As" → "As"."""
    mangled, _, _ = mangled.partition("@")  # the scope it is declared in
    name, at = mangled, 0
    if not mangled.startswith("_Z"):
        return mangled
    while match := _LENGTH.search(mangled, at):
        length = int(match[0])
        candidate = mangled[match.end() : match.end() + length]
        if len(candidate) == length and candidate.isidentifier():
            name, at = candidate, match.end() + length
        else:
            at = match.end()
    return name
