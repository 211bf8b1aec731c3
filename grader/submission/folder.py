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
from grader.model import Message, SourceFile, Submission, Verdict, phrase
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
            words = phrase("a link; name the folder that it leads to")
            raise _refuse(_about(path.name, words)) from None
        why: Message | str = str(error.strerror)
        if path.name == main:
            why = phrase("{what}: name the folder, {folder}", what=why, folder=str(path.parent))
        raise SubmissionError(phrase("{place}: {what}", place=one_line(path), what=why)) from None
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
            raise _refuse(_about(path.name, error.why)) from None
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
        words = phrase("the folder's name is not UTF-8; rename it")
        raise SubmissionError(phrase("{place}: {what}", place=ascii(name), what=words)) from None
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


def with_hint(message: Message, submission: Submission) -> Message:
    """The message, and which .cu files are not compiled, where there are some."""
    text = b"\n".join(submission.contents.values())
    others = [
        name for name in submission.contents if name.endswith(".cu") and name != submission.main
    ]
    missing = [name for name in others if not _is_included(name, text)]
    if not missing:
        return message
    return phrase(
        "{what}; only {main} is compiled: write {lines} in it",
        what=message,
        main=submission.main,
        lines=", ".join(f'#include "{name}"' for name in missing),
    )


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
        return SubmissionError(_about(path, phrase("no such folder")))
    if isinstance(error, ValueError) or error.errno in (*_OF_THE_FILE, errno.ENAMETOOLONG):
        why = error.strerror if isinstance(error, OSError) else error
        return SubmissionError(_about(path, phrase("cannot be read: {why}", why=str(why))))
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
                    words = phrase("a link; hand in the file or folder itself")
                    raise _refuse(_about(name, words))
                if not entry.is_dir(follow_symlinks=False):
                    if name.endswith(_SUFFIXES):
                        self._read(name, entry.name, folder)
                    continue
                if name == self._main:
                    raise NotAFileError(phrase("a folder, not a plain file"))
                if depth == _MAX_DEPTH:
                    raise NotAFileError(phrase("more than {most} folders deep", most=_MAX_DEPTH))
                inner = open_folder(entry.name, folder)
                try:
                    self._walk(inner, f"{name}/", depth + 1)
                finally:
                    os.close(inner)
            except NotAFileError as error:
                raise _refuse(_about(name, error.why)) from None
            except OSError as error:
                if error.errno not in _OF_THE_FILE:
                    raise
                words = phrase("cannot be read: {why}", why=error.strerror or "")
                raise _refuse(_about(name, words)) from None

    def _list(self, folder: int) -> list[os.DirEntry[str]]:
        visible = []
        with os.scandir(folder) as found:
            for entry in found:
                self._entries += 1
                if self._entries > _MAX_ENTRIES:
                    raise _refuse(
                        phrase(
                            "more than {most} files; hand in the source files only",
                            most=_MAX_ENTRIES,
                        )
                    )
                if not entry.name.startswith("."):
                    visible.append(entry)
        return sorted(visible, key=lambda entry: entry.name)

    def _read(self, name: str, own: str, folder: int) -> None:
        if not name.isprintable():  # control characters, and bytes that are no UTF-8
            words = phrase("use plain letters and digits in file names")
            raise _refuse(phrase("{place}: {what}", place=ascii(name), what=words))
        if len(self.contents) == _MAX_FILES:
            raise _refuse(phrase("more than {most} source files", most=_MAX_FILES))
        content = read(own, _MAX_FILE_BYTES, folder)
        self._bytes += len(content)
        if self._bytes > _MAX_BYTES:
            raise _refuse(
                phrase(
                    "the source files are larger than {most} MiB together", most=_MAX_BYTES >> 20
                )
            )
        self.contents[name] = content


def _submission(path: Path, student: str, contents: Mapping[str, bytes], main: str) -> Submission:
    if main not in contents:
        raise _refuse(
            phrase(
                "{main} is missing from the folder {folder}",
                main=main,
                folder=path.absolute().name,
            )
        )
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
        raise _refuse(_about(name, phrase("the file is empty")))
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        words = phrase("not UTF-8 text; save the file as UTF-8")
        raise _refuse(_about(f"{name}:{line}", words)) from None
    if b"\0" in content:
        raise _refuse(_about(name, phrase("holds zero bytes; it is not a text file")))
    return SourceFile(name=name, sha256=hashlib.sha256(content).hexdigest(), size=len(content))


def _about(name: object, what: Message) -> Message:
    return phrase("{place}: {what}", place=one_line(name), what=what)


def _refuse(message: Message) -> Rejected:
    return Rejected(Verdict.FE, message)
