"""Result documents on disk: ``<out>/<lab>/<student>/<source sha256, 12>-<device>.json``.

A document is written completely or not at all (temporary file, fsync, rename, fsync of the folder).
Reading checks it against the schema and its version.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from grader.base import (
    SCHEMA,
    SCHEMA_VERSION,
    LabRef,
    Result,
    StoreError,
    SubmissionRef,
    decode,
    moment,
    one_line,
)
from grader.labs import NotAFileError, read
from ptxsim.plan import Record
from ptxsim.text import phrase

_T = TypeVar("_T")
FORMER = ".former"  # folder: <lab file's sha256, 12>/<name of the document>
_MAX_NAME_BYTES = 200  # file systems allow 255; ours are often longer in UTF-8


class _Replaced(msgspec.Struct):
    lab: LabRef
    submission: SubmissionRef


class _Header(msgspec.Struct):
    """The fields to check before trusting the rest."""

    schema: str
    version: int


def result_path(out: Path, result: Result) -> Path:
    who = result.submission
    return document_path(out, result.lab.id, who.student, who.sha256, result.environment.device)


def document_path(out: Path, lab: str, student: str, sha256: str, device: str) -> Path:
    return out / folder_name(lab) / folder_name(student) / f"{sha256[:12]}-{device}.json"


def folder_name(name: str) -> str:
    """One folder name for any text: different texts never share one, and none leads outside.

    Letters, digits, ``-_.@+`` and inner spaces stay. Everything else becomes ``%XX`` of its UTF-8
    bytes. A very long name is shortened and gets a hash.
    """
    safe = ""
    for i, char in enumerate(name):
        if char.isalnum() or char in "-_@+" or (char in ". " and 0 < i < len(name) - 1):
            safe += char
        else:
            safe += "".join(f"%{byte:02X}" for byte in char.encode(errors="surrogateescape"))
    if safe and len(safe.encode()) <= _MAX_NAME_BYTES:
        return safe
    digest = hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:16]
    start = safe.encode()[: _MAX_NAME_BYTES // 2].decode(errors="ignore")
    return f"{start}%-{digest}"  # no character above becomes "%-"


def encode(result: Result) -> bytes:
    return msgspec.json.encode(result)


def save(out: Path, result: Result) -> Path:
    """Write the document. It replaces an older one for the same source and device, and keeps the
    times at which that was handed in; one by another lab file is kept in a hidden folder
    (``former``), so that a regrade can be compared.

    Raises StoreError naming the folder when it cannot be written.
    """
    path = result_path(out, result)
    # There may be none, or it is damaged.
    with contextlib.suppress(OSError, msgspec.MsgspecError, ValueError):
        content = read(path)
        older = decode(content, _Replaced)
        if older.lab.sha256 != result.lab.sha256:
            former_place = path.parent / FORMER / folder_name(older.lab.sha256[:12])
            write(former_place / path.name, content)
        if older.submission.sha256 == result.submission.sha256:
            result = _with_times(result, older.submission.submitted)
    write_document(path, result)
    return path


def add_hand_in(path: Path, time: str) -> None:
    """Note another time at which a stored result's source was handed in. Raises StoreError."""
    result = load(path)
    later = _with_times(result, (time,))
    if later != result:
        write_document(path, later)


def _with_times(result: Result, times: Iterable[str]) -> Result:
    """The result with further times of hand-in, each moment once, the oldest first. Raises
    ValueError."""
    known = {moment(time): time for time in (*times, *result.submission.submitted)}
    submitted = tuple(known[when] for when in sorted(known))
    who = msgspec.structs.replace(result.submission, submitted=submitted)
    return msgspec.structs.replace(result, submission=who)


def former(out: Path, lab: str) -> list[Path]:
    """The results of a lab that were replaced when its file had changed, sorted."""
    return sorted((out / folder_name(lab)).glob(f"*/{FORMER}/*/*.json"))


