"""The GPU as a device: one disposable worker process per submission, supervised from here."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from enum import Enum

import msgspec

from grader.base import Build, Finding, GpuInfo, MachineError, decoder, lock_folder, locked
from grader.labs import Lab
from grader.problems import Problem, ProblemRef
from grader.run.gpu import messages
from grader.run.probe import admits_one_process, first_gpu_uuid
from grader.run.process import Silence, WorkerProcess, decoded
from grader.run.protocol import CaseOutcome, Done, Failed, PlannedCase, Progress
from ptxsim.plan import Record
from ptxsim.text import Message, phrase, verbatim

_WORKER = (sys.executable, "-m", "grader.run.gpu.gpu_worker")
_STARTING_S = 60.0  # CUDA context, CuPy and its kernels, on top of the launch limit
_CHECKING_S = 5.0  # inputs, comparison and baseline between two launches
_DECODER: msgspec.json.Decoder[messages.Reply] = decoder(messages.Reply)


class GpuDevice:
    """Replays plans on the first GPU and, for timed cases, measures them against the baseline.

    Only one grader may use a GPU at a time: two would slow and disturb each other. Three locks
    (below) say who may make a context, run kernels, and time. If the turn is free on
    ``__enter__``, it is taken at once, and the worker makes its context while the submission is
    compiled. When everything is timed, the turn is given away: the next worker makes its context
    while this one verifies the last sizes, and verifies its first ones while this one ends.
    ``stand_by`` starts the worker before all that: it loads its libraries, and takes nothing yet.
    """

    def __init__(
        self, problem: ProblemRef, run_seconds: float = 1.0, command: Sequence[str] = _WORKER
    ) -> None:
        self._problem = problem
        self._run_seconds = run_seconds  # measuring time of one run of a timed case
        self._command = command
        self._worker = WorkerProcess(command)
        self._locks = Locks()
        self._stands_by = self._warm = self._ready = False  # the worker
        self._beside = False  # whether there may be another
        self._ending: threading.Thread | None = None
        self.gpu: GpuInfo | None = None  # known once a worker was ready

    def successor(self) -> GpuDevice:
        """Return a device with a worker of its own, which knows nothing of this one's."""
        return GpuDevice(self._problem, self._run_seconds, self._command)

    def stand_by(self) -> None:
        if not self._stands_by:
            self._worker.__enter__()
            self._stands_by = True
            self._worker.tell(msgspec.json.encode(messages.Prepare(problem=self._problem)))

    def __enter__(self) -> GpuDevice:
        shared = [name for name in os.environ if name.startswith("CUDA_MPS_")]
        if shared:
            raise MachineError.saying(
                "{variable} is set: MPS would time other processes too; unset it",
                variable=shared[0],
            )
        self.stand_by()
        try:
            self._take_turn(wait=False)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._ending is None:
            self._end()

    def _take_turn(self, *, wait: bool) -> None:
        """The worker before this one may still be there, with its context."""
        if self._warm or not self._locks.take(Right.TURN, wait=wait):
            return
        self._beside = not self._locks.take(Right.ALONE, wait=admits_one_process() and wait)
        if not (self._beside and admits_one_process()):
            self._worker.tell(msgspec.json.encode(messages.Warm()))
            self._warm = True

    def _end(self) -> None:
        # The worker's context must be gone before anything else is measured.
        self._worker.__exit__()
        self._locks.give(*reversed(Right))

    def _end_behind(self) -> None:
        """The same while the grader and the next worker go on: the driver takes its time to end a
        context, and nothing runs there any more."""
        self._locks.give(Right.KERNELS)
        self._ending = threading.Thread(target=self._end)
        self._ending.start()

    def _start_again(self) -> None:
        self._worker.__exit__()
        self._worker = WorkerProcess(self._command)
        self._stands_by = self._warm = self._ready = False
        self.stand_by()
        self._take_turn(wait=True)

    def run(
        self,
        build: Build,
        source_root: str,
        cases: Sequence[PlannedCase],
        lab: Lab,
        progress: Progress,
        ready: Callable[[GpuInfo], None] = lambda _: None,
    ) -> tuple[CaseOutcome, ...]:
        """Run the cases. ``ready`` hears of the GPU before the first of them. A case that ends the
        worker keeps only larger ones from running."""
        timed = frozenset(case.id for case in lab.timed)
        stages = in_stages(cases, timed)
        self._take_turn(wait=True)
        self._locks.take(Right.KERNELS)
        deadline = time.monotonic() + lab.limits.total_s + _STARTING_S
        with ThreadPoolExecutor(max_workers=1) as pool:
            host = _Host(pool, lab.problem)

            def whole(part: Sequence[PlannedCase]) -> bool:
                """Whether the worker can do another job after them."""
                job = messages.GpuJob(
                    cubin=str(build.cubin),
                    cases=tuple(part),
                    timed=timed.intersection(case.id for case in part),
                    runs=lab.scoring.runs,
                    run_seconds=self._run_seconds,
                    host_calls=lab.rules.host_calls,
                )
                return not part or self._run(job, deadline, lab, progress, ready, host)

            def tried_beside(part: Sequence[PlannedCase]) -> bool | None:
                """The same; None if what the worker before this one still holds may be why."""
                try:
                    good = whole(part)
                except MachineError:
                    return None
                return None if host.lacked else good

            try:
                good = tried_beside(stages.first) if self._beside else whole(stages.first)
                asked = time.monotonic()
                self._locks.take(Right.ALONE)
                deadline += time.monotonic() - asked
                if good is None:
                    self._start_again()
                    host = _Host(pool, lab.problem)
                    good = whole(stages.first)
                if good:
                    good = whole(stages.alone)
                    if not good and stages.last:  # they are smaller than what went wrong
                        self._start_again()
                        deadline = max(deadline, time.monotonic() + _STARTING_S)
                        good = True
                if good:
                    self._locks.give(Right.TURN)
                    good = whole(stages.last)
                if good:
                    self._end_behind()
            finally:
                self.__exit__()
            return host.outcomes([case.id for case in cases])

    def _run(
        self,
        job: messages.GpuJob,
        deadline: float,
        lab: Lab,
        progress: Progress,
        ready: Callable[[GpuInfo], None],
        host: _Host,
    ) -> bool:
        """Add what came out of a job's cases. Returns whether the worker can do another job."""
        by_id = {case.id: case for case in job.cases}
        running = job.cases[0]
        lines = self._worker.ask(
            msgspec.json.encode(job),
            seconds=deadline - time.monotonic(),
            patience=lambda: lab.limits.launch_s + (_CHECKING_S if self._ready else _STARTING_S),
        )
        try:
            for reply in decoded(phrase("the GPU worker"), lines, _DECODER):
                match reply:
                    case messages.Ready(gpu=gpu):
                        self._ready = True
                        if self.gpu is None:
                            self.gpu = gpu
                            ready(gpu)
                    case messages.Beat(case=name):
                        running = by_id[name]
                        words = phrase("running {size} on the GPU", size=str(running.plan.size))
                        progress(phrase("running on the GPU"), words)
                    case messages.Measured(outcome=outcome):
                        asked = by_id.get(outcome.id)
                        if asked is None or not outcome.continues(asked.case):
                            raise MachineError.saying("the GPU worker's answer is of no case")
                        host.confirm(reply)
                    case messages.Broken(case=name, message=message, findings=findings):
                        words = verbatim(message)
                        host.end(by_id[name], "crash", words, findings)
                        return False
                    case Failed(message=message):
                        raise MachineError(message)
                    case Done():
                        return True
        except Silence as silence:
            if not self._ready:
                raise MachineError.saying(
                    "the GPU worker did not start; try: grade doctor"
                ) from None
            words = phrase("a launch did not end within {seconds:g} s", seconds=lab.limits.launch_s)
            if silence.at_all:
                words = phrase("the {seconds:g} s for all sizes together are used up")
                words = words.given(seconds=lab.limits.total_s)
            host.end(running, "time", words)
            return False
        raise self._worker.ended(phrase("the GPU worker"))


