"""Submission → build → plans: what every grading, command and benchmark begins with."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from typing import TypeAlias

import msgspec

from grader import base, explain
from grader.build import Toolchain, compile_submission
from grader.judge.launches import library_kernels, refusal, too_many_kernels
from grader.labs import Lab
from grader.record import record_plans
from grader.results import Ladder
from grader.run import CpuDevice, Progress, quietly
from grader.sandbox import Sandbox
from ptxsim import Declarations
from ptxsim.plan import Plan, Record, Size
from ptxsim.text import NOTHING, phrase

Code: TypeAlias = "Callable[[], tuple[explain.SassFunction, ...]]"  # machine code, once it is read


class GradingContext(Record):
    """Everything that the submissions of one command share."""

    lab: Lab
    toolchain: Toolchain
    sandbox: Sandbox
    gpu_arch: str | None = None  # "sm_90": grade on the GPU at hand; None: in the simulator
    explain: bool = True  # explain the speed of a correct kernel; takes a second or two
    ladders: tuple[Ladder, ...] = ()  # for the standing; the first that fits counts


def compile_for(
    submission: base.Submission,
    context: GradingContext,
    arch: str,
    ahead: Callable[[bytes], object] = lambda _ptx: None,
) -> base.Build:
    """Compile the submission for ``arch``, "sm_90". ahead: gets the PTX early. Raises Rejected."""
    return compile_submission(
        submission,
        context.lab.problem.interface,
        context.toolchain,
        context.sandbox,
        arch=arch,
        limits=context.lab.limits,
        ahead=ahead,
    )


class Program(Record):
    """A submission that compiles, and whose PTX has been read."""

    submission: base.Submission
    context: GradingContext
    built: base.Build
    declared: Declarations  # kernels and variables in the PTX
    plans: tuple[Plan, ...] = ()  # of the sizes that ``prepare`` was asked for

    @property
    def root(self) -> str:
        """The folder that source lines refer to."""
        return str(self.submission.folder)

    def record(
        self, sizes: Sequence[Size], arch: str | None = None, *, located: bool = True
    ) -> tuple[Plan | base.Rejected, ...]:
        """Run the host code once for each size, in processes that end with this call.

        arch: of the GPU that host code sees; None: the build's. located: note source lines.
        Fewer plans than sizes come back after an endless loop in host code. A plan that the lab's
        rules forbid is Rejected.
        """
        lab = self.context.lab
        plans = record_plans(
            self.built,
            self.submission,
            lab.problem,
            sizes,
            self.context.toolchain,
            self.context.sandbox,
            declared=self.declared,
            limits=lab.limits,
            target=base.standing_for(arch) if arch else None,
            located=located,
        )
        return tuple(
            (too_many_kernels(plan, lab.rules) or plan) if isinstance(plan, Plan) else plan
            for plan in plans
        )

    def note_libraries(self, plans: Iterable[Plan | base.Rejected]) -> tuple[base.Finding, ...]:
        """Return a note for each library kernel that ``plans`` launch.

        Raises Rejected where the lab forbids libraries.
        """
        lab = self.context.lab
        launched = (plan for plan in plans if isinstance(plan, Plan))
        notes = library_kernels(launched, self.declared, lab.problem)
        if refused := refusal(notes, lab.rules, self.built.info):
            raise refused
        return notes

    def disassemble(self) -> tuple[explain.SassFunction, ...]:
        """Read the machine code. Raises ToolchainError without nvdisasm."""
        return explain.disassemble(self.built.cubin, self.context.toolchain, self.context.sandbox)

    def explain(self, card: base.Gpu | None) -> base.Explanation:
        """Explain the speed at the last size prepared. card: None for a few known ones."""
        with CpuDevice(self.context.sandbox, self.context.lab.limits) as simulator:
            return self.explain_at(self.plans[-1], self.disassemble, simulator, card)

    def explain_at(
        self, plan: Plan, code: Code, simulator: CpuDevice, card: base.Gpu | None
    ) -> base.Explanation:
        problem = self.context.lab.problem
        return explain.explain_speed(
            self.built, self.root, plan, problem, code, simulator, gpu=card
        )


def build_program(
    submission: base.Submission,
    context: GradingContext,
    arch: str,
    reader: CpuDevice,
    progress: Progress,
) -> Program:
    """Compile the submission for ``arch`` and let ``reader`` read its PTX. Raises Rejected."""
    progress(phrase("compiling"), NOTHING)
    root = str(submission.folder)
    built = compile_for(submission, context, arch, partial(reader.read_ahead, source_root=root))
    declared = reader.read(built, root, progress)
    return Program(submission=submission, context=context, built=built, declared=declared)


def prepare(
    submission: base.Submission, sizes: Sequence[Size], context: GradingContext, arch: str
) -> Program:
    """Compile, and record at all ``sizes``. Raises Rejected, also if one size is refused."""
    with CpuDevice(context.sandbox, context.lab.limits) as reader:
        program = build_program(submission, context, arch, reader, quietly)
    plans = []
    for plan in program.record(sizes):
        if isinstance(plan, base.Rejected):
            raise plan
        plans.append(plan)
    return msgspec.structs.replace(program, plans=tuple(plans))


def explain_sizes(
    submission: base.Submission, sizes: Sequence[Size], context: GradingContext, arch: str
) -> Iterator[base.Explanation | base.Rejected]:
    """Explain the speed at each size on a few known GPUs, all by one build, one recording and one
    simulator. An endless loop in host code ends the answers early. Raises Rejected."""
    with CpuDevice(context.sandbox, context.lab.limits) as simulator:
        program = build_program(submission, context, arch, simulator, quietly)
        code = cache(program.disassemble)
        for plan in program.record(sizes):
            if isinstance(plan, base.Rejected):
                yield plan
            else:
                yield program.explain_at(plan, code, simulator, None)


# --- explaining --------------------------------------------------------------------------------


class Explaining:
    """Why a kernel is as fast as it is, at the largest timed size; nothing if that has no plan.

    The machine code is read beside whatever else happens until ``result``. Explanations are kept
    in the cache: they do not depend on the inputs.
    """

    def __init__(
        self,
        program: Program,
        plans: Iterable[Plan | base.Rejected],
        card: base.Gpu | None = None,
        code: Code | None = None,
    ) -> None:
        """card: graded on, if known. code: its machine code, if somebody reads it anyway."""
        self._program, self._card, context = program, card, program.context
        problem = context.lab.problem
        timed = (case.size for case in context.lab.performance)
        size = max(timed, key=problem.amount, default=None)
        found = (plan for plan in plans if isinstance(plan, Plan) and plan.size == size)
        self._plan = next(found, None) if context.explain else None
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._key, self._known = "", None
        if self._plan is not None:
            self._key = explain.explanation_key(
                program.built, self._plan, problem, context.toolchain, card
            )
            self._known = explain.recall(self._key)
            if self._known is None:
                self._code = code or self._pool.submit(program.disassemble).result

    def __enter__(self) -> Explaining:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False)  # nobody waits for an explanation that is not wanted

    def result(self, simulator: CpuDevice, progress: Progress) -> base.Explanation | None:
        """The explanation, which says in ``missing`` why it is none; None without a plan."""
        plan, program = self._plan, self._program
        if plan is None or self._known is not None:
            return self._known
        progress(phrase("explaining"), NOTHING)
        try:
            found = program.explain_at(plan, self._code, simulator, self._card)
            if found.missing is None:
                with suppress(OSError):
                    explain.keep(self._key, found)
            return found
        except base.OutOfTime:
            raise
        except base.GraderError as failure:  # the verdict stands, whatever cannot be explained
            missing = failure.message
        except OSError as failure:
            missing = base.MachineError.of(failure).message
        except Exception as fault:  # of ours
            traceback.print_exc()
            missing = phrase(
                "a fault of the grader: {fault}", fault=f"{type(fault).__name__}: {fault}"
            )
        return explain.unexplained(
            program.built, program.context.lab.problem.at(plan.size), missing
        )
