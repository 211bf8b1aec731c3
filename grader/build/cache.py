"""Finished builds on disk: what is used stays, the oldest go when there are too many.

Any number of graders share the folder without a lock. A build is taken by touching its folder; who
removes one first moves it aside, and puts it back if somebody has touched it meanwhile.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from grader.model import Record

KEPT_S = 3600.0  # whatever was used so recently may be in somebody's hands
_EVERY_S = 600.0  # counting thousands of builds takes a while on a network's disk
_STAMP = ".counted"


class Entry(Record):
    folder: Path
    used_ns: int  # when it was last taken or made
    size: int  # bytes


def touch(folder: Path) -> None:
    """Say that the build in ``folder`` is used; nothing where there is none or nobody may."""
    with suppress(OSError):
        os.utime(folder)


def tidy(builds: Path, limit: int) -> None:
    """``prune``, unless it was done a few minutes ago."""
    stamp = builds / _STAMP
    with suppress(OSError):
        if time.time() - stamp.stat().st_mtime < _EVERY_S:
            return
    stamp.touch()
    prune(builds, limit)


def prune(builds: Path, limit: int) -> None:
    """Remove the builds unused for longest until the others take ``limit`` bytes or less.

    What was used within the last ``KEPT_S`` seconds stays whatever it takes.
    """
    found = sorted(entries(builds), key=lambda entry: entry.used_ns)
    too_many = sum(entry.size for entry in found) - limit
    newest = time.time_ns() - int(KEPT_S * 1e9)
    for entry in found:
        if too_many <= 0 or entry.used_ns >= newest:
            return
        remove(entry)
        too_many -= entry.size  # somebody else may have been faster


def entries(builds: Path) -> list[Entry]:
    """Folders of builds, and what graders left that were killed."""
    found = []
    for folder in builds.iterdir():
        with suppress(OSError):  # gone meanwhile
            if folder.is_dir():
                size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
                found.append(Entry(folder=folder, used_ns=folder.stat().st_mtime_ns, size=size))
    return found


def remove(entry: Entry) -> None:
    """Unless it was used since it was counted."""
    aside = entry.folder.with_name(f"{entry.folder.name}.{os.getpid()}")
    with suppress(OSError):  # another grader was faster, or it is read-only
        if entry.folder.stat().st_mtime_ns != entry.used_ns:
            return
        entry.folder.rename(aside)
        if aside.stat().st_mtime_ns == entry.used_ns:
            shutil.rmtree(aside, ignore_errors=True)
        else:
            aside.rename(entry.folder)
