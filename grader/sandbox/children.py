"""Child processes that never outlive the grader."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_SET_DUMPABLE = 4  # of prctl
_PATIENCE_S = 30  # for the launcher to end what it started, on a busy machine


@contextmanager
def started(
    command: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    handed: tuple[int, ...] = (),
    stdin: int = subprocess.DEVNULL,
    stderr: int | IO[bytes] = subprocess.PIPE,
    *,
    supervised: bool = False,
) -> Iterator[subprocess.Popen[bytes]]:
    """A child in its own session; the rest of its process group dies with the context.

    As for ``end`` if the child is ``supervised``.
    """
    process = None
    try:
        try:
            with _uninterrupted():  # a child that is not yet registered would outlive us
                process = subprocess.Popen(
                    command,
                    cwd=cwd,
                    env=env,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    pass_fds=handed,
                    start_new_session=True,
                )
        finally:
            for fd in handed:
                os.close(fd)
        yield process
    finally:
        if process is not None:
            end(process, supervised=supervised)
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    with suppress(BrokenPipeError):
                        pipe.close()


def hide_memory() -> None:
    """Keep this process's memory and environment from its user's other processes, which see them in
    /proc where no namespace hides it."""
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Defers Ctrl-C to the end of the block."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if came:
        signal.raise_signal(signal.SIGINT)


def end(process: subprocess.Popen[bytes], *, supervised: bool = False) -> None:
    """End a child and all processes that it started, unless they have left its group.

    A child that is ``supervised`` is our launcher, which ends those too and then itself.
    """
    if supervised:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_S)
    with suppress(ProcessLookupError, PermissionError):  # gone, or only zombies left
        os.killpg(process.pid, signal.SIGKILL)
