"""Finished builds on disk: what is used stays, the oldest go when there are too many.

Any number of graders share the folder without a lock. A build is taken by touching its folder. A
grader that removes one moves it aside first, and puts it back if somebody has touched it meanwhile.
Each build lists the hashes of its files, so that one which is damaged is made again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from grader.model import Record
from grader.submission.reading import open_folder, read

_CARD = "build.json"
_LARGEST = 64 << 20  # bytes of a file
KEPT_S = 3600.0  # whatever was used so recently may be in somebody's hands
_EVERY_S = 600.0  # counting thousands of builds takes a while on a network's disk
_STAMP = ".counted"


class Entry(Record):
    folder: Path
    used_ns: int  # when it was last taken or made
    size: int  # bytes


class _Contents(Record):
    """What ``_CARD`` holds."""

    sha256: dict[str, str]  # of the other files
    card: msgspec.Raw


def keep(folder: Path, card: bytes, files: Mapping[str, bytes]) -> None:
    """Put a build there by rename, so that a reader sees all of its files or none."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        ready = Path(name) / "build"
        ready.mkdir()
        for each, content in files.items():
            (ready / each).write_bytes(content)
        hashes = {each: hashlib.sha256(content).hexdigest() for each, content in files.items()}
        contents = _Contents(sha256=hashes, card=msgspec.Raw(card))
        (ready / _CARD).write_bytes(msgspec.json.encode(contents))
        with suppress(OSError):  # another grader was faster; its build is the same
            ready.rename(folder)


def find(folder: Path, names: Iterable[str]) -> bytes | None:
    """The card of the build in ``folder``, which is used from now on.

    None when there is none, or one whose files are not those that were kept; that one is removed.
    """
    touch(folder)
    try:
        descriptor = open_folder(folder)
    except FileNotFoundError:
        return None
    except OSError:
        _discard(folder)
        return None
    try:
        contents = msgspec.json.decode(read(_CARD, _LARGEST, descriptor), type=_Contents)
        for name in names:
            content = read(name, _LARGEST, descriptor)
            if hashlib.sha256(content).hexdigest() != contents.sha256.get(name):
                break
        else:
            return bytes(contents.card)
    except (OSError, msgspec.DecodeError):
        pass
    finally:
        os.close(descriptor)
    _discard(folder)
    return None


def _discard(folder: Path) -> None:
    """Remove what lies there, a link too, as far as that is possible."""
    aside = folder.with_name(f"{folder.name}.{os.getpid()}")
    with suppress(OSError):
        folder.rename(aside)
        if aside.is_symlink():
            aside.unlink()
        else:
            shutil.rmtree(aside, ignore_errors=True)


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
