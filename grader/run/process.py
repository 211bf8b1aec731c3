"""A worker process that answers requests with lines of JSON, and dies with the grader."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

import grader
import ptxsim
from grader.base import MachineError
from grader.run.probe import CODE
from grader.run.protocol import Lines
from grader.sandbox import Meter, ProcessLimits, Sandbox, started
from ptxsim.plan import Record
from ptxsim.text import NOTHING, Message, phrase

_T = TypeVar("_T")
_PACKAGES = tuple(Path(package.__path__[0]) for package in (grader, ptxsim))
_IMPORTED = ("numpy", "msgspec", "yaml")  # in a cage, besides the standard library
_MOST_BYTES = 64 << 20  # of answers, from one process
_MOST_TEXT = 1 << 16  # characters of one text in an answer
_MOST_NUMBER = 1 << 62
_MOST_WORDS = 200  # characters of a worker's log that are shown
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_PATH = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)*(?=[\w.+-])")
# What CUDA, CuPy and the dynamic loader read. Device code may be able to read the worker's memory.
_FOR_A_GPU = re.compile(
    r"PATH|LANG|LC_\w+|HOME|TMPDIR|LD_LIBRARY_PATH|PYTHONPATH|XDG_CACHE_HOME|SGEMM_GRADER_CACHE"
    r"|SGEMM_GRADER_CUDA|NVCC_CCBIN|(CUDA|CUPY|NVIDIA|NVRTC)_\w+"
)


class Silence(Exception):  # noqa: N818 - what the worker does, not a fault of ours
    """The worker said nothing for as long as it may. at_all: it was the time for the whole job."""

    def __init__(self, at_all: bool) -> None:
        super().__init__()
        self.at_all = at_all


class Cage(Record):
    """Where a worker runs that handles what students wrote."""

    sandbox: Sandbox
    limits: ProcessLimits
    readable: tuple[Path, ...] = ()  # besides Python and the grader's own package
    handed: tuple[int, ...] = ()  # descriptors that it inherits, and that are closed here


class WorkerProcess:
    """Started on ``__enter__``, so that it has loaded its libraries by the time there is work. With
    a cage it sees only Python and the grader's package, and has next to no environment. Without one
    it has the part of the grader's environment that a GPU's driver needs."""

    def __init__(self, command: Sequence[str], cage: Cage | None = None) -> None:
        self._command = command
        self._cage = cage
        self._ending = contextlib.ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: deque[bytes] = deque()
        self._incoming = Lines()
        self._received = 0
        self._heard = 0.0

    def __enter__(self) -> WorkerProcess:
        # A file, not a pipe: nobody reads it until the end. It has no name in the file system.
        self._log = self._ending.enter_context(tempfile.TemporaryFile())
        pipe = subprocess.PIPE
        if self._cage is None:
            environment = for_a_gpu(os.environ)
            running = started(self._command, CODE, environment, (), pipe, self._log)
        else:
            # Links to the grader's packages: Python lists the folder that it imports from, and a
            # cage does not show what lies beside them in a checkout.
            scratch = tempfile.TemporaryDirectory(prefix="sgemm-packages-")
            folder = Path(self._ending.enter_context(scratch))
            for package in _PACKAGES:
                (folder / package.name).symlink_to(package)
            python, path = _python()
            running = self._cage.sandbox.started(
                self._command,
                cwd=folder,
                limits=self._cage.limits,
                readable=[*python, *_PACKAGES, folder, *self._cage.readable],
                # OpenBLAS would start a thread per core and reserve memory for each.
                env={"OPENBLAS_NUM_THREADS": "1", **path},
                handed=self._cage.handed,
                stdin=pipe,
                stderr=self._log,
                watches=True,  # it looks up in /proc what is mapped, before it locks itself down
            )
        try:
            self._process = self._ending.enter_context(running)
        except BaseException:
            self._ending.close()
            raise
        assert self._process.stdin
        os.set_blocking(self._process.stdin.fileno(), False)
        return self

    def __exit__(self, *_: object) -> None:
        self._process = None
        self._ending.close()

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def tell(self, request: bytes) -> None:
        """Write a short request and do not wait; the next ``ask`` yields its answers too."""
        assert self._process and self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # dead already: last_words says why
            os.write(self._process.stdin.fileno(), request + b"\n")

    def ask(
        self, job: bytes, *, seconds: float, patience: Callable[[], float] | None = None
    ) -> Iterator[bytes]:
        """The worker's lines until it closes its pipe. Raises Silence when the whole takes longer
        than ``seconds`` of wall time, or the next line longer than ``patience()``."""
        deadline = self._heard = time.monotonic()
        deadline += seconds

        def pause() -> float:
            due = self._heard + patience() if patience else deadline
            left = min(deadline, due) - time.monotonic()
            if left <= 0:
                raise Silence(at_all=deadline <= due)
            return left

        return self._answers(job, pause)

    def work(self, request: bytes, cpu_s: float) -> Iterator[bytes]:
        """The same for work that counts: raises what ``Meter`` raises after ``cpu_s``."""
        return self._answers(request, Meter(cpu_s, self.pid).pause)

    def _answers(self, request: bytes, pause: Callable[[], float]) -> Iterator[bytes]:
        assert self._process and self._process.stdin and self._process.stdout
        source, sink = self._process.stdout.fileno(), self._process.stdin.fileno()
        left = memoryview(request + b"\n")
        while True:
            while self._lines:
                yield self._lines.popleft()
            writing = [sink] if left else []
            ready, writable, _ = select.select([source], writing, [], pause())
            if writable:
                try:
                    left = left[os.write(sink, left[: 1 << 16]) :]
                except BrokenPipeError:  # it is dead; last_words says why
                    left = left[:0]
            if not ready:
                continue
            chunk = os.read(source, 1 << 16)
            if not chunk:
                return
            self._heard = time.monotonic()
            self._received += len(chunk)
            if self._received > _MOST_BYTES:
                raise MachineError.saying(
                    "a worker answered with more than {most} MB", most=_MOST_BYTES >> 20
                )
            self._lines.extend(self._incoming.split(chunk))

    def ended(self, who: Message, when: Message = NOTHING) -> MachineError:
        """The error to raise when it closed its pipe too early."""
        how, last = self.last_words()
        said = phrase("{who} ended unexpectedly ({how}){last}", who=who, how=how, last=last)
        return MachineError(phrase("{when}: {what}", when=when, what=said) if when else said)

    def last_words(self) -> tuple[str, str]:
        """How it ended, and the last line it logged, shortened and without addresses and folders:
        ("SIGKILL", ""), ("exit status 1", ": …")."""
        assert self._process
        code = self._process.wait()
        if self._cage is not None:
            code = self._cage.sandbox.status(code)
        self._log.seek(0)
        lines = self._log.read(_MOST_BYTES).decode(errors="replace").strip().splitlines()
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        if not lines:
            return how, ""
        words = _PATH.sub("", _ADDRESS.sub("0x…", lines[-1]))
        printable = "".join(c if c.isprintable() else "?" for c in words)
        return how, f": {printable[:_MOST_WORDS]}"


def decoded(
    who: Message, lines: Iterator[bytes], decoder: msgspec.json.Decoder[_T]
) -> Iterator[_T]:
    """A worker's answers. Raises MachineError for one that cannot be read or is out of bounds."""
    for line in lines:
        try:
            reply = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            damaged = phrase("{who}'s answer cannot be read: {why}", who=who, why=str(error))
            raise MachineError(damaged) from None
        if not _is_bounded(msgspec.to_builtins(reply)):
            large = phrase("{who}'s answer cannot be read: a value in it is too large", who=who)
            raise MachineError(large)
        yield reply


