"""Submission → build → plans: what every grading, command and benchmark begins with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from grader.backends.simulator.device import CpuDevice, read_declarations
from grader.compile.building import compile_submission
from grader.errors import Rejected
from grader.hardware.gpus import Gpu
from grader.hardware.targets import target_for
from grader.judging.launches import too_many_kernels
from grader.labs.lab import Lab
from grader.ladder.document import Ladder
from grader.model import Build, Explanation, Plan, Record, Size, Submission
from grader.performance.explanation import explain_speed
from grader.performance.sass import disassemble
from grader.record.recording import record_plans
from grader.sandbox.running import Sandbox
from grader.toolchain.discovery import Toolchain
from ptxsim.frontend.interface import Interface


class Bench(Record):
    """What all submissions of one command share."""

    lab: Lab
    toolchain: Toolchain
    sandbox: Sandbox
    gpu_arch: str | None = None  # "sm_90": grade on the GPU at hand; None: in the simulator
    explain: bool = True  # explain the speed of a correct kernel; takes a second or two
    ladders: tuple[Ladder, ...] = ()  # for the standing; the first that fits counts
    raw: bool = False  # keep the times of every repetition in the result


class Prepared(Record):
    """A submission, ready to be run at some sizes."""

    submission: Submission
    built: Build
    plans: tuple[Plan, ...]


def compiled(submission: Submission, bench: Bench, arch: str) -> Build:
    return compile_submission(
        submission,
        bench.lab.problem.interface,
        bench.toolchain,
        bench.sandbox,
        arch=arch,
        compile_s=bench.lab.limits.compile_s,
        memory_mb=bench.lab.limits.memory_mb,
    )


def recorded(
    built: Build,
    declared: Interface,
    submission: Submission,
    sizes: Sequence[Size],
    bench: Bench,
    arch: str | None = None,
) -> tuple[Plan | Rejected, ...]:
    """arch: of the GPU that host code is told about; None: the build's.

    Plans that the lab's rules do not allow are refused."""
    plans = record_plans(
        built,
        submission,
        bench.lab.problem,
        sizes,
        bench.toolchain,
        bench.sandbox,
        declared=declared,
        record_s=bench.lab.limits.record_s,
        memory_mb=bench.lab.limits.memory_mb,
        target=target_for(arch) if arch else None,
    )
    return tuple(
        (too_many_kernels(plan, bench.lab.rules) or plan) if isinstance(plan, Plan) else plan
        for plan in plans
    )


def prepared(submission: Submission, sizes: Sequence[Size], bench: Bench, arch: str) -> Prepared:
    """Raises Rejected if the submission does not compile, or cannot be recorded at a size."""
    built = compiled(submission, bench, arch)
    folder = str(submission.folder)
    declared = read_declarations(built, folder, bench.sandbox, bench.lab.limits)
    plans = recorded(built, declared, submission, sizes, bench)
    return Prepared(submission=submission, built=built, plans=tuple(_accepted(plans)))


def _accepted(plans: Iterable[Plan | Rejected]) -> Iterable[Plan]:
    for plan in plans:
        if isinstance(plan, Rejected):
            raise plan
        yield plan


def explained(ready: Prepared, bench: Bench, card: Gpu | None) -> Explanation:
    """At the last size. card: None for a few known ones."""
    code = partial(disassemble, ready.built.cubin, bench.toolchain, bench.sandbox)
    folder = str(ready.submission.folder)
    with CpuDevice(bench.sandbox, bench.lab.limits) as simulator:
        plan, problem = ready.plans[-1], bench.lab.problem
        return explain_speed(ready.built, folder, plan, problem, code, simulator, gpu=card)
