"""Looks at the machine's processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path


def statuses() -> dict[int, list[str]]:
    """Of every process the words of its ``stat`` behind its name: state, parent, …"""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # ended meanwhile
            found[int(stat.parent.name)] = (
                stat.read_text(errors="replace").rpartition(")")[2].split()
            )
    return found


def below(found: Mapping[int, Sequence[str]], besides: Collection[int] = ()) -> set[int]:
    """The processes of ``statuses`` below this one, but ``besides`` and what those start."""
    ours: set[int] = set()
    new = {os.getpid()}
    while new:
        new = {pid for pid, words in found.items() if int(words[1]) in new} - ours - set(besides)
        ours |= new
    return ours


def living(program: str, argument: str) -> list[int]:
    """The processes whose command line begins with these two words."""
    command = f"{program}\0{argument}".encode()
    found = []
    for pid in statuses():
        with suppress(OSError):  # ended meanwhile
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(command):
                found.append(pid)
    return found


def until(holds: Callable[[], object], seconds: float = 30) -> None:
    """Wait until ``holds`` says so."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