def _is_bounded(value: Any) -> bool:
    """Whether the texts and numbers of an answer have a plausible size."""
    if isinstance(value, str):
        return len(value) <= _MOST_TEXT
    if isinstance(value, int):
        return abs(value) <= _MOST_NUMBER
    if isinstance(value, dict):
        return all(map(_is_bounded, value)) and all(map(_is_bounded, value.values()))
    return not isinstance(value, list | tuple) or all(map(_is_bounded, value))


def for_a_gpu(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that a process on a GPU needs."""
    return {name: value for name, value in environment.items() if _FOR_A_GPU.fullmatch(name)}


def _python() -> tuple[list[Path], dict[str, str]]:
    """The folders of the interpreter and its imports that are not in /usr, and the variable that
    names those which Python does not search by itself."""
    specs = [importlib.util.find_spec(name) for name in _IMPORTED]
    packages = [Path(spec.origin).parents[1] for spec in specs if spec and spec.origin]
    own = [Path(sys.prefix), Path(sys.base_prefix)]
    places = [*own, Path(sys.executable).resolve().parents[1], *packages]
    outside = dict.fromkeys(place for place in places if not place.is_relative_to("/usr"))
    found = [place for place in outside if outside.keys().isdisjoint(place.parents)]
    known = (*own, Path("/usr"))
    other = [p for p in packages if not any(p.is_relative_to(place) for place in known)]
    path = os.pathsep.join(map(str, dict.fromkeys(other)))
    return found, {"PYTHONPATH": path} if path else {}
