"""One way to run an untrusted program: in the best sandbox that works, with limits everywhere.

Inside bubblewrap the program sees the system's /usr read-only, the folders named by the caller,
a private /tmp, no network, no GPU and no other process. Where no namespace can be made, as in most
containers, Landlock shows the same files, and a stricter filter of system calls keeps the program
from others. Without either, the filter and the limits remain. SECURITY.md compares them in a table.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Literal

from grader.base import MachineError
from grader.sandbox import bubblewrap, landlock, meter, seccomp
from grader.sandbox.bubblewrap import SandboxKind
from ptxsim.plan import Record
from ptxsim.text import clauses, phrase

Mode = Literal["require", "auto", "bubblewrap", "landlock", "off"]
_CAUSES = {"bubblewrap": meter.without_bubblewrap, "landlock": meter.without_landlock}
RESULT_FD_VARIABLE = "SGEMM_GRADER_RESULT_FD"
_OPEN_FILES = 256


class SandboxError(MachineError):
    """The sandbox asked for cannot be had."""


class ProcessLimits(Record):
    """The limits of one run. Memory applies to each process, the rest to the whole run."""

    cpu_s: float  # of all its processes together; meter.py says what is charged
    memory_mb: int = 4096  # address space, but for ``shared_mb``
    shared_mb: int = 0  # more of it, for files that it maps
    file_mb: int = 256  # largest file it may write
    processes: int = 512  # beyond those the user has now; does not bind root
    output_bytes: int = 1 << 20  # kept of stdout and of stderr; the rest is thrown away
    result_bytes: int = 0  # > 0: a pipe of this capacity, its number in RESULT_FD_VARIABLE


class Completed(Record):
    returncode: int | None  # null when a signal ended it
    signal: int | None
    stdout: str
    stderr: str
    result: bytes  # what came through the result pipe
    timed_out: bool  # it had its time
    swollen: bool  # it filled too much of a shared file, which counts as its time
    starved: bool  # the machine was too busy to give it its time
    seconds: float  # wall
    charged: float  # seconds, as meter.py counts them, shortly before the end

    @property
    def ok(self) -> bool:
        return self.returncode == 0 and not self.timed_out and not self.starved

    @property
    def killed(self) -> bool:
        """Whether something else ended it: the system for lack of memory, or a person."""
        return self.signal == signal.SIGKILL and not self.timed_out and not self.starved


class Sandbox(Record):
    """Runs untrusted programs; ``kind`` goes into the result document."""

    kind: SandboxKind
    prlimit: Path
    bwrap: Path | None = None
    abi: int = 0  # the version of Landlock's interface that is used
    filtered: bool = False  # by seccomp, which some kernels lack

    @staticmethod
    def open(mode: Mode = "auto") -> Sandbox:
        """The best sandbox that works here. Raises SandboxError when ``mode`` cannot be had, and
        ToolchainError where our launcher is needed and cannot be compiled."""
        found = shutil.which("prlimit")
        if found is None:
            raise SandboxError.saying("no prlimit on PATH: install util-linux")
        prlimit = Path(found)
        if mode in ("auto", "require", "bubblewrap") and (namespaces := bubblewrap.working()):
            bwrap, filtered = namespaces
            return Sandbox(kind="bubblewrap", prlimit=prlimit, bwrap=bwrap, filtered=filtered)
        # Others of this user look in /proc: they must not see our memory and environment there.
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
        if mode in ("auto", "require", "landlock") and (abi := landlock.working()):
            return Sandbox(kind="landlock", prlimit=prlimit, abi=abi, filtered=True)
        if mode not in ("auto", "off"):
            asked = [cause() for kind, cause in _CAUSES.items() if mode in ("require", kind)]
            words = phrase("{what}: {reason}")
            why = clauses(words.given(what=each.what, reason=each.remedy) for each in asked)
            raise SandboxError.saying("--sandbox {mode}: {why}", mode=mode, why=why)
        return Sandbox(kind="rlimits", prlimit=prlimit, filtered=landlock.filters())

    @property
    def exposed(self) -> tuple[str, ...]:
        unfiltered = () if self.filtered else bubblewrap.EXPOSED["unfiltered"]
        return (*bubblewrap.EXPOSED[self.kind], *unfiltered)

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        limits: ProcessLimits,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        env: Mapping[str, str] | None = None,
        watches: bool = False,
        handed: tuple[int, ...] = (),
        stdin: int = subprocess.DEVNULL,
        beside: tuple[int, ...] = (),
        shared: int | None = None,
    ) -> Completed:
        """Run ``argv`` in ``cwd`` to its end or its limits; without ``stdin`` it can read nothing.

        ``readable`` and ``writable`` are folders, files or devices shown in the sandbox under their
        own paths; ``env`` is the whole environment. A program that ``watches`` its own children
        may read files of /proc and send signals in every sandbox. ``handed`` are descriptors that
        it inherits and that are closed here; what the sessions ``beside`` do is charged, too;
        ``shared`` is a file in memory, which may grow to ``limits.memory_mb``. Any
        exception, Ctrl-C included, kills the process group before it passes on.
        """
        more = dict(env or {})
        with ExitStack() as stack:
            result_fd = write_fd = -1
            if limits.result_bytes:
                result_fd, write_fd = os.pipe()
                stack.callback(os.close, result_fd)
                more[RESULT_FD_VARIABLE] = str(write_fd)
            start = time.monotonic()
            process = stack.enter_context(
                self.started(
                    argv,
                    cwd=cwd,
                    limits=limits,
                    readable=readable,
                    writable=writable,
                    env=more,
                    handed=handed if write_fd < 0 else (*handed, write_fd),
                    stdin=stdin,
                    watches=watches,
                )
            )
            assert process.stdout and process.stderr
            outputs = (process.stdout.fileno(), process.stderr.fileno())
            pipes = {pipe: (limits.output_bytes, bytearray()) for pipe in outputs}
            if result_fd >= 0:
                pipes[result_fd] = (limits.result_bytes, bytearray())
            charging = meter.Meter(
                limits.cpu_s,
                process.pid,
                *beside,
                shared=None if shared is None else (shared, limits.memory_mb << 20),
            )
            late: Exception | None = None
            try:
                meter.drain(process, pipes, charging)
            except (meter.TookTooLong, meter.Starved) as why:
                late = why
                end(process, supervised=self.bwrap is None)
            status = self.status(process.wait())
            stdout, stderr, *rest = [bytes(kept) for _, kept in pipes.values()]
        return Completed(
            returncode=status if status >= 0 else None,
            signal=-status if status < 0 else None,
            stdout=stdout.decode(errors="replace"),
            stderr=stderr.decode(errors="replace"),
            result=rest[0] if rest else b"",
            timed_out=isinstance(late, meter.TookTooLong),
            swollen=isinstance(late, meter.TookTooMuch),
            starved=isinstance(late, meter.Starved),
            seconds=time.monotonic() - start,
            charged=charging.charged,
        )

    @contextmanager
    def started(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        limits: ProcessLimits,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        env: Mapping[str, str] | None = None,
        handed: tuple[int, ...] = (),
        stdin: int = subprocess.DEVNULL,
        stderr: int | IO[bytes] = subprocess.PIPE,
        watches: bool = False,
    ) -> Iterator[subprocess.Popen[bytes]]:
        """``argv`` in the sandbox, killed with all that it started when the context ends. As for
        ``run``, but nobody watches ``limits.cpu_s`` here; twice that, for each process, is left to
        the kernel. ``handed`` are descriptors that it inherits and that are closed here."""
        command = [str(self.prlimit), *_rlimits(limits)]
        if self.bwrap is not None:
            filter_fd = seccomp.open_filter() if self.filtered else None
            command += bubblewrap.command(self.bwrap, readable, writable, cwd, filter_fd)
        else:
            filter_fd = landlock.open_filter(self.abi, watches) if self.filtered else None
            command += landlock.command(self.abi, readable, writable, filter_fd, processes=watches)
        handed = handed if filter_fd is None else (*handed, filter_fd)
        environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **(env or {})}
        command += argv
        unaided = self.bwrap is None
        with started(command, cwd, environment, handed, stdin, stderr, supervised=unaided) as it:
            yield it

    def status(self, status: int) -> int:
        """A program's return code, negative after a signal, of that of the sandbox."""
        # A shell's habit that bubblewrap shares: 128 + n says that signal n ended the program.
        if self.bwrap is not None and 128 < status < 160:
            return 128 - status
        return status


