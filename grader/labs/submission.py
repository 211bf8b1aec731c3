"""A submission's folder: its files, read once; files that others made are opened safely."""

import errno
import hashlib
import itertools
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

import grader
from grader.base import Rejected, UsageError, Verdict, one_line
from ptxsim.plan import Record
from ptxsim.text import Message, phrase

SUFFIXES = (".cu", ".cuh", ".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp", ".tpp")
_MAX_FILES = 64
_MAX_ENTRIES = 4096  # of any kind, so that walking a giant tree ends
_MAX_FILE_BYTES = 1 << 20
_MAX_BYTES = 4 << 20  # of all files together
_MAX_DEPTH = 8
# Errors that the files themselves cause. Any other is the machine's fault.
_OF_THE_FILE = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENXIO, errno.ENOTDIR)


class SubmissionError(UsageError):
    """There is no folder to grade."""


class Entrant(Record):
    """One student's work as it was handed in."""

    student: str
    source: Path  # a folder, or one file that is the whole submission; not yet looked at
    submitted: str | None = None  # when it was handed in, ISO 8601 with a zone; null: not known


class SourceFile(Record):
    name: str  # path inside the submission folder, '/' separated
    sha256: str
    size: int  # bytes


class SourceLine(Record):
    """A line, and where it stands in the submission."""

    file: str
    number: int
    text: str


class Submission(Record):
    """The file to hand in and any local headers, exactly as read; not yet compiled."""

    student: str  # the name in the list of submissions
    folder: Path  # absolute; for messages only: it is never read again
    files: tuple[SourceFile, ...]  # sorted by name; what the build may see
    contents: Mapping[str, bytes]  # of ``files`` by name: what is compiled, hashed and shown
    sha256: str  # over names and contents of ``files``
    main: str  # of ``files``: the one that is compiled
    defines: tuple[str, ...] = ()  # macros that the build gets: "BM=64"


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
            link = phrase("a link; name the folder that it leads to")
            raise _refuse(link, path.name) from None
        why = error.why
        if path.name == main:
            why = phrase("{what}: name the folder, {folder}", what=why, folder=str(path.parent))
        raise SubmissionError.saying("{place}: {what}", place=one_line(path), what=why) from None
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
            raise _refuse(error.why, path.name) from None
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
        raise SubmissionError.saying("{place}: {what}", place=ascii(name), what=words) from None
    return name


def submissions_in(path: Path, main: str) -> tuple[str, ...]:
    """The folders right below ``path`` that hold a ``main``, if ``path`` itself holds none."""
    try:
        names = sorted(each.name for each in path.iterdir())
    except OSError:
        return ()
    if main in names:
        return ()
    own = (name for name in names if not name.startswith("."))
    return tuple(name for name in own if os.path.isfile(path / name / main))  # noqa: PTH113 - quiet


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
    missing = [
        name
        for name in submission.contents
        if name.endswith(".cu") and name != submission.main and not _is_included(name, text)
    ]
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
                    raise NotAFileError(phrase("a link; hand in the file or folder itself"))
                if not entry.is_dir(follow_symlinks=False):
                    if name.endswith(SUFFIXES):
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
                raise _refuse(error.why, name) from None
            except OSError as error:
                if error.errno not in _OF_THE_FILE:
                    raise
                words = phrase("cannot be read: {why}", why=error.strerror or "")
                raise _refuse(words, name) from None

    def _list(self, folder: int) -> list[os.DirEntry[str]]:
        with os.scandir(folder) as found:
            entries = list(itertools.islice(found, _MAX_ENTRIES + 1 - self._entries))
        self._entries += len(entries)
        if self._entries > _MAX_ENTRIES:
            words = phrase(
                "more than {most} files; hand in the source files only", most=_MAX_ENTRIES
            )
            raise _refuse(words)
        visible = (entry for entry in entries if not entry.name.startswith("."))
        return sorted(visible, key=lambda entry: entry.name)

    def _read(self, name: str, own: str, folder: int) -> None:
        if not name.isprintable():  # control characters, and bytes that are no UTF-8
            raise _refuse(phrase("use plain letters and digits in file names"), ascii(name))
        if len(self.contents) == _MAX_FILES:
            raise _refuse(phrase("more than {most} source files", most=_MAX_FILES))
        content = read(own, _MAX_FILE_BYTES, folder)
        self._bytes += len(content)
        if self._bytes > _MAX_BYTES:
            most = _MAX_BYTES >> 20
            raise _refuse(phrase("the source files are larger than {most} MiB together", most=most))
        self.contents[name] = content