class _Host:
    """The outcomes in order, confirmed by the host while the GPU goes on."""

    def __init__(self, pool: ThreadPoolExecutor, problem: Problem) -> None:
        from grader.run.gpu.host_check import HostCheck  # with NumPy, which no build waits for

        self._pool, self._check = pool, HostCheck(problem)
        self._found: list[Callable[[], CaseOutcome]] = []
        self.lacked = False  # whether the GPU may have had too little of something

    def confirm(self, seen: messages.Measured) -> None:
        self.lacked = self.lacked or seen.outcome.verdict is not None
        self._found.append(self._pool.submit(self._check.confirm, seen).result)

    def end(
        self,
        planned: PlannedCase,
        stopped: str,
        message: Message,
        findings: tuple[Finding, ...] = (),
    ) -> None:
        """Add the outcome of a case that ended the worker."""
        self.lacked = self.lacked or stopped == "crash"
        outcome = msgspec.structs.replace(
            planned.case, message=message, stopped=stopped, findings=findings
        )
        self._found.append(lambda: outcome)

    def outcomes(self, order: Sequence[str]) -> tuple[CaseOutcome, ...]:
        """order: the ids of the cases."""
        return tuple(sorted((each() for each in self._found), key=lambda o: order.index(o.id)))


# --- stages ------------------------------------------------------------------------------------

