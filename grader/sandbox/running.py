"""One way to run an untrusted program: in the best sandbox that works, with limits everywhere.

Inside bubblewrap the program sees the system's /usr read-only, the folders named by the caller,
a private /tmp, no network, no GPU and no other process, and a filter (seccomp.py) refuses the
system calls that no compiler needs. Where no namespace can be made, as in most containers, Landlock
shows the same files, and a stricter filter keeps the program from others (landlock.py). Without
either, the filter and the limits remain (CPU, memory, file size, processes, wall time, output),
but the file system is visible. SECURITY.md compares them in a table.

``Sandbox.run`` runs a program to its end; ``Sandbox.started`` is for exchanging messages with one.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Literal

from grader.errors import SandboxError
from grader.model import Record, clauses, phrase
from grader.sandbox import bubblewrap, landlock
from grader.sandbox.causes import without_bubblewrap, without_landlock
from grader.sandbox.children import end, hide_memory, started
from grader.sandbox.draining import Sink, drain
from grader.sandbox.exposure import SandboxKind, exposed
from grader.sandbox.meter import Meter, Starved, TookTooLong

Mode = Literal["require", "auto", "bubblewrap", "landlock", "off"]
_CAUSES = {"bubblewrap": without_bubblewrap, "landlock": without_landlock}
RESULT_FD_VARIABLE = "SGEMM_GRADER_RESULT_FD"
_OPEN_FILES = 256


class Limits(Record):
    """The limits of one run. Memory applies to each process, the rest to the whole run."""

    cpu_s: float  # of all its processes together; meter.py says what is charged
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
    timed_out: bool  # it had its time
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
        """The best sandbox that works here; raises SandboxError when ``mode`` cannot be had.

        Raises ToolchainError where our launcher is needed and cannot be compiled.
        """
        found = shutil.which("prlimit")
        if found is None:
            raise SandboxError(phrase("no prlimit on PATH: install util-linux"))
        prlimit = Path(found)
        if mode in ("auto", "require", "bubblewrap") and (namespaces := bubblewrap.working()):
            bwrap, filtered = namespaces
            return Sandbox(kind="bubblewrap", prlimit=prlimit, bwrap=bwrap, filtered=filtered)
        hide_memory()
        if mode in ("auto", "require", "landlock") and (abi := landlock.working()):
            return Sandbox(kind="landlock", prlimit=prlimit, abi=abi, filtered=True)
        if mode not in ("auto", "off"):
            asked = [cause() for kind, cause in _CAUSES.items() if mode in ("require", kind)]
            why = clauses(
                phrase("{what}: {reason}", what=cause.what, reason=cause.remedy) for cause in asked
            )
            raise SandboxError(phrase("--sandbox {mode}: {why}", mode=mode, why=why))
        return Sandbox(kind="rlimits", prlimit=prlimit, filtered=landlock.filtering())

    @property
    def exposed(self) -> tuple[str, ...]:
        """What it leaves open."""
        return exposed(self.kind, filtered=self.filtered)

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        limits: Limits,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        env: Mapping[str, str] | None = None,
        watches: bool = False,
    ) -> Completed:
        """Run ``argv`` in ``cwd`` to its end or its limits, with no standard input.

        ``readable`` and ``writable`` are folders or files shown in the sandbox under their
        own paths; ``env`` is the whole environment. A program that ``watches`` its own children
        may read files of /proc and send signals in every sandbox. Any exception, Ctrl-C included,
        kills the process group before it passes on.
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
                    handed=() if write_fd < 0 else (write_fd,),
                    watches=watches,
                )
            )
            assert process.stdout is not None
            assert process.stderr is not None
            sinks = {
                process.stdout.fileno(): Sink(limits.output_bytes),
                process.stderr.fileno(): Sink(limits.output_bytes),
            }
            if result_fd >= 0:
                sinks[result_fd] = Sink(limits.result_bytes)
            meter = Meter(process.pid, limits.cpu_s)
            timed_out = starved = False
            try:
                drain(process, sinks, meter)
            except TookTooLong:
                timed_out = True
            except Starved:
                starved = True
            if timed_out or starved:
                end(process, supervised=self.bwrap is None)
            status = self.status(process.wait())
            stdout, stderr, *rest = [bytes(sink.data) for sink in sinks.values()]
        return Completed(
            returncode=status if status >= 0 else None,
            signal=-status if status < 0 else None,
            stdout=stdout.decode(errors="replace"),
            stderr=stderr.decode(errors="replace"),
            result=rest[0] if rest else b"",
            timed_out=timed_out,
            starved=starved,
            seconds=time.monotonic() - start,
            charged=meter.charged,
        )

    @contextmanager
    def started(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        limits: Limits,
        readable: Sequence[Path] = (),
        writable: Sequence[Path] = (),
        env: Mapping[str, str] | None = None,
        handed: tuple[int, ...] = (),
        stdin: int = subprocess.DEVNULL,
        stderr: int | IO[bytes] = subprocess.PIPE,
        watches: bool = False,
    ) -> Iterator[subprocess.Popen[bytes]]:
        """``argv`` in the sandbox, killed with all that it started when the context ends.

        As for ``run``, but nobody watches ``limits.cpu_s`` here; twice that, for each process, is
        left to the kernel. ``handed`` are descriptors that it inherits and that are closed here.
        """
        command = [str(self.prlimit), *_rlimits(limits)]
        filter_fd = self._open_filter(watches) if self.filtered else None
        if self.bwrap is not None:
            command += bubblewrap.command(self.bwrap, readable, writable, cwd, filter_fd)
        else:
            shown = (readable, writable, filter_fd)
            command += landlock.command(self.abi, *shown, processes=watches)
        handed = handed if filter_fd is None else (*handed, filter_fd)
        environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **(env or {})}
        supervised = self.bwrap is None
        with started(
            [*command, *argv], cwd, environment, handed, stdin, stderr, supervised=supervised
        ) as process:
            yield process

    def _open_filter(self, watches: bool) -> int | None:
        if self.bwrap is not None:
            return bubblewrap.open_filter()
        return landlock.open_filter(self.abi, processes=watches)

    def status(self, status: int) -> int:
        """A program's return code, negative after a signal, of that of the sandbox."""
        # A shell's habit that bubblewrap shares: 128 + n says that signal n ended the program.
        if self.bwrap is not None and 128 < status < 160:
            return 128 - status
        return status


