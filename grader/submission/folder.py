"""Reads a submission, once; compiles nothing.

A folder may hold notes, pictures or an old executable: files that are not CUDA source are skipped
and never reach the build. A source must be a regular, readable, reasonably small file. Links are
rejected, because a student hands in files, not the targets of links. Every later stage works on the
bytes read here, so the grader cannot compile one file and show another.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from grader.errors import Rejected, SubmissionError, one_line
from grader.model import Message, SourceFile, Submission, Verdict, verbatim
from grader.submission.reading import NotAFileError, open_folder, read

_SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".inl")
_MAX_FILES = 64
_MAX_ENTRIES = 4096  # of any kind, so that walking a giant tree ends
_MAX_FILE_BYTES = 1 << 20
_MAX_BYTES = 4 << 20  # of all files together
_MAX_DEPTH = 8
# Errors that the files themselves cause. Any other is the machine's fault.
_OF_THE_FILE = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENXIO, errno.ENOTDIR)


def load_submission(path: Path, main: str) -> Submission:
    """The source files in the folder ``path``, which is named like the student.

    main: the file that a lab asks for.

    Raises SubmissionError if there is no such folder, Rejected (FE) that names the file if its
    content cannot be graded, and OSError if the machine fails.
    """
    student = student_of(path)
    try:
        contents = _read_folder(path, main)
    except NotAFileError as error:
        if path.is_symlink():
            raise _refuse(f"{path.name}: a link; name the folder that it leads to") from None
        hint = f": name the folder, {path.parent}" if path.name == main else ""
        raise SubmissionError(f"{one_line(path)}: {error.strerror}{hint}") from None
    return _submission(path, student, contents, main)


def load_listed(path: Path, student: str, main: str) -> Submission:
    """The work of ``student`` in a list of submissions: a folder, or the file ``main`` itself.

    Raises as load_submission does.
    """
    try:
        contents = _read_folder(path, main)
    except NotAFileError:
        try:
            contents = {main: read(path, _MAX_FILE_BYTES)}
        except NotAFileError as error:
            raise _refuse(f"{one_line(path.name)}: {error.strerror}") from None
        except OSError as error:
            raise _no_such(path, error) from None
    return _submission(path, student, contents, main)


def student_of(path: Path) -> str:
    """The student, from the folder's own name. Raises SubmissionError.

    A link is not followed: its target may belong to another student.
    """
    name = path.name if path.name not in ("", "..") else Path(os.path.realpath(path)).name
    try:
        name.encode()
    except UnicodeEncodeError:
        raise SubmissionError(f"{name!a}: the folder's name is not UTF-8; rename it") from None
    return name


def copy_sources(submission: Submission, target: Path) -> None:
    """Write the files below ``target``, exactly as they were read."""
    for name, content in submission.contents.items():
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)


def source_texts(contents: Mapping[str, bytes]) -> dict[str, str]:
    """The texts by name, for excerpts: what was compiled, with the line ends that nvcc sees."""
    return {
        name: content.decode(errors="replace").replace("\r\n", "\n")
        for name, content in contents.items()
    }


def left_out(submission: Submission) -> str:
    """A remedy to add to a message: which .cu files are not compiled; "" when there are none."""
    text = b"\n".join(submission.contents.values())
    others = [
        name for name in submission.contents if name.endswith(".cu") and name != submission.main
    ]
    missing = [name for name in others if not _is_included(name, text)]
    if not missing:
        return ""
    lines = ", ".join(f'#include "{name}"' for name in missing)
    return f"; only {submission.main} is compiled: write {lines} in it"


def _is_included(name: str, text: bytes) -> bool:
    last = re.escape(name.rpartition("/")[2].encode())
    return re.search(rb"^[ \t]*#[ \t]*include[ \t]*[<\"][^\n]*" + last, text, re.M) is not None


def _read_folder(path: Path, main: str) -> Mapping[str, bytes]:
    """Raises NotAFileError when the path itself is no folder."""
    try:
        descriptor = open_folder(path)
    except NotAFileError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise _no_such(path, error) from None
    try:
        return _Walk(descriptor, main).contents
    finally:
        os.close(descriptor)


def _no_such(path: Path, error: OSError | ValueError) -> Exception:
    if isinstance(error, FileNotFoundError):
        return SubmissionError(f"{one_line(path)}: no such folder")
    if isinstance(error, ValueError) or error.errno in (*_OF_THE_FILE, errno.ENAMETOOLONG):
        why = error.strerror if isinstance(error, OSError) else error
        return SubmissionError(f"{one_line(path)}: cannot be read: {why}")
    return error


class _Walk:
    """Reads every source file below a folder. Hidden files and folders are left out."""

    def __init__(self, folder: int, main: str) -> None:
        self._main = main
        self.contents: dict[str, bytes] = {}
        self._entries = 0
        self._bytes = 0
        self._walk(folder, "", 0)

    def _walk(self, folder: int, prefix: str, depth: int) -> None:
        for entry in self._list(folder):
            name = prefix + entry.name
            try:
                if entry.is_symlink():
                    raise _refuse(f"{one_line(name)}: a link; hand in the file or folder itself")
                if not entry.is_dir(follow_symlinks=False):
                    if name.endswith(_SUFFIXES):
                        self._read(name, entry.name, folder)
                    continue
                if name == self._main:
                    raise NotAFileError("a folder, not a plain file")
                if depth == _MAX_DEPTH:
                    raise NotAFileError(f"more than {_MAX_DEPTH} folders deep")
                inner = open_folder(entry.name, folder)
                try:
                    self._walk(inner, f"{name}/", depth + 1)
                finally:
                    os.close(inner)
            except NotAFileError as error:
                raise _refuse(f"{one_line(name)}: {error.strerror}") from None
            except OSError as error:
                if error.errno not in _OF_THE_FILE:
                    raise
                raise _refuse(f"{one_line(name)}: cannot be read: {error.strerror}") from None

    def _list(self, folder: int) -> list[os.DirEntry[str]]:
        visible = []
        with os.scandir(folder) as found:
            for entry in found:
                self._entries += 1
                if self._entries > _MAX_ENTRIES:
                    raise _refuse(f"more than {_MAX_ENTRIES} files; hand in the source files only")
                if not entry.name.startswith("."):
                    visible.append(entry)
        return sorted(visible, key=lambda entry: entry.name)

    def _read(self, name: str, own: str, folder: int) -> None:
        if not name.isprintable():  # control characters, and bytes that are no UTF-8
            raise _refuse(f"{name!a}: use plain letters and digits in file names")
        if len(self.contents) == _MAX_FILES:
            raise _refuse(f"more than {_MAX_FILES} source files")
        content = read(own, _MAX_FILE_BYTES, folder)
        self._bytes += len(content)
        if self._bytes > _MAX_BYTES:
            raise _refuse(f"the source files are larger than {_MAX_BYTES >> 20} MiB together")
        self.contents[name] = content


def _submission(path: Path, student: str, contents: Mapping[str, bytes], main: str) -> Submission:
    if main not in contents:
        raise _refuse(f"{main} is missing from the folder {path.absolute().name}")
    ordered = dict(sorted(contents.items()))
    files = tuple(_checked(name, content, main) for name, content in ordered.items())
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0{file.sha256}\0".encode())
    return Submission(
        student=student,
        folder=path.absolute(),
        files=files,
        contents=ordered,
        sha256=digest.hexdigest(),
        main=main,
    )


def _checked(name: str, content: bytes, main: str) -> SourceFile:
    """Raises Rejected (FE) unless it is text."""
    if name == main and not content.strip():
        raise _refuse(f"{name}: the file is empty")
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _refuse(f"{name}:{line}: not UTF-8 text; save the file as UTF-8") from None
    if b"\0" in content:
        raise _refuse(f"{name}: holds zero bytes; it is not a text file")
    return SourceFile(name=name, sha256=hashlib.sha256(content).hexdigest(), size=len(content))


def _refuse(message: Message | str) -> Rejected:
    said = message if isinstance(message, Message) else verbatim(message)
    return Rejected(Verdict.FE, said)