def _rlimits(limits: ProcessLimits) -> list[str]:
    """prlimit's options. Where the shell allows less than is asked for, that is what there is."""
    backstop = 2 * int(limits.cpu_s) + 5  # for each process, when nobody watches any more
    tasks = 0  # threads that this user runs now: the limit on processes counts all of them
    for folder in Path("/proc").iterdir():
        with suppress(OSError):  # ended meanwhile
            if folder.name.isdigit() and folder.stat().st_uid == os.getuid():
                tasks += sum(1 for _ in (folder / "task").iterdir())
    asked = {
        "as": (resource.RLIMIT_AS, limits.memory_mb + limits.shared_mb << 20),
        "data": (resource.RLIMIT_DATA, limits.memory_mb << 20),
        "cpu": (resource.RLIMIT_CPU, backstop),
        "fsize": (resource.RLIMIT_FSIZE, limits.file_mb << 20),
        "nproc": (resource.RLIMIT_NPROC, tasks + limits.processes),
        "nofile": (resource.RLIMIT_NOFILE, _OPEN_FILES),
        "core": (resource.RLIMIT_CORE, 0),
    }
    options = []
    for name, (kind, value) in asked.items():
        _, hard = resource.getrlimit(kind)
        options.append(f"--{name}={value if hard == resource.RLIM_INFINITY else min(value, hard)}")
    return [*options, "--"]


# --- children ----------------------------------------------------------------------------------

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
    """A child in its own session, which ``end`` ends with the context."""
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
    """End a child and its process group. A child that is ``supervised`` is our launcher, which ends
    first whoever has left the group, and then itself."""
    if supervised:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_S)
    with suppress(ProcessLookupError, PermissionError):  # gone, or only zombies left
        os.killpg(process.pid, signal.SIGKILL)