def write_document(path: Path, document: Record) -> None:
    """Write any document as indented JSON. Raises StoreError."""
    write(path, msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")


def write(path: Path, content: bytes, *, mode: int = 0o644, lasting: bool = True) -> None:
    """Write a file completely or not at all. Raises StoreError naming the folder.

    mode: its permissions, which the umask restricts. lasting: whether to wait until it would
    survive a power cut.
    """
    if path.is_dir():
        raise StoreError(phrase("{file}: a folder; name a file in it").given(file=str(path)))
    with _name_failures(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Ctrl-C too must not leave a partial file.
        with tempfile.TemporaryDirectory(prefix=".", suffix=".tmp", dir=path.parent) as scratch:
            ready = Path(scratch) / path.name
            with os.fdopen(os.open(ready, os.O_WRONLY | os.O_CREAT, mode), "wb") as file:
                file.write(content)
                if lasting:
                    file.flush()
                    os.fsync(file.fileno())
            ready.replace(path)
        if lasting:
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def check_folder(out: Path) -> None:
    """Find out before a long grade whether results can be written. Raises StoreError."""
    with _name_failures(out):
        there = next(each for each in (out, *out.absolute().parents) if each.exists())
        tempfile.TemporaryFile(dir=there).close()


@contextlib.contextmanager
def _name_failures(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        failed = phrase("{folder}: cannot be written: {why}; name another folder with --out")
        why = str(error.strerror)
        raise StoreError(failed.given(folder=one_line(folder), why=why)) from None


def stored(out: Path) -> Iterator[Path]:
    """List every file below ``out`` that is named like a result document, sorted.

    A folder that cannot be listed appears itself, so that reading it gives the reason.
    """
    return map(Path, _below(str(out), 2))


def _below(folder: str, depth: int) -> Iterator[str]:
    """Documents ``depth`` folders further down. Skips hidden files and folders."""
    try:
        with os.scandir(folder) as listing:
            found = sorted(entry.path for entry in listing if not entry.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError:
        yield folder
        return
    for path in found:
        if depth:
            yield from _below(path, depth - 1)
        elif path.endswith(".json"):
            yield path


def load(path: Path) -> Result:
    """Read a document back. Raises StoreError that names the file and what is wrong with it."""
    return load_as(path, Result)


def load_as(path: Path, kind: type[_T]) -> _T:
    """``load`` into a record that names only some of the fields, for reading many documents."""
    return load_document(path, kind, SCHEMA, SCHEMA_VERSION)


def load_document(path: Path, kind: type[_T], schema: str, version: int) -> _T:
    """Read any document that begins with this schema and version. Raises StoreError that names the
    file and what is wrong with it."""
    name = one_line(path)
    try:
        content = read(path)
    except OSError as error:
        why = error.why if isinstance(error, NotAFileError) else str(error.strerror)
        raise StoreError.saying("{place}: cannot be read: {why}", place=name, why=why) from None
    _check_version(name, content, schema, version)
    try:
        return decode(content, kind)
    except (msgspec.MsgspecError, ValueError) as error:
        damaged = phrase("{file}: damaged result document: {why}", file=name, why=_line(error))
        raise StoreError(damaged) from None


def _check_version(name: str, content: bytes, schema: str, version: int) -> None:
    """Raise StoreError for a document that this grader cannot read, whatever is in it."""
    try:
        header = decode(content, _Header)
    except (msgspec.MsgspecError, ValueError) as error:  # ValueError: not UTF-8
        foreign = phrase("{file}: not a result document: {why}", file=name, why=_line(error))
        raise StoreError(foreign) from None
    if header.schema != schema:
        other = phrase("{file}: schema {found}, expected {schema}", file=name)
        raise StoreError(other.given(found=repr(header.schema), schema=repr(schema)))
    known: dict[str, str | int] = {"file": name, "schema": schema, "version": header.version}
    if header.version > version:
        newer = phrase(
            "{file}: {schema} version {version} was written by a newer grader; this one reads up "
            "to version {newest}: upgrade it"
        )
        raise StoreError(newer.given(**known, newest=version))
    if header.version < version:
        older = phrase(
            "{file}: {schema} version {version} is older than this grader reads, which is from "
            "version {oldest} on: make it again"
        )
        raise StoreError(older.given(**known, oldest=version))


def _line(error: Exception) -> str:
    """An error in one line: msgspec quotes field names as they are."""
    return " ".join(str(error).split())
