"""One way to run an untrusted program: in bubblewrap where it works, with limits everywhere.

Inside bubblewrap the program sees the system's /usr read-only, the folders named by the caller,
a private /tmp, no network, no GPU and no other process, and a filter (seccomp.py) refuses the
system calls that no compiler needs. Without it the same limits hold (CPU, memory, file size,
processes, wall time, output) and the process group is killed at the end, but the file system is
visible. SECURITY.md has the table of what holds where.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Literal

from grader import bubblewrap
from grader.errors import SandboxError
from grader.model import Record

Mode = Literal["require", "auto", "off"]
RESULT_FD_VARIABLE = "SGEMM_GRADER_RESULT_FD"
_CHUNK = 1 << 16


class Limits(Record):
    """What one run may use. Memory and CPU hold for each process, the rest for the run."""

    wall_s: float
    memory_mb: int = 4096  # address space
    file_mb: int = 256  # largest file it may write
    processes: int = 512  # beyond those the user has now; does not bind root
    output_bytes: int = 1 << 20  # kept of stdout and of stderr; the rest is thrown away
    result_bytes: int = 0  # > 0: a pipe of this capacity, its number in RESULT_FD_VARIABLE


class Completed(Record):
    """How a run ended."""

    returncode: int | None  # null when a signal ended it
    signal: int | None
    stdout: str
    stderr: str
    result: bytes  # what came through the result pipe
    timed_out: bool
    seconds: float  # wall

    @property
    def ok(self) -> bool:
        return self.returncode == 0 and not self.timed_out

    @property
    def killed(self) -> bool:
        """Whether somebody else ended it: the system for want of memory, or a person."""
        return self.signal == signal.SIGKILL and not self.timed_out


class Sandbox(Record):
    """Runs untrusted programs; ``kind`` is what the result document tells."""

    kind: Literal["bubblewrap", "rlimits"]
    prlimit: Path
    bwrap: Path | None = None
    filtered: bool = False  # by seccomp, which some kernels lack

    @staticmethod
    def open(mode: Mode = "auto") -> Sandbox:
        """The best sandbox that works here; raises SandboxError when ``mode`` cannot be had."""
        prlimit = shutil.which("prlimit")
        if prlimit is None:
            raise SandboxError("no prlimit on PATH: install util-linux")
        found = bubblewrap.working() if mode != "off" else None
        if found is not None:
            bwrap, filtered = found
            return Sandbox(kind="bubblewrap", prlimit=Path(prlimit), bwrap=bwrap, filtered=filtered)
        if mode == "require":
            raise SandboxError(
                "--sandbox require: bubblewrap does not work here; install it "
                "(apt-get install bubblewrap) and allow unprivileged user namespaces"
            )
        return Sandbox(kind="rlimits", prlimit=Path(prlimit))

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        limits: Limits,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run ``argv`` in ``cwd`` to its end or its limits, with no standard input.

        ``readable`` and ``writable`` are folders or files shown inside bubblewrap under their
        own paths; ``env`` is the whole environment. Any exception, Ctrl-C included, kills the
        process group before it passes on.
        """
        environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **(env or {})}
        with ExitStack() as stack:
            result_fd = -1
            passed: tuple[int, ...] = ()
            command = [str(self.prlimit), *_rlimits(limits)]
            if self.bwrap is not None:
                filter_fd = bubblewrap.open_filter() if self.filtered else None
                passed = () if filter_fd is None else (filter_fd,)
                command += bubblewrap.command(self.bwrap, readable, writable, cwd, filter_fd)
            command += argv
            if limits.result_bytes:
                result_fd, write_fd = os.pipe()
                stack.callback(os.close, result_fd)
                environment[RESULT_FD_VARIABLE] = str(write_fd)
                passed = (*passed, write_fd)
            start = time.monotonic()
            process = stack.enter_context(_started(command, cwd, environment, passed))
            assert process.stdout is not None
            assert process.stderr is not None
            sinks = {
                process.stdout.fileno(): _Sink(limits.output_bytes),
                process.stderr.fileno(): _Sink(limits.output_bytes),
            }
            if result_fd >= 0:
                sinks[result_fd] = _Sink(limits.result_bytes)
            timed_out = not _drain(process, sinks, start + limits.wall_s)
            if timed_out:
                _kill_group(process)
            status = process.wait()
            stdout, stderr, *rest = [bytes(sink.data) for sink in sinks.values()]
        # A shell's habit that bubblewrap shares: 128 + n says that signal n ended the program.
        if self.bwrap is not None and 128 < status < 160:
            status = 128 - status
        return Completed(
            returncode=status if status >= 0 else None,
            signal=-status if status < 0 else None,
            stdout=stdout.decode(errors="replace"),
            stderr=stderr.decode(errors="replace"),
            result=rest[0] if rest else b"",
            timed_out=timed_out,
            seconds=time.monotonic() - start,
        )


class _Sink:
    """Keeps the first ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.data = bytearray()

    def take(self, chunk: bytes) -> None:
        self.data += chunk[: self.limit - len(self.data)]


@contextmanager
def _started(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], passed: tuple[int, ...]
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
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=passed,
                    start_new_session=True,
                )
        finally:
            for fd in passed:
                os.close(fd)
        yield process
    finally:
        if process is not None:
            _kill_group(process)
            process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
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


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):  # gone, or only zombies left
        os.killpg(process.pid, signal.SIGKILL)


def _drain(process: subprocess.Popen[bytes], sinks: Mapping[int, _Sink], deadline: float) -> bool:
    """Read every pipe until the program ends; False when the deadline passed first.

    A pipe can outlive the program in a grandchild's hands, so its end is not waited for.
    """
    with selectors.DefaultSelector() as selector, closing(_EndWatch(process)) as ended:
        for fd in sinks:
            selector.register(fd, selectors.EVENT_READ)
        if ended.fd >= 0:
            selector.register(ended.fd, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            ready = selector.select(min(left, ended.interval))
            for key, _ in ready:
                if key.fd == ended.fd:
                    continue
                chunk = os.read(key.fd, _CHUNK)
                sinks[key.fd].take(chunk)
                if not chunk:
                    selector.unregister(key.fd)
            quiet = all(key.fd == ended.fd for key, _ in ready)
            if quiet and process.poll() is not None:
                return True


class _EndWatch:
    """Wakes the reader when the child ends: by pidfd, else by looking every 10 ms."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        try:
            self.fd = os.pidfd_open(process.pid)
            self.interval = 3600.0
        except OSError:  # a kernel or a container without pidfd_open
            self.fd = -1
            self.interval = 0.01

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


def _rlimits(limits: Limits) -> list[str]:
    return [
        f"--as={limits.memory_mb << 20}",
        f"--cpu={int(limits.wall_s) + 1}",
        f"--fsize={limits.file_mb << 20}",
        f"--nproc={_tasks_of_user() + limits.processes}",
        "--nofile=256",
        "--core=0",
        "--",
    ]


def _tasks_of_user() -> int:
    """Threads this user runs now: the limit on processes counts all of them."""
    tasks = 0
    for folder in Path("/proc").iterdir():
        with suppress(OSError):  # ended meanwhile
            if folder.name.isdigit() and folder.stat().st_uid == os.getuid():
                tasks += sum(1 for _ in (folder / "task").iterdir())
    return tasks