def _submission(path: Path, student: str, contents: Mapping[str, bytes], main: str) -> Submission:
    if main not in contents:
        folder = path.absolute().name
        raise _refuse(
            phrase("{main} is missing from the folder {folder}", main=main, folder=folder)
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
        raise _refuse(phrase("the file is empty"), name)
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _refuse(phrase("not UTF-8 text; save the file as UTF-8"), f"{name}:{line}") from None
    if b"\0" in content:
        raise _refuse(phrase("holds zero bytes; it is not a text file"), name)
    return SourceFile(name=name, sha256=hashlib.sha256(content).hexdigest(), size=len(content))


def _about(name: object, what: Message) -> Message:
    return phrase("{place}: {what}", place=one_line(name), what=what)


def _refuse(words: Message, name: object = None) -> Rejected:
    """FE, with the name of the file that ``words`` are about."""
    return Rejected(Verdict.FE, words if name is None else _about(name, words))


# --- reading -----------------------------------------------------------------------------------

# Without O_NONBLOCK, opening a named pipe waits for a writer.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = {
    stat.S_IFLNK: phrase("a link"),
    stat.S_IFDIR: phrase("a folder"),
    stat.S_IFIFO: phrase("a named pipe"),
    stat.S_IFSOCK: phrase("a socket"),
    stat.S_IFCHR: phrase("a device"),
    stat.S_IFBLK: phrase("a device"),
}
_LARGEST = 64 << 20  # bytes of a result, a roster or a manifest


class NotAFileError(OSError):
    """The file is not a plain file, or is too large. ``why``, in English ``strerror``."""

    def __init__(self, why: Message) -> None:
        super().__init__(0, str(why))
        self.why = why


def open_folder(name: str | Path, parent: int | None = None) -> int:
    """A descriptor of a folder that is no link. Raises NotAFileError or another OSError."""
    try:
        return os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=parent)
    except NotADirectoryError:
        kind = _kind(name, parent)
        what = phrase("{kind}, not a folder", kind=kind) if kind else phrase("not a folder")
        raise NotAFileError(what) from None


def read(name: str | Path, limit: int = _LARGEST, parent: int | None = None) -> bytes:
    """The content of a plain file of at most ``limit`` bytes, in the folder open as ``parent``.

    Raises NotAFileError or another OSError.
    """
    try:
        descriptor = os.open(name, _FLAGS, dir_fd=parent)
    except OSError as error:
        # Neither a link nor a socket can be opened. What was a link may be something else by now.
        kind = phrase("a link") if error.errno == errno.ELOOP else _kind(name, parent)
        if kind:
            raise NotAFileError(phrase("{kind}, not a plain file", kind=kind)) from None
        raise
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            kind = _KINDS[stat.S_IFMT(state.st_mode)]
            raise NotAFileError(phrase("{kind}, not a plain file", kind=kind))
        content = b""
        if state.st_size <= limit:
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                content = file.read(limit + 1)
    finally:
        os.close(descriptor)
    if max(state.st_size, len(content)) > limit:  # it may have grown
        raise NotAFileError(phrase("larger than {most} MiB", most=limit >> 20))
    return content


def _kind(name: str | Path, parent: int | None) -> Message | None:
    """Name the kind of a file that is no plain file, for messages; None if it is plain or does not
    exist."""
    try:
        state = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return None
    return _KINDS.get(stat.S_IFMT(state.st_mode))


# --- provided ----------------------------------------------------------------------------------

REFERENCE = "reference"


def provided(name: str) -> tuple[Path, ...]:
    """The folders called ``name``: the one here, unless it is a submission of this name, then the
    package's if it is a different one."""
    package = (Path(grader.__file__).parent / "provided" / name).resolve()
    here = [] if name == REFERENCE and any(Path().glob(f"{name}/*.cu")) else [Path(name)]
    distinct = {place.resolve(): place for place in (package, *here) if place.is_dir()}
    return tuple(reversed(distinct.values()))
