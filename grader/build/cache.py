"""Finished builds on disk: recently used builds stay, the oldest go if there are too many.

Any number of graders share the folder without a lock. A grader claims a build by touching its
folder. To remove a build, it first moves the build aside, and puts it back if another grader has
touched it meanwhile. Each build lists the hashes of its files, so damage is detected and the build
repeated.
"""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from grader.base import decode
from grader.labs import open_folder, read
from ptxsim.plan import Record

_CARD = "build.json"
_LARGEST = 64 << 20  # bytes of a file
KEPT_S = 3600.0  # a build used this recently may still be in use
_EVERY_S = 600.0  # counting thousands of builds is slow on a network disk
_STAMP = ".counted"


class CachedBuild(Record):
    folder: Path
    used_ns: int  # when it was last taken or made
    size: int  # bytes


class _Contents(Record):
    """Contents of the file ``_CARD``."""

    sha256: dict[str, str]  # of the other files
    card: msgspec.Raw


def keep(folder: Path, card: bytes, files: Mapping[str, bytes]) -> None:
    """Store a build by rename, so that a reader sees all of its files or none."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        ready = Path(name) / "build"
        ready.mkdir()
        for each, content in files.items():
            (ready / each).write_bytes(content)
        contents = _Contents(sha256=_hashes(files), card=msgspec.Raw(card))
        (ready / _CARD).write_bytes(msgspec.json.encode(contents))
        with suppress(OSError):  # another grader was faster; its build is the same
            ready.rename(folder)


def _hashes(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def find(folder: Path, names: Iterable[str]) -> bytes | None:
    """The card of the build in ``folder``, which counts as used from now on; None if there is none.
    A build whose files have changed is removed."""
    touch(folder)
    if not os.path.lexists(folder):
        return None
    with suppress(OSError, msgspec.DecodeError), ExitStack() as closing:
        descriptor = open_folder(folder)
        closing.callback(os.close, descriptor)
        contents = decode(read(_CARD, _LARGEST, descriptor), _Contents)
        files = {name: read(name, _LARGEST, descriptor) for name in names}
        if _hashes(files).items() <= contents.sha256.items():
            return bytes(contents.card)
    _discard(folder)
    return None


def _discard(folder: Path) -> None:
    """Remove ``folder`` as far as possible, even if it is a link."""
    aside = folder.with_name(f"{folder.name}.{os.getpid()}")
    with suppress(OSError):
        folder.rename(aside)
        if aside.is_symlink():
            aside.unlink()
        else:
            shutil.rmtree(aside, ignore_errors=True)


def touch(folder: Path) -> None:
    """Mark the build in ``folder`` as used, if it exists and may be written."""
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
    """Remove the least recently used builds until the others take at most ``limit`` bytes; those
    used within the last ``KEPT_S`` seconds always stay."""
    found = sorted(entries(builds), key=lambda entry: entry.used_ns)
    too_many = sum(entry.size for entry in found) - limit
    newest = time.time_ns() - int(KEPT_S * 1e9)
    for entry in found:
        if too_many <= 0 or entry.used_ns >= newest:
            return
        remove(entry)
        too_many -= entry.size  # another grader may have been faster


def entries(builds: Path) -> list[CachedBuild]:
    """Folders of builds, and leftovers of killed graders."""
    found = []
    for folder in builds.iterdir():
        with suppress(OSError):  # gone meanwhile
            if folder.is_dir():
                size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
                used = folder.stat().st_mtime_ns
                found.append(CachedBuild(folder=folder, used_ns=used, size=size))
    return found


def remove(entry: CachedBuild) -> None:
    """Remove a build unless it was used since it was counted."""
    aside = entry.folder.with_name(f"{entry.folder.name}.{os.getpid()}")
    with suppress(OSError):  # another grader was faster, or it is read-only
        if entry.folder.stat().st_mtime_ns != entry.used_ns:
            return
        entry.folder.rename(aside)
        if aside.stat().st_mtime_ns == entry.used_ns:
            shutil.rmtree(aside, ignore_errors=True)
        else:
            aside.rename(entry.folder)
