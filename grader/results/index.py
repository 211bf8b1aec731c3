"""What many commands ask of the stored results, kept beside them so that it is read once.

The index is one file for each user, ``<out>/.index-<user>``. It is derived: everything in it comes
from the documents, and without it they are read again. It never decides which results there are:
every reader lists the folders. An entry counts only if the document has the name, size, inode and
times (of content and of status, in nanoseconds) that it had when it was read, and if these times
were old enough then, by the clock of the same file system, that any later change shows in them.

- A key in the user's cache folder seals the file. One that was damaged, edited or made by somebody
  else or by another version of the grader is ignored and replaced.
- It is a plain file, written whole and renamed, not a database: SQLite needs locks that network
  file systems often lack, and its log needs memory that machines share. Here nobody waits. Of two
  writers one wins, and what the other knew is read again.
- A network file system may answer with attributes that it remembers. Listing a folder asks the
  server for the folder's, so a document that was renamed into place, as the grader does it, shows
  at once. Another machine's edit inside a file shows when the memory ends (on Linux within a
  minute).
"""

from __future__ import annotations

import gc
import hashlib
import hmac
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

import grader
from grader.errors import GraderError, StoreError
from grader.model import phrase
from grader.results import store
from grader.results.entries import Entry, read_entry
from grader.results.keys import load_key
from grader.submission.reading import read
from grader.toolchain.native import cache_folder

_SEAL_BYTES = 32
_LARGEST = 1 << 30  # bytes of an index
_COARSE_NS = 2_000_000_000  # FAT's clock, the coarsest
_MAKERS = ("labs", "model", "problems", "results")  # rooms whose code decides what an entry says


class _Signature(NamedTuple):
    """What changes when a document does."""

    size: int
    content_ns: int  # mtime
    status_ns: int  # ctime, which nobody can set
    inode: int


_Known = tuple[_Signature, Entry]
_DECODER = msgspec.msgpack.Decoder(dict[str, _Known])


class Stored(NamedTuple):
    """A result document: ``store.load(path)`` reads all of it."""

    path: Path
    entry: Entry


class Index(NamedTuple):
    """All results below a folder, and one line for each file that is not a result."""

    documents: tuple[Stored, ...]  # sorted by path
    complaints: tuple[str, ...]

    def of(self, student: str, lab: str | None = None) -> tuple[Stored, ...]:
        """The results of one student, the oldest grading first. lab: its id."""
        return tuple(
            sorted(
                (
                    each
                    for each in self.documents
                    if each.entry.submission.student == student and lab in (None, each.entry.lab.id)
                ),
                key=lambda each: each.entry.created,
            )
        )


def read_index(out: Path) -> Index:
    """The results below ``out``; reads only the documents that changed since the last time."""
    with _no_collections():
        return _read(out, _Seal.find(out))


def read_entries(out: Path) -> tuple[list[Entry], list[str]]:
    """All results below ``out``, and one line for each file that is not a result."""
    index = read_index(out)
    return [each.entry for each in index.documents], list(index.complaints)


def _read(out: Path, seal: _Seal | None) -> Index:
    known = seal.opened() if seal else {}
    kept: dict[str, _Known] = {}
    documents: list[Stored] = []
    complaints: list[str] = []
    now: int | None = None
    begin = len(str(out)) + 1
    for name, listing in store.listed(out):
        path = Path(name)
        signature = _signature(listing)
        remembered = known.get(name[begin:])
        if remembered and remembered[0] == signature:
            kept[name[begin:]] = remembered
            documents.append(Stored(path, remembered[1]))
            continue
        now = now or _clock(out)
        try:
            entry = read_entry(path)
        except StoreError as error:
            complaints.append(str(error))
            continue
        documents.append(Stored(path, entry))
        if signature and signature == _signature(path) and _settled(signature, now):
            kept[name[begin:]] = (signature, entry)
    if seal and kept != known:
        seal.close(kept)
    return Index(tuple(documents), tuple(complaints))


@contextmanager
def _no_collections() -> Iterator[None]:
    """Without the garbage collector, which would look at all entries again for every few new ones,
    and also later, when something is made of them. It took most of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def _signature(file: os.DirEntry[str] | Path | None) -> _Signature | None:
    try:
        state = file.stat(follow_symlinks=False) if file else None
    except OSError:
        return None
    if state is None:
        return None
    return _Signature(state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)


def _settled(signature: _Signature, now: int) -> bool:
    """Whether a change after ``now`` cannot leave the signature as it is."""
    return max(signature.content_ns, signature.status_ns) < now - _COARSE_NS


def _clock(out: Path) -> int:
    """The time on the file system's own clock, which may be a server's; 0 where nothing can be
    written, and so nothing is kept."""
    try:
        with tempfile.TemporaryFile(dir=out) as file:
            return os.fstat(file.fileno()).st_ctime_ns
    except OSError:
        return 0


class _Seal:
    """The index file of one user, and the key that proves that this user wrote it."""

    def __init__(self, path: Path, key: bytes) -> None:
        self._path = path
        self._key = key
        self._makers = _code()

    @staticmethod
    def find(out: Path) -> _Seal | None:
        """None where this user cannot have a key."""
        try:
            key = load_key(
                cache_folder() / "index-key", phrase("indexes of results are made again")
            )
        except GraderError:
            return None
        return _Seal(out / f".index-{os.getuid()}", key)

    def opened(self) -> dict[str, _Known]:
        """What the index says; nothing if there is the least doubt about it."""
        try:
            content = read(self._path, _LARGEST)
        except OSError:
            return {}
        if not hmac.compare_digest(content[:_SEAL_BYTES], self._seal(content[_SEAL_BYTES:])):
            return {}
        try:
            return _DECODER.decode(content[_SEAL_BYTES:])
        except (msgspec.MsgspecError, ValueError):
            return {}

    def close(self, kept: dict[str, _Known]) -> None:
        """Write the index, if that is possible: it can always be made again."""
        try:
            content = msgspec.msgpack.encode(kept)
            store.write(self._path, self._seal(content) + content, mode=0o600, lasting=False)
        except (StoreError, UnicodeEncodeError):  # a name that is not UTF-8
            return

    def _seal(self, content: bytes) -> bytes:
        digest = hashlib.blake2b(self._makers, key=self._key, digest_size=_SEAL_BYTES)
        digest.update(content)
        return digest.digest()


def _code() -> bytes:
    """A digest of the code that makes entries: after a change of it they may say something else."""
    package = Path(grader.__file__).parent
    digest = hashlib.blake2b(grader.__version__.encode())
    for path in sorted(path for room in _MAKERS for path in (package / room).rglob("*.py")):
        content = path.read_bytes()
        digest.update(f"\0{path.name} {len(content)}\0".encode() + content)
    return digest.digest()
