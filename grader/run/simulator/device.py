"""The simulator as a device: one worker process per grade, caged and watched from here.

Only the worker reads a submission's PTX. Its answers come from an untrusted process: they are
bounded, decoded strictly and checked.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from grader import base
from grader.build import Build
from grader.labs import Lab, Limits
from grader.problems import ProblemRef
from grader.run.probe import CODE
from grader.run.process import Cage, WorkerProcess, decoded
from grader.run.protocol import CaseOutcome, Done, Finished, PlannedCase, Progress, quietly
from grader.run.simulator import messages
from grader.sandbox import FellAsleep, ProcessLimits, Sandbox, Starved, TookTooLong, started
from ptxsim import FLAGS, Declarations, cpu_levels, engine_sources, ptx_text, shipped_engine
from ptxsim.findings import LaunchSample
from ptxsim.plan import Launch, Plan
from ptxsim.text import NOTHING, Message, counted, phrase, verbatim

_WORKER = (sys.executable, "-m", "grader.run.simulator.simulation_worker")
_COMPILE = "from grader.run import engine_library; engine_library().compiled()"
_COMPILE_ENGINE = (sys.executable, "-c", _COMPILE)
_READ_SECONDS = 20.0  # CPU; the largest module that a compiler makes takes less than one
_GRACE_SECONDS = 60.0  # CPU, beyond the lab's own limits: inputs and verification
_SAMPLE_SECONDS = 1.0  # CPU, of the launches that are counted or looked at
_SAMPLE_GRACE_SECONDS = 30.0  # CPU, including the preparation
_SECOND_SECONDS = 2.0  # CPU, of the second build's launches
_LOOK_SECONDS = 3.0  # CPU, of the runs that say what wrong elements hold
_LARGEST_SECOND = 2 << 20  # bytes of its PTX, which take about a second to read
_THREADS = 32  # the worker's own, and those that a library starts
_FILE_MB = 8  # its log, and a piece of memory that it maps many times
_DECODER: msgspec.json.Decoder[messages.Reply] = base.decoder(messages.Reply)
_T = TypeVar("_T")


def portable_engine(level: str) -> base.Native:
    """The interpreter for every CPU of this level."""
    flags = tuple(f"-march={level}" if flag == "-march=native" else flag for flag in FLAGS)
    return base.Native(
        name=f"simulator-{level}", sources=engine_sources(), shared=True, flags=flags
    )


def engine_library(flags: tuple[str, ...] = FLAGS) -> base.Native:
    """ptxsim's interpreter as the grader compiles and caches it; it may not be compiled yet."""
    shipped = shipped_engine() if flags == FLAGS else None
    if flags == FLAGS and not shipped and os.environ.get(base.PREPARED_VARIABLE):
        portable = (base.prepared(portable_engine(level).file_name) for level in cpu_levels())
        shipped = next(filter(None, portable), None)
    return base.Native(
        name="simulator", sources=engine_sources(), shared=True, flags=flags, shipped=shipped
    )


