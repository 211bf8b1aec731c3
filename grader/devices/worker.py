"""The process that simulates: ``python -m grader.devices.worker``, one per grade.

It reads one ``Job`` as a line of JSON on stdin and answers one line per case on what was its
stdout, then ``Done``. stdin stays open until the grader is satisfied: when it closes, the grader
is gone and so is this process. It is a process of its own so that a crash in the engine, a memory
limit or Ctrl-C ends it without harm.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any, BinaryIO, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from grader import verify
from grader.devices import CaseOutcome, PlannedCase, refused
from grader.devices.cpu import Done, Failed, Finished, Job, Ready, Reply
from grader.errors import GraderError, Rejected
from grader.inputs import Floats, make_inputs
from grader.model import Finding, Mnk, Plan, Severity
from grader.sim import SimLimits, SimOutcome, Simulator
from grader.sim.engine import load_engine

_PRINTED_CHARACTERS = 2000
_OUT_OF_MEMORY = (
    "the simulator needs more memory than the lab allows: raise limits.memory_mb in the lab file, "
    "or give it smaller cpu sizes"
)


class Runs(Protocol):
    """What is needed of ``grader.sim.Simulator``."""

    def run(
        self, plan: Plan, buffers: Mapping[int, NDArray[np.uint8]], limits: SimLimits
    ) -> SimOutcome: ...


def main(
    make_simulator: Callable[[str, Path], Runs] = Simulator,
    prepare: Callable[[], object] = load_engine,
) -> None:
    """Serve one job. Nothing but replies reaches the pipe: file descriptor 1 becomes stderr.

    ``prepare`` runs before the job is there, while the submission is still being compiled.
    """
    with os.fdopen(os.dup(1), "wb") as stream:
        os.dup2(2, 1)
        replies = _Replies(stream)
        line: Queue[bytes] = Queue()
        threading.Thread(target=_listen, args=(line,), daemon=True).start()
        try:
            prepare()
            replies.send(Ready())
            job = msgspec.json.decode(line.get(), type=Job)
            _limit(job)
            _serve(job, make_simulator, replies)
        except GraderError as error:
            replies.send(Failed(message=str(error)))
        except MemoryError:
            replies.send(Failed(message=_OUT_OF_MEMORY))


def _listen(line: Queue[bytes]) -> None:
    """Take the job from stdin; when stdin closes, the grader is gone: end at once."""
    received = b""
    while chunk := os.read(0, 1 << 16):  # not sys.stdin, whose lock would outlive the interpreter
        received += chunk
        if received.endswith(b"\n"):
            line.put(received)
    os._exit(1)


def _limit(job: Job) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (job.memory_mb << 20, job.memory_mb << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class _Replies:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, reply: Reply) -> None:
        with self._lock:
            self._stream.write(msgspec.json.encode(reply) + b"\n")
            self._stream.flush()


def _serve(job: Job, make_simulator: Callable[[str, Path], Runs], replies: _Replies) -> None:
    started = time.monotonic()
    try:
        simulator = make_simulator(Path(job.ptx).read_text(), Path(job.source_root))
    except Rejected as refusal:
        for case in job.cases:
            replies.send(Finished(outcome=refused(case.id, case.plan.size, refusal)))
        replies.send(Done())
        return
    out_of_time = threading.Event()

    def work(case: PlannedCase) -> None:
        left = job.total_seconds - (time.monotonic() - started)
        if out_of_time.is_set() or left <= 0:
            return
        outcome = run_case(simulator, case, min(job.case_seconds, left))
        if outcome.stopped == "time":
            out_of_time.set()
        replies.send(Finished(outcome=outcome))

    with ThreadPoolExecutor(max_workers=job.threads) as pool:
        jobs = [pool.submit(work, case) for case in job.cases]
        try:
            for each in jobs:
                each.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    replies.send(Done())


def run_case(simulator: Runs, case: PlannedCase, seconds: float) -> CaseOutcome:
    """Fresh inputs, poisoned C, the simulator, then the verification."""
    size = case.plan.size
    a, b = make_inputs(size)
    c = verify.poisoned(size)
    given = {"A": (a, a.copy()), "B": (b, b.copy())}
    buffers = {0: _bytes(given["A"][1]), 1: _bytes(given["B"][1]), 2: _bytes(c)}
    try:
        seen = simulator.run(case.plan, buffers, SimLimits(seconds=seconds))
    except Rejected as refusal:
        return refused(case.id, size, refusal)
    changed = tuple(
        _modified(name, size, before, after)
        for name, (before, after) in given.items()
        if not np.array_equal(before.view(np.uint32), after.view(np.uint32))
    )
    found = None if seen.stopped else verify.check(size, a, b, c)
    return CaseOutcome(
        id=case.id,
        size=size,
        refused=None,
        message=found.message if found else "",
        stopped=seen.stopped,
        seconds=seen.seconds,
        error=found.error if found else None,
        findings=(*seen.findings, *changed),
        lines=seen.lines,
        printed=seen.printed[:_PRINTED_CHARACTERS],
    )


def _bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    return values.view(np.uint8)


def _modified(name: str, size: Mnk, before: Floats, after: Floats) -> Finding:
    changed = np.flatnonzero(before.view(np.uint32) != after.view(np.uint32))
    major, minor = divmod(int(changed[0]), size.k)
    row, column = (major, minor) if name == "A" else (minor, major)
    return Finding(
        kind="input-modified",
        severity=Severity.ERROR,
        message=f"{name}[row {row}, column {column}] was overwritten; A and B must not change",
        count=int(changed.size),
    )


if __name__ == "__main__":
    main()
