"""The process that simulates: one per grade, ``python -m`` this module with the engine's path and
the problem (``ProblemRef`` in JSON).

Only this process handles what a student can forge: the PTX and the plans. It runs in the sandbox,
and before it reads the first request it gives up every right that computing does not need.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.random  # now: later no file can be opened
from numpy.typing import NDArray

from grader.backends.protocol import CaseOutcome, Done, Failed, Finished, PlannedCase, refused
from grader.backends.serving import Replies, replying, requests
from grader.backends.simulator.refusals import rejected
from grader.backends.simulator.simulated_calls import Arrays, seen_calls, summary
from grader.backends.simulator.simulation_messages import (
    Declared,
    Inspect,
    Job,
    Notes,
    Probe,
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
from grader.model import Plan, Verdict, phrase
from grader.model.decoding import decoder
from grader.problems.catalogue import ProblemRef, load_problem
from grader.problems.problem import Problem
from grader.sandbox import seccomp
from ptxsim.engine import Engine, load_engine
from ptxsim.errors import EngineError, RefusedProgram
from ptxsim.findings.finding import Finding as Seen
from ptxsim.frontend.interface import Interface
from ptxsim.outcome import SimLimits, SimOutcome
from ptxsim.sampling import LaunchSample, Sampler

_DECODER: msgspec.json.Decoder[Request] = decoder(Request)
# Needed in any case: the interpreter, and the operands with their copies and shadows.
_INTERPRETER, _PER_BYTE = 512 << 20, 16
_OUT_OF_MEMORY = phrase(
    "the simulator needs more memory than the lab allows: raise limits.memory_mb in the lab file, "
    "or give it smaller cpu sizes"
)
_TOO_LARGE_TO_SAMPLE = phrase("the operands of this size need more memory than the lab allows")


class Runs(Protocol):
    """The part of ``ptxsim.Sampler`` that is used here."""

    @property
    def declared(self) -> Interface: ...

    def tensor_cores(self, plans: Sequence[Plan]) -> tuple[Seen, ...]: ...

    def sample(self, plan: Plan, seconds: float) -> tuple[LaunchSample, ...]: ...

    def probe(self, plan: Plan, seconds: float) -> tuple[Seen, ...]: ...

    def calls(
        self, plan: Plan, buffers: Mapping[int, NDArray[np.uint8]], limits: SimLimits
    ) -> Generator[SimOutcome, None, None]: ...


def _load() -> Engine:
    return load_engine(Path(sys.argv[1]))


def _problem() -> Problem | None:
    """None where nothing is to be verified."""
    found = decoder(ProblemRef | None).decode(sys.argv[2])
    return load_problem(found) if found else None


def main(
    make_simulator: Callable[[str, Path, Any], Runs] = Sampler,
    prepare: Callable[[], object] = _load,
    problem: Callable[[], Problem | None] = _problem,
) -> None:
    """Answer requests.

    ``prepare`` runs before the first request, while the submission is being compiled.
    """
    with replying() as replies:
        try:
            engine, asked = prepare(), problem()
        except (GraderError, EngineError) as error:
            replies.send(Failed.of(error))
            return
        seccomp.lock_down()
        server = _Server(make_simulator, engine, asked, replies)
        for request in requests(_DECODER):
            server.answer(request)


class _Server:
    """Answers requests about the module that was read last."""

    def __init__(
        self,
        make_simulator: Callable[[str, Path, Any], Runs],
        engine: Any,
        problem: Problem | None,
        replies: Replies,
    ) -> None:
        self._make_simulator = make_simulator
        self._engine = engine
        self._problem = problem
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
                case Probe(plan=plan, seconds=seconds):
                    send(Notes(findings=worded(self._simulator.probe(plan, seconds))))
                case Job():
                    assert self._problem
                    _serve(request, self._simulator, self._problem, self._replies)
        except RefusedProgram as refusal:
            send(Refused.of(rejected(refusal)))
        except (GraderError, EngineError) as error:
            send(Failed.of(error))
        except MemoryError:
            send(_too_large(request))


def _too_large(request: Request) -> Reply:
    if isinstance(request, Job):
        return Failed(message=_OUT_OF_MEMORY)
    if isinstance(request, Sample | Probe):
        return Failed(message=_TOO_LARGE_TO_SAMPLE)
    message = phrase("reading its PTX takes more memory than the lab allows")
    return Refused(verdict=Verdict.RE, message=message)


def _serve(job: Job, simulator: Runs, problem: Problem, replies: Replies) -> None:
    """Limits are CPU time: the thread's for a case, the process's for all cases."""
    started = time.process_time()
    out_of_time = threading.Event()

    def work(case: PlannedCase, rooms: Sequence[Room]) -> None:
        left = job.total_seconds - (time.process_time() - started)
        if out_of_time.is_set() or left <= 0:
            return
        seconds = min(job.case_seconds, left)
        outcome = run_case(simulator, problem, case, seconds, job.memory_mb << 20, rooms)
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
    simulator: Runs,
    problem: Problem,
    case: PlannedCase,
    seconds: float,
    memory: int,
    rooms: Sequence[Room],
) -> CaseOutcome:
    """Fresh inputs and poisoned outputs for each call, the simulator, then the verification."""
    size = case.plan.size
    arrays = Arrays(problem, size)
    limits = SimLimits(seconds=seconds, resident=tuple(room.blocks for room in rooms))
    try:
        with closing(simulator.calls(case.plan, arrays.buffers, limits)) as calls:
            seen = seen_calls(calls, case.plan, arrays, seconds, rooms)
    except RefusedProgram as refusal:
        return refused(case.id, size, rejected(refusal))
    except MemoryError:
        if _PER_BYTE * arrays.bytes + _INTERPRETER > memory:
            raise
        words = phrase(
            "it needs more memory than the lab's {memory} MB: allocate less", memory=memory >> 20
        )
        return refused(case.id, size, Rejected(Verdict.RE, words))
    return summary(case, seen)


if __name__ == "__main__":
    main()
