"""Submission → build → plans: what every grading, command and benchmark begins with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from grader import base
from grader.build import (
    Build,
    SassFunction,
    Toolchain,
    compile_submission,
    disassemble,
    find_toolchain,
)
from grader.judge.launches import library_kernels, refusal, too_many_kernels
from grader.labs import Lab, Submission, load_lab
from grader.record import record_plans
from grader.results import Ladder
from grader.run import CpuDevice, Progress, quietly
from grader.sandbox import Mode, Sandbox
from ptxsim import Declarations
from ptxsim.plan import Plan, Record, Size
from ptxsim.text import NOTHING, phrase

MachineCode: TypeAlias = tuple[SassFunction, ...]
Code: TypeAlias = Callable[[], MachineCode]  # once it is read


class GradingContext(Record):
    """Everything that the submissions of one command share."""

    lab: Lab
    toolchain: Toolchain
    sandbox: Sandbox
    gpu_arch: str | None = None  # "sm_90": grade on the GPU at hand; None: in the simulator
    ladders: tuple[Ladder, ...] = ()  # for the standing; the first that fits counts
    card: base.gpus.Gpu | None = None  # for which the simulator estimates; None: the lab's first


class ContextSettings(Record):
    """The choices from which a context is made, in another process if need be."""

    lab: Path | None
    sandbox: Mode
    gpu_arch: str | None  # "sm_90": the GPU at hand; None: the simulator
    ladders: tuple[Ladder, ...] = ()  # to compute standings
    vouched: bool = True  # as load_lab takes it

    @property
    def device(self) -> Literal["cpu", "gpu"]:
        return "cpu" if self.gpu_arch is None else "gpu"

    def context(self) -> GradingContext:
        """Raises LabError, ToolchainError, SandboxError."""
        lab = load_lab(self.lab, vouched=self.vouched)
        return GradingContext(
            lab=lab,
            toolchain=find_toolchain(self.gpu_arch or lab.architectures[0]),
            sandbox=Sandbox.open(self.sandbox),
            gpu_arch=self.gpu_arch,
            ladders=self.ladders,
        )


def compile_for(
    submission: Submission,
    context: GradingContext,
    arch: str,
    ahead: Callable[[bytes], object] = lambda _ptx: None,
) -> Build:
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

    submission: Submission
    context: GradingContext
    built: Build
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
            target=base.gpus.standing_for(arch) if arch else None,
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

    def disassemble(self) -> MachineCode:
        """Read the machine code. Raises ToolchainError without nvdisasm."""
        return disassemble(self.built.cubin, self.context.toolchain, self.context.sandbox)


def build_program(
    submission: Submission,
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
    submission: Submission, sizes: Sequence[Size], context: GradingContext, arch: str
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