# Beside another worker's context run only sizes that take so much less than the operands of the
# largest do. What a submission allocates itself makes a size larger, never the largest one.
_SMALLER = 2
# One in so many of the small sizes is verified before anything is timed: most programs that are
# wrong are wrong there. While the others are verified, the next worker makes its context.
_FIRST = 4


class Stages(Record):
    first: tuple[PlannedCase, ...]  # verified; the worker before this one may still be ending
    alone: tuple[PlannedCase, ...]  # all timed ones, and those beside them
    last: tuple[PlannedCase, ...]  # verified; the next worker may make its context


def in_stages(cases: Sequence[PlannedCase], timed: Set[str]) -> Stages:
    """Split the cases, which are in increasing order. Three quarters of those before the first
    timed one run last, for the sake of the next worker."""
    most = max((_bytes(each, each.plan.given) for each in cases), default=0) // _SMALLER
    at = next((i for i, each in enumerate(cases) if each.id in timed or _bytes(each) > most), 0)
    small, alone = tuple(cases[:at]), tuple(cases[at:])
    if not any(each.id in timed for each in alone):
        return Stages(first=small, alone=alone, last=())
    before = -(-len(small) // _FIRST)
    return Stages(first=small[:before], alone=alone, last=small[before:])


def _bytes(case: PlannedCase, allocations: int | None = None) -> int:
    """Return the bytes of the plan's first ``allocations`` allocations, or of all."""
    return sum(each.size for each in case.plan.allocations[:allocations])


class Right(Enum):
    """The locks, in the order in which they are taken. A worker that times has all of them, so no
    other makes a context, runs a kernel or ends meanwhile. There are three since a worker ends in
    three steps: it has timed, its last kernel has run, its context is gone. Each lets the next
    worker do one thing more."""

    TURN = "turn"  # to make a context and load cuBLAS by one product; kept until all is timed
    KERNELS = "gpu"  # to run kernels
    ALONE = "alone"  # to time; kept until the worker's context is gone


class Locks:
    def __init__(self) -> None:
        self._held: dict[Right, ExitStack] = {}

    def take(self, right: Right, *, wait: bool = True) -> bool:
        """Whether it is held now; without ``wait`` somebody else may hold it."""
        if right not in self._held:
            with ExitStack() as held:
                path = lock_folder() / f"{first_gpu_uuid() or 'none'}.{right.value}.lock"
                if not held.enter_context(locked(path, wait=wait)):
                    return False
                self._held[right] = held.pop_all()
        return True

    def give(self, *rights: Right) -> None:
        """Give back those of them that are held."""
        for right in rights:
            if held := self._held.pop(right, None):
                held.close()
