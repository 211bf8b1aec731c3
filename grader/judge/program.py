"""Submission → build → plans: what every grading, command and benchmark begins with."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial

from grader.base import (
    Build,
    BuildInfo,
    Explanation,
    Finding,
    Gpu,
    GraderError,
    MachineError,
    OutOfTime,
    Rejected,
    Submission,
    target_for,
)
from grader.build import Toolchain, compile_submission
from grader.explain import (
    SassFunction,
    disassemble,
    explain_speed,
    explanation_key,
    keep,
    recall,
    unexplained,
)
from grader.judge import launches as libraries
from grader.judge.launches import too_many_kernels
from grader.labs import Lab
from grader.record import record_plans
from grader.results import Ladder
from grader.run import CpuDevice, Progress, quietly
from grader.sandbox import Sandbox
from ptxsim.frontend.interface import Interface
from ptxsim.message import NOTHING, phrase
from ptxsim.records import Plan, Record, Size


class Bench(Record):
    """Everything that the submissions of one command share."""

    lab: Lab
    toolchain: Toolchain
    sandbox: Sandbox
    gpu_arch: str | None = None  # "sm_90": grade on the GPU at hand; None: in the simulator
    explain: bool = True  # explain the speed of a correct kernel; takes a second or two
    ladders: tuple[Ladder, ...] = ()  # for the standing; the first that fits counts


class Prepared(Record):
    """A submission, ready to be run at some sizes."""

    submission: Submission
    built: Build
    plans: tuple[Plan, ...]


def compile_for(submission: Submission, bench: Bench, arch: str) -> Build:
    """Compile the submission for ``arch``, "sm_90". Raises Rejected."""
    return compile_submission(
        submission,
        bench.lab.problem.interface,
        bench.toolchain,
        bench.sandbox,
        arch=arch,
        compile_s=bench.lab.limits.compile_s,
        memory_mb=bench.lab.limits.memory_mb,
    )


class Program(Record):
    """A submission that compiles, and whose PTX has been read."""

    submission: Submission
    bench: Bench
    build: Build
    declared: Interface  # kernels and variables in the PTX

    @property
    def root(self) -> str:
        """The folder that source lines refer to."""
        return str(self.submission.folder)

    @property
    def info(self) -> BuildInfo:
        """The build's part of the result document."""
        built = self.build
        return BuildInfo(
            ok=True,
            command=built.command,
            log=built.log,
            seconds=built.seconds,
            kernels=built.kernels,
            arch=built.arch,
        )

    def record(
        self, sizes: Sequence[Size], arch: str | None = None, *, located: bool = True
    ) -> tuple[Plan | Rejected, ...]:
        """Run the host code once for each size, in processes that end with this call.

        arch: of the GPU that host code sees; None: the build's. located: note source lines.
        Fewer plans than sizes come back after an endless loop in host code. A plan that the lab's
        rules forbid is Rejected.
        """
        lab = self.bench.lab
        plans = record_plans(
            self.build,
            self.submission,
            lab.problem,
            sizes,
            self.bench.toolchain,
            self.bench.sandbox,
            declared=self.declared,
            record_s=lab.limits.record_s,
            memory_mb=lab.limits.memory_mb,
            target=target_for(arch) if arch else None,
            located=located,
        )
        return tuple(
            (too_many_kernels(plan, lab.rules) or plan) if isinstance(plan, Plan) else plan
            for plan in plans
        )

    def note_libraries(self, plans: Iterable[Plan | Rejected]) -> tuple[Finding, ...]:
        """Return a note for each library kernel that ``plans`` launch.

        Raises Rejected where the lab forbids libraries.
        """
        lab = self.bench.lab
        launched = (plan for plan in plans if isinstance(plan, Plan))
        notes = libraries.library_kernels(launched, self.declared, lab.problem)
        if refusal := libraries.refusal(notes, lab.rules, self.info):
            raise refusal
        return notes


def build_program(
    submission: Submission, bench: Bench, arch: str, reader: CpuDevice, progress: Progress
) -> Program:
    """Compile the submission for ``arch`` and let ``reader`` read its PTX. Raises Rejected."""
    progress(phrase("compiling"), NOTHING)
    build = compile_for(submission, bench, arch)
    declared = reader.read(build, str(submission.folder), progress)
    return Program(submission=submission, bench=bench, build=build, declared=declared)


