"""The process that simulates: one per grade, ``python -m`` this module with the engine's path.

Everything a student can forge, the PTX and the plans, is handled here and nowhere else. The process
runs in the sandbox, and before it reads the first request it gives up what computing does not take.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.random  # now: later no file can be opened
from numpy.typing import NDArray

from grader.backends.protocol import CaseOutcome, Done, Failed, Finished, PlannedCase, refused
from grader.backends.serving import Replies, replying, requests
from grader.backends.simulator.refusals import rejected
from grader.backends.simulator.simulation_messages import (
    Declared,
    Inspect,
    Job,
    Notes,
    Read,
    Refused,
    Reply,
    Request,
    Room,
    Sample,
    Sampled,
)
from grader.backends.simulator.wording import worded
from grader.errors import GraderError, Rejected
from grader.model import Finding, Kind, Mnk, Plan, Severity, Verdict
from grader.problems import product as verify
from grader.problems.inputs import Floats, make_inputs
from grader.sandbox import seccomp
from ptxsim.engine import Engine, load_engine
from ptxsim.errors import EngineError, RefusedProgram
from ptxsim.frontend.interface import Interface
from ptxsim.records import Event
from ptxsim.records import Finding as Seen
from ptxsim.sampling import LaunchSample, Sampler
from ptxsim.simulator import SimLimits, SimOutcome

_PRINTED_CHARACTERS = 2000
_DECODER: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
# The lab's own need: the interpreter, and A, B and C with their copies and shadows.
_INTERPRETER, _PER_BYTE = 512 << 20, 16
_OUT_OF_MEMORY = (
    "the simulator needs more memory than the lab allows: raise limits.memory_mb in the lab file, "
    "or give it smaller cpu sizes"
)
_TOO_LARGE_TO_SAMPLE = "A, B and C of this size need more memory than the lab allows"


class Runs(Protocol):
    """What is needed of ``ptxsim.Sampler``."""

    @property
    def declared(self) -> Interface: ...

    def tensor_cores(self, plans: Sequence[Plan]) -> tuple[Seen, ...]: ...

    def sample(self, plan: Plan, seconds: float) -> tuple[LaunchSample, ...]: ...

    def run(
        self, plan: Plan, buffers: Mapping[int, NDArray[np.uint8]], limits: SimLimits
    ) -> SimOutcome: ...


def _load() -> Engine:
    return load_engine(Path(sys.argv[1]))


def main(
    make_simulator: Callable[[str, Path, Any], Runs] = Sampler,
    prepare: Callable[[], object] = _load,
) -> None:
    """Answer requests.

    ``prepare`` runs before the first is there, while the submission is still being compiled.
    """
    with replying() as replies:
        try:
            engine = prepare()
        except (GraderError, EngineError) as error:
            replies.send(Failed(message=str(error)))
            return
        seccomp.lock_down()
        server = _Server(make_simulator, engine, replies)
        for request in requests(_DECODER):
            server.answer(request)


class _Server:
    """Answers about the module that was read last."""

    def __init__(
        self, make_simulator: Callable[[str, Path, Any], Runs], engine: Any, replies: Replies
    ) -> None:
        self._make_simulator = make_simulator
        self._engine = engine
        self._replies = replies
        self._simulator: Runs | None = None

    def answer(self, request: Request) -> None:
        send = self._replies.send
        try:
            if isinstance(request, Read):
                root = Path(request.source_root)
                self._simulator = self._make_simulator(request.ptx, root, self._engine)
                send(Declared(interface=self._simulator.declared))
                return
            assert self._simulator
            match request:
                case Inspect(plans=plans):
                    send(Notes(findings=worded(self._simulator.tensor_cores(plans))))
                case Sample(plan=plan, seconds=seconds):
                    send(Sampled(samples=self._simulator.sample(plan, seconds)))
                case Job():
                    _serve(request, self._simulator, self._replies)
        except RefusedProgram as refusal:
            send(Refused.of(rejected(refusal)))
        except (GraderError, EngineError) as error:
            send(Failed(message=str(error)))
        except MemoryError:
            send(_too_large(request))


def _too_large(request: Request) -> Reply:
    if isinstance(request, Job):
        return Failed(message=_OUT_OF_MEMORY)
    if isinstance(request, Sample):
        return Failed(message=_TOO_LARGE_TO_SAMPLE)
    message = "reading its PTX takes more memory than the lab allows"
    return Refused(verdict=Verdict.RE, message=message)


def _serve(job: Job, simulator: Runs, replies: Replies) -> None:
    """Limits are CPU time: of a case that of its thread, of all of them the process's."""
    started = time.process_time()
    out_of_time = threading.Event()

    def work(case: PlannedCase, rooms: Sequence[Room]) -> None:
        left = job.total_seconds - (time.process_time() - started)
        if out_of_time.is_set() or left <= 0:
            return
        seconds = min(job.case_seconds, left)
        outcome = run_case(simulator, case, seconds, job.memory_mb << 20, rooms)
        if outcome.stopped == "time":
            out_of_time.set()
        replies.send(Finished(outcome=outcome))

    with ThreadPoolExecutor(max_workers=job.threads) as pool:
        jobs = [pool.submit(work, *each) for each in zip(job.cases, job.rooms, strict=True)]
        try:
            for each in jobs:
                each.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    replies.send(Done())


def run_case(
    simulator: Runs, case: PlannedCase, seconds: float, memory: int, rooms: Sequence[Room]
) -> CaseOutcome:
    """Fresh inputs, poisoned C, the simulator, then the verification."""
    resident = tuple(room.blocks for room in rooms)
    size = case.plan.size
    a, b = make_inputs(size)
    c = verify.poisoned(size)
    given = {"A": (a, a.copy()), "B": (b, b.copy())}
    buffers = {0: _bytes(given["A"][1]), 1: _bytes(given["B"][1]), 2: _bytes(c)}
    try:
        seen = simulator.run(case.plan, buffers, SimLimits(seconds=seconds, resident=resident))
    except RefusedProgram as refusal:
        return refused(case.id, size, rejected(refusal))
    except MemoryError:
        if _PER_BYTE * (a.nbytes + b.nbytes + c.nbytes) + _INTERPRETER > memory:
            raise
        words = f"it takes more memory than the lab's {memory >> 20} MB: allocate less"
        return refused(case.id, size, Rejected(Verdict.RE, words))
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
        findings=(*worded(seen.findings, _gpu(rooms, seen.findings)), *changed),
        lines=seen.lines,
        printed=seen.printed[:_PRINTED_CHARACTERS],
    )


def _gpu(rooms: Sequence[Room], findings: Sequence[Seen]) -> str:
    """The GPU that a launch of too many blocks did not fit."""
    held = {found.arrived for found in findings if found.event is Event.NOT_ALL_RESIDENT}
    return next((room.gpu for room in rooms if room.blocks in held), "")


def _bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    return values.view(np.uint8)


def _modified(name: str, size: Mnk, before: Floats, after: Floats) -> Finding:
    changed = np.flatnonzero(before.view(np.uint32) != after.view(np.uint32))
    major, minor = divmod(int(changed[0]), size.k)
    row, column = (major, minor) if name == "A" else (minor, major)
    return Finding(
        kind=Kind.INPUT_MODIFIED,
        severity=Severity.ERROR,
        message=f"{name}[row {row}, column {column}] was overwritten; A and B must not change",
        count=int(changed.size),
    )


if __name__ == "__main__":
    main()
