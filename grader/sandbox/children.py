"""Child processes of which none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def started(
    command: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    handed: tuple[int, ...] = (),
    stdin: int = subprocess.DEVNULL,
    stderr: int | IO[bytes] = subprocess.PIPE,
) -> Iterator[subprocess.Popen[bytes]]:
    """A child in a session of its own; whatever is left of its group dies with the context."""
    process = None
    try:
        try:
            with _uninterrupted():  # a child that nobody knows of yet would outlive us
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
            kill_group(process)
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    with suppress(BrokenPipeError):
                        pipe.close()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C that comes meanwhile is handled at the end."""
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


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a child and what it started, as far as that has not left its group."""
    with suppress(ProcessLookupError, PermissionError):  # gone, or only zombies left
        os.killpg(process.pid, signal.SIGKILL)