def prepare(submission: Submission, sizes: Sequence[Size], bench: Bench, arch: str) -> Prepared:
    """Compile, and record at all ``sizes``. Raises Rejected, also if one size is refused."""
    with CpuDevice(bench.sandbox, bench.lab.limits) as reader:
        program = build_program(submission, bench, arch, reader, quietly)
    plans = []
    for plan in program.record(sizes):
        if isinstance(plan, Rejected):
            raise plan
        plans.append(plan)
    return Prepared(submission=submission, built=program.build, plans=tuple(plans))


def explain(ready: Prepared, bench: Bench, card: Gpu | None) -> Explanation:
    """Explain the speed at the last size. card: None for a few known ones."""
    code = partial(disassemble, ready.built.cubin, bench.toolchain, bench.sandbox)
    folder = str(ready.submission.folder)
    with CpuDevice(bench.sandbox, bench.lab.limits) as simulator:
        plan, problem = ready.plans[-1], bench.lab.problem
        return explain_speed(ready.built, folder, plan, problem, code, simulator, gpu=card)


def explain_sizes(
    submission: Submission, sizes: Sequence[Size], bench: Bench, arch: str
) -> Iterator[Explanation | Rejected]:
    """Explain the speed at each size on a few known GPUs, all by one build, one recording and one
    simulator. An endless loop in host code ends the answers early. Raises Rejected."""
    with CpuDevice(bench.sandbox, bench.lab.limits) as simulator:
        program = build_program(submission, bench, arch, simulator, quietly)
        build, root, problem = program.build, program.root, bench.lab.problem
        code = cache(partial(disassemble, build.cubin, bench.toolchain, bench.sandbox))
        for plan in program.record(sizes):
            if isinstance(plan, Rejected):
                yield plan
            else:
                yield explain_speed(build, root, plan, problem, code, simulator)


# --- explaining --------------------------------------------------------------------------------


class Explaining:
    """Why a kernel is as fast as it is, at the largest timed size; nothing if that has no plan.

    The machine code is read beside whatever else happens until ``result``. Explanations are kept
    in the cache: they do not depend on the inputs.
    """

    def __init__(
        self,
        program: Program,
        plans: Iterable[Plan | Rejected],
        card: Gpu | None = None,
        code: Callable[[], tuple[SassFunction, ...]] | None = None,
    ) -> None:
        """card: graded on, if known. code: its machine code, if somebody reads it anyway."""
        build, bench = program.build, program.bench
        self._program, self._card, self._code = program, card, code
        self._plan = _largest(plans, bench.lab) if bench.explain else None
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._key, self._known = "", None
        if self._plan is not None:
            self._key = explanation_key(build, self._plan, bench.lab.problem, bench.toolchain, card)
            self._known = recall(self._key)
            if self._known is None and code is None:
                reading = self._pool.submit(
                    disassemble, build.cubin, bench.toolchain, bench.sandbox
                )
                self._code = reading.result

    def __enter__(self) -> Explaining:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False)  # nobody waits for an explanation that is not wanted

    def result(self, simulator: CpuDevice, progress: Progress) -> Explanation | None:
        """The explanation, which says in ``missing`` why it is none; None without a plan."""
        if self._plan is None or self._known is not None:
            return self._known
        assert self._code is not None
        build, problem = self._program.build, self._program.bench.lab.problem
        progress(phrase("explaining"), NOTHING)
        try:
            root, plan = self._program.root, self._plan
            found = explain_speed(build, root, plan, problem, self._code, simulator, gpu=self._card)
            if found.missing is None:
                with suppress(OSError):
                    keep(self._key, found)
            return found
        except OutOfTime:
            raise
        except GraderError as failure:  # the verdict stands, whatever cannot be explained
            missing = failure.message
        except OSError as failure:
            missing = MachineError.of(failure).message
        except Exception as fault:  # of ours
            traceback.print_exc()
            missing = phrase(
                "a fault of the grader: {fault}", fault=f"{type(fault).__name__}: {fault}"
            )
        return unexplained(build, problem.at(self._plan.size), missing)


def _largest(plans: Iterable[Plan | Rejected], lab: Lab) -> Plan | None:
    """The plan of the largest timed size."""
    size = max((case.size for case in lab.performance), key=lab.problem.amount)
    found = (plan for plan in plans if isinstance(plan, Plan))
    return next((plan for plan in found if plan.size == size), None)
