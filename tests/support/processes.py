"""Looks at the machine's processes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def living(program: str, argument: str) -> list[int]:
    """The processes whose command line begins with these two words."""
    command = f"{program}\0{argument}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # ended meanwhile
            if path.read_bytes().startswith(command):
                found.append(int(path.parent.name))
    return found