class CpuDevice:
    """Runs plans in the SIMT simulator. The worker starts on ``__enter__``, so that it has
    loaded its libraries by the time the submission is compiled.

    The first time on a machine, another process outside the cage compiles the simulator meanwhile;
    the worker starts when that is done.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        limits: Limits,
        problem: ProblemRef | None = None,
        command: Sequence[str] = _WORKER,
    ) -> None:
        """problem: what ``run`` verifies."""
        self._sandbox = sandbox
        self._problem = problem
        self._limits = limits
        self._command = command
        self._engine = engine_library()
        self._ending = contextlib.ExitStack()
        self._compiling: subprocess.Popen[bytes] | None = None
        self._worker: WorkerProcess | None = None
        self._read: tuple[bytes, Declarations] | None = None  # what the worker read last
        self._known: tuple[Path, Declarations] | None = None  # the build that this is of

    def __enter__(self) -> CpuDevice:
        try:
            engine = self._engine.path()
            if engine.exists():
                self._start(engine)
            else:
                running = started(_COMPILE_ENGINE, CODE, os.environ, stderr=subprocess.DEVNULL)
                self._compiling = self._ending.enter_context(running)
        except BaseException:
            self._ending.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def _start(self, engine: Path) -> WorkerProcess:
        limits = ProcessLimits(
            cpu_s=self._limits.total_s + _GRACE_SECONDS + _SAMPLE_GRACE_SECONDS,
            memory_mb=self._limits.memory_mb,
            file_mb=_FILE_MB,
            processes=_THREADS,
        )
        own = (self._problem.file,) if self._problem and self._problem.file else ()
        cage = Cage(sandbox=self._sandbox, limits=limits, readable=(engine, *own))
        asked = msgspec.json.encode(self._problem).decode()
        filtered = "filtered" if self._sandbox.filtered else ""
        worker = WorkerProcess((*self._command, str(engine), asked, filtered), cage)
        self._worker = self._ending.enter_context(worker)
        return worker

    def _started(self, progress: Progress) -> WorkerProcess:
        if self._worker is not None:
            return self._worker
        if self._compiling is not None:
            progress(phrase("compiling the simulator (only the first time on a machine)"), NOTHING)
            self._compiling.wait()
        return self._start(self._engine.compiled())  # raises with the reason if that failed

    def read(self, build: Build, source_root: str, progress: Progress) -> Declarations:
        """Return the declarations of ``build``'s PTX. Raises Rejected when it cannot be read."""
        if self._known is None or self._known[0] != build.ptx:
            self._known = build.ptx, self._read_ptx(build.ptx.read_bytes(), source_root, progress)
        return self._known[1]

    def read_ahead(self, ptx: bytes, source_root: str) -> None:
        """Read PTX for which ``read`` will ask, unless the worker is yet to be started."""
        if self._worker is not None:
            self._read_ptx(ptx, source_root, quietly)

    def _read_ptx(self, ptx: bytes, source_root: str, progress: Progress) -> Declarations:
        if self._read is None or self._read[0] != ptx:
            request = messages.Read(ptx=ptx_text(ptx), source_root=source_root)
            late = phrase("reading its PTX took more than {seconds:g} s of CPU time")
            when = phrase("while it read the PTX")
            reply = self._answer(request, messages.Declared, late, when, progress)
            self._read, self._known = (ptx, reply.interface), None
        return self._read[1]

    def tensor_cores(self, plans: Sequence[Plan]) -> tuple[base.Finding, ...]:
        """A note for every tensor-core instruction of the kernels that ``plans`` launch."""
        request = messages.Inspect(plans=tuple(plans))
        late = phrase("looking through its PTX took more than {seconds:g} s of CPU time")
        when = phrase("while it looked for tensor cores")
        return self._answer(request, messages.Notes, late, when).findings

    def sample(
        self, build: Build, source_root: str, plan: Plan, progress: Progress
    ) -> tuple[LaunchSample, ...]:
        """Counts of a few blocks of each kind of launch; () for too many kinds. Raises GraderError
        with the reason when there is nothing."""
        self.read(build, source_root, progress)
        request = messages.Sample(plan=plan, seconds=_SAMPLE_SECONDS, counts=True)
        late = phrase("counting the largest size's blocks took too long")
        reply = self._answer(request, messages.Sampled, late, phrase("while it counted"))
        if not all(map(messages.plausible, reply.samples)):
            raise base.MachineError.saying("the simulator's counts are impossible")
        return reply.samples

    def probe(
        self, build: Build, source_root: str, plan: Plan, progress: Progress
    ) -> tuple[base.Finding, ...]:
        """Return accesses outside their memory that a few blocks of each launch make. Raises
        GraderError with the reason when nothing could be looked at."""
        self.read(build, source_root, progress)
        request = messages.Sample(plan=plan, seconds=_SAMPLE_SECONDS, counts=False)
        late = phrase("looking at its memory took too long")
        return self._answer(
            request, messages.Notes, late, phrase("while it looked at its memory")
        ).findings

    def run_second(
        self, build: Build, source_root: str, plans: Sequence[Plan], progress: Progress
    ) -> messages.SecondRun:
        """Run ``plans`` on the second build of the device code. Raises GraderError with the reason
        when there is nothing."""
        self.read(build, source_root, progress)
        ptx = build.second_ptx.read_bytes()
        if not ptx:
            raise base.MachineError.saying("nvcc -G does not compile it")
        if len(ptx) > _LARGEST_SECOND:
            raise base.MachineError.saying("its PTX is too long")
        request = messages.RunSecond(
            ptx=ptx_text(ptx), source_root=source_root, plans=tuple(plans), seconds=_SECOND_SECONDS
        )
        late = phrase("it did not end in time")
        when = phrase("while it ran the second build")
        return self._answer(request, messages.SecondRun, late, when)

    def look_into(
        self, build: Build, source_root: str, plan: Plan, progress: Progress
    ) -> messages.Contents:
        """Return what wrong elements of a plan hold. Raises GraderError with the reason when it
        could not be looked at."""
        self.read(build, source_root, progress)
        request = messages.Look(plan=plan, seconds=min(_LOOK_SECONDS, self._limits.simulate_s))
        late = phrase("looking at what wrong elements hold took too long")
        when = phrase("while it looked at wrong elements")
        return self._answer(request, messages.Contents, late, when)

    def run(
        self,
        build: Build,
        source_root: str,
        cases: Sequence[PlannedCase],
        lab: Lab,
        progress: Progress,
        *,
        hints: bool = False,
    ) -> tuple[CaseOutcome, ...]:
        """Run the cases in order; ``progress`` hears how far it is. Cases after one that exceeded
        its time may be missing from the answer: they were not run. hints: why elements may be
        wrong, also where they are right. Raises MachineError when the simulator, not the
        submission, failed."""
        limits = lab.limits
        self.read(build, source_root, progress)
        job = messages.Job(
            cases=tuple(cases),
            case_seconds=limits.simulate_s,
            total_seconds=limits.total_s,
            memory_mb=limits.memory_mb,
            threads=min(2, os.cpu_count() or 1),
            capacities=tuple(
                capacities(case.plan, build.info.kernels, lab.architectures) for case in cases
            ),
            hints=hints,
        )
        outcomes: dict[str, CaseOutcome] = {}
        left = {case.id: case for case in cases}
        seconds = limits.total_s + _GRACE_SECONDS
        begun = counted("simulating {count} size", "simulating {count} sizes", len(cases))
        progress(phrase("simulating"), begun)
        try:
            for reply in self._ask(job, seconds):
                match reply:
                    case Finished(outcome=outcome) if messages.is_of(outcome, left.get(outcome.id)):
                        outcomes[outcome.id] = outcome
                        del left[outcome.id]
                        done = phrase("simulating: {done} of {all} sizes done")
                        done = done.given(done=len(outcomes), all=len(cases))
                        progress(phrase("simulating"), done)
                    case Done():
                        break
                    case _:
                        raise messages.unexpected(reply)
            else:
                running = next(iter(left.values()), None)
                when = verbatim(str(running.plan.size)) if running else phrase("at the end")
                raise self._ended(when)
        except TookTooLong:
            late = next(iter(left.values()), cases[-1])
            words = phrase("the simulator worked for more than {seconds:g} s of CPU time")
            refusal = base.Rejected(base.Verdict.TLE, words.given(seconds=seconds))
            outcomes[late.id] = late.case.refused(refusal)
        return tuple(outcomes[case.id] for case in cases if case.id in outcomes)

    def _answer(
        self,
        request: messages.Request,
        kind: type[_T],
        late: Message,
        when: Message,
        progress: Progress = quietly,
    ) -> _T:
        """The only answer to a request. late: why there is none in time; only where the first
        build is read is that the submission's fault. when: how to say that the process ended."""
        sampling = isinstance(request, messages.Sample | messages.RunSecond | messages.Look)
        cpu_s = _SAMPLE_GRACE_SECONDS if sampling else _READ_SECONDS
        try:
            for reply in self._ask(request, cpu_s, progress):
                if isinstance(reply, kind):
                    return reply
                raise messages.unexpected(reply)
        except TookTooLong:
            if sampling:
                raise base.MachineError(late) from None
            raise base.Rejected(base.Verdict.TLE, late.given(seconds=cpu_s)) from None
        raise self._ended(when)

    def _ask(
        self, request: messages.Request, cpu_s: float, progress: Progress = quietly
    ) -> Iterator[messages.Reply]:
        """Raises TookTooLong, which is the program's fault. The next request gets a new worker."""
        worker = self._started(progress)
        try:
            yield from decoded(
                phrase("the simulator"), worker.work(msgspec.json.encode(request), cpu_s), _DECODER
            )
        except (TookTooLong, Starved) as end:
            worker.__exit__()
            self._worker = self._read = self._known = None
            if isinstance(end, FellAsleep):  # no submission can cause this
                words = phrase("the simulator gave no answer within {seconds:g} s", seconds=cpu_s)
                raise base.MachineError(words) from None
            if isinstance(end, TookTooLong):
                raise
            busy = f"the machine was too busy to give the simulator its {cpu_s:g} s of CPU time"
            raise base.MachineError(busy) from None

    def _ended(self, when: Message) -> base.MachineError:
        """No submission should be able to end the interpreter, so this is the grader's fault."""
        assert self._worker
        return self._worker.ended(phrase("the simulator process"), when)


def capacities(
    plan: Plan, kernels: Sequence[base.KernelInfo], architectures: Sequence[str]
) -> tuple[messages.BlockCapacity, ...]:
    """For every launch of ``plan`` the capacity that the lab's GPUs have for its blocks."""
    figures = {kernel.name: kernel for kernel in kernels}
    capabilities = {base.gpus.capability_of(each) for each in architectures}
    cards = [gpu for gpu in base.gpus.known() if gpu.capability in capabilities]

    def most(launch: Launch) -> messages.BlockCapacity:
        found = [messages.BlockCapacity(gpu="", blocks=0)]
        if kernel := figures.get(launch.kernel):
            for gpu in cards:
                fits = base.gpus.occupancy(gpu.multiprocessor, kernel, launch)
                blocks = fits.blocks * gpu.multiprocessors if fits else 0
                found.append(messages.BlockCapacity(gpu=gpu.name, blocks=blocks))
        return max(found, key=lambda each: each.blocks)

    operations = (*plan.setup, *plan.operations)
    return tuple(most(each) for each in operations if isinstance(each, Launch))
