"""Opens files that others may have made, without following links, blocking, or unlimited reads.

A name is looked up once. All checks use the descriptor, so nobody can exchange the file between a
check and its use.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

# Without O_NONBLOCK, opening a named pipe waits for a writer.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_LARGEST = 64 << 20  # bytes of a result, a roster or a manifest


class NotAFileError(OSError):
    """The file is not a plain file, or is too large. ``strerror`` says why."""

    def __init__(self, why: str) -> None:
        super().__init__(0, why)


def open_folder(name: str | Path, parent: int | None = None) -> int:
    """A descriptor of a folder that is no link. Raises NotAFileError or another OSError."""
    try:
        return os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=parent)
    except NotADirectoryError:
        kind = _kind(name, parent)
        raise NotAFileError(f"{kind}, not a folder" if kind else "not a folder") from None


def read(name: str | Path, limit: int = _LARGEST, parent: int | None = None) -> bytes:
    """The content of a plain file of at most ``limit`` bytes, in the folder open as ``parent``.

    Raises NotAFileError or another OSError.
    """
    try:
        descriptor = os.open(name, _FLAGS, dir_fd=parent)
    except OSError as error:
        # Neither a link nor a socket can be opened. What was a link may be something else by now.
        kind = "a link" if error.errno == errno.ELOOP else _kind(name, parent)
        if kind:
            raise NotAFileError(f"{kind}, not a plain file") from None
        raise
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise NotAFileError(f"{_KINDS[stat.S_IFMT(state.st_mode)]}, not a plain file")
        if state.st_size > limit:
            raise NotAFileError(f"larger than {limit >> 20} MiB")
        content = _all(descriptor, state.st_size, limit)
    finally:
        os.close(descriptor)
    if len(content) > limit:  # it grew
        raise NotAFileError(f"larger than {limit >> 20} MiB")
    return content


def _all(descriptor: int, expected: int, limit: int) -> bytes:
    """The rest of a file that had ``expected`` bytes; not much more than ``limit`` of it."""
    parts, size = [], 0
    while size <= limit and (part := os.read(descriptor, max(expected - size, 0) + 1)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _kind(name: str | Path, parent: int | None) -> str | None:
    """What it is instead of a plain file, for messages; None if it is one or does not exist."""
    try:
        state = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return None
    return _KINDS.get(stat.S_IFMT(state.st_mode))