def _rlimits(limits: Limits) -> list[str]:
    """prlimit's options. Where the shell allows less than is asked for, that is what there is."""
    backstop = 2 * int(limits.cpu_s) + 5  # for each process, when nobody watches any more
    asked = {
        "as": (resource.RLIMIT_AS, limits.memory_mb << 20),
        "cpu": (resource.RLIMIT_CPU, backstop),
        "fsize": (resource.RLIMIT_FSIZE, limits.file_mb << 20),
        "nproc": (resource.RLIMIT_NPROC, _tasks_of_user() + limits.processes),
        "nofile": (resource.RLIMIT_NOFILE, _OPEN_FILES),
        "core": (resource.RLIMIT_CORE, 0),
    }
    return [*(f"--{name}={_at_most(kind, value)}" for name, (kind, value) in asked.items()), "--"]


def _at_most(kind: int, value: int) -> int:
    _, hard = resource.getrlimit(kind)
    return value if hard == resource.RLIM_INFINITY else min(value, hard)


def _tasks_of_user() -> int:
    """Threads this user runs now: the limit on processes counts all of them."""
    tasks = 0
    for folder in Path("/proc").iterdir():
        with suppress(OSError):  # ended meanwhile
            if folder.name.isdigit() and folder.stat().st_uid == os.getuid():
                tasks += sum(1 for _ in (folder / "task").iterdir())
    return tasks
