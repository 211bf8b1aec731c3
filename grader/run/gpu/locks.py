"""Locks of this machine, so that two graders do not do the same work, or time, at once."""

import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from grader.base import MachineError
from ptxsim.text import phrase


def lock_folder() -> Path:
    """This machine's folder for locks, private to the user. Raises MachineError.

    It is not in the cache folder, because several machines may share that.
    """
    folder = Path(tempfile.gettempdir()) / f"sgemm-grader-locks-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    state = folder.lstat()
    private = stat.S_ISDIR(state.st_mode) and not state.st_mode & 0o077
    if not private or state.st_uid != os.getuid():
        raise MachineError.saying(
            "{folder}: not a private folder of yours; remove it, or set TMPDIR to another folder",
            folder=str(folder),
        )
    return folder


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold ``path`` as a lock file, so that two graders do not do the same work at once.

    Yields whether it is held; without ``wait`` somebody else may hold it. Raises MachineError if
    ``path`` is not a regular file.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        unfit = phrase("{path}: cannot be a lock: {why}; remove it", why=str(error.strerror))
        raise MachineError(unfit.given(path=str(path))) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            odd = phrase("{path}: not a plain file, so it cannot be a lock; remove it")
            raise MachineError(odd.given(path=str(path)))
        held = True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            held = False
        yield held
    finally:
        os.close(descriptor)
