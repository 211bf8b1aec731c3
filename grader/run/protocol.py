"""Interface of the devices that run launch plans: their input, and their report to the judge.

``simulator.device.CpuDevice`` and ``gpu.device.GpuDevice`` run plans with fresh inputs and verify
the results. Each is a context manager: leaving it ends every process that it started.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from operator import attrgetter
from queue import Queue
from typing import BinaryIO, TypeVar

import msgspec

from grader.base import Finding, GraderError, Rejected, Verdict
from grader.results import CaseResult
from grader.run.statistics import Clocked
from ptxsim.findings import LineCount
from ptxsim.plan import Plan, Record
from ptxsim.text import Message, verbatim

Progress = Callable[[Message, Message], None]  # the stage, and a longer text or nothing


def quietly(_stage: Message, _words: Message) -> None:
    """Progress that nobody follows."""


_GIVEN = attrgetter("id", "size", "amount", "kernels")  # to a worker, which only adds to them


class CaseOutcome(CaseResult):
    """One case, from its plan to its verdict: what the document tells of it, and what only the
    judge needs.

    It is begun when its size is recorded; a device adds what comes out there, and the judge its
    ruling. Before that, ``verdict`` is that of a stage which refused the case, and ``message`` of
    the refusal, the stop or the verification; empty: all is well.
    """

    stopped: str | None = None  # "time", "deadlock" or "crash": the GPU's context broke
    findings: tuple[Finding, ...] = ()
    steady: bool = False  # elements are wrong by the same values in another order of threads
    lines: tuple[LineCount, ...] = ()
    printed: str = ""  # by device printf, cut to a readable length
    untimed_ms: float | None = None  # on a GPU: the launch that was verified, or warmed up, only
    clocks: tuple[tuple[Clocked, Clocked], ...] = ()  # of each repetition: submission, baseline

    def continues(self, begun: CaseOutcome) -> bool:
        """Whether a worker left as it was what it got of the case, and did not accept it: it may
        refuse, and only the judge accepts."""
        return _GIVEN(self) == _GIVEN(begun) and self.verdict is not Verdict.AC

    def refused(self, refusal: Rejected) -> CaseOutcome:
        """The case, if it never ran because a stage refused it."""
        verdict, message, findings = refusal.verdict, refusal.message, refusal.findings
        return msgspec.structs.replace(self, verdict=verdict, message=message, findings=findings)


class PlannedCase(Record):
    """A case that can run, with the launches that the submission makes for its size."""

    case: CaseOutcome  # as it begins
    plan: Plan

    @property
    def id(self) -> str:
        return self.case.id


class Finished(Record, tag="finished"):
    outcome: CaseOutcome


class Failed(Record, tag="failed"):
    """A worker's reply: the grader's fault or the machine's, in one line."""

    message: Message

    @staticmethod
    def of(error: Exception) -> Failed:
        own = error.message if isinstance(error, GraderError) else verbatim(str(error))
        return Failed(message=own)


class Done(Record, tag="done"):
    """A worker's last reply to a job: every case has an answer, or was skipped on purpose."""


# --- serving -----------------------------------------------------------------------------------

_T = TypeVar("_T")


class Replies:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, reply: Record) -> None:
        with self._lock:
            self._stream.write(msgspec.json.encode(reply) + b"\n")
            self._stream.flush()


@contextlib.contextmanager
def replying() -> Iterator[Replies]:
    """Only replies reach the pipe: file descriptor 1 becomes stderr."""
    with os.fdopen(os.dup(1), "wb") as stream:
        os.dup2(2, 1)
        yield Replies(stream)


def requests(decoder: msgspec.json.Decoder[_T]) -> Iterator[_T]:
    """The grader's requests. When the grader's end of the pipe closes, the process ends."""
    lines: Queue[bytes] = Queue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    while True:
        yield decoder.decode(lines.get())


def _listen(lines: Queue[bytes]) -> None:
    incoming = Lines()
    while chunk := os.read(0, 1 << 16):  # not sys.stdin, whose lock would outlive the interpreter
        for line in incoming.split(chunk):
            lines.put(line)
    os._exit(1)


class Lines:
    """Splits into lines what comes through a pipe piece by piece."""

    def __init__(self) -> None:
        self._pending: list[bytes] = []  # of a line that has not ended

    def split(self, chunk: bytes) -> Iterator[bytes]:
        first, *rest = chunk.split(b"\n")
        self._pending.append(first)
        for piece in rest:
            yield b"".join(self._pending)
            self._pending = [piece]
