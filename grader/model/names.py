"""Kernel names as people write them."""

from __future__ import annotations

import re

_LENGTH = re.compile(r"[0-9]{1,6}")  # a student can name a kernel _Z9999…


def kernel_name(mangled: str) -> str:
    """``sgemm<…>`` for ``_Z5sgemmILi8EEvPfS_iii``; anything else unchanged."""
    if not mangled.startswith("_Z"):
        return mangled
    at = 3 if mangled.startswith("_ZN") else 2
    names: list[str] = []
    while number := _LENGTH.match(mangled, at):
        start = number.end()
        at = start + int(number[0])
        names.append("(anonymous)" if "_GLOBAL__N_" in mangled[start:at] else mangled[start:at])
    if not names:
        return mangled
    return "::".join(names) + ("<…>" if mangled[at : at + 1] == "I" else "")
