"""Counts of real builds, for the tests of what explains them."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

from grader.backends.simulator.device import CpuDevice, read_declarations
from grader.compile.building import compile_submission
from grader.hardware import gpus
from grader.labs.lab import Limits
from grader.model import Build, Explanation, KernelCounts, Mnk, Plan
from grader.performance.explanation import explain_speed
from grader.performance.join import count
from grader.performance.loop_steps import MainLoop, main_loop_steps
from grader.performance.sass import Function, disassemble
from grader.record.recording import record_plans
from grader.submission.folder import load_submission
from ptxsim.sampling import SOME, LaunchSample, Sampler
from tests.support.bench import bench
from tests.support.kernels import engine
from tests.support.places import ROOT

LIMITS = Limits(memory_mb=4096)
LARGE = Mnk(m=8192, n=8192, k=8192)


def rung(idea: str) -> Path:
    """Rungs are found by their idea: their numbers may move."""
    return next(ROOT.glob(f"reference/*_{idea}"))


@cache
def built(folder: Path, arch: str) -> Build:
    shared = bench()
    return compile_submission(
        load_submission(folder),
        shared.toolchain,
        shared.sandbox,
        arch=arch,
        compile_s=120.0,
        memory_mb=4096,
    )


@cache
def functions(folder: Path, arch: str) -> tuple[Function, ...]:
    shared = bench()
    return disassemble(built(folder, arch).cubin, shared.toolchain, shared.sandbox)


@cache
def samples(
    folder: Path, arch: str, n: int, seconds: float = 20.0, blocks: int = SOME
) -> tuple[LaunchSample, ...]:
    """Of every kind of launch of an n³ product."""
    shared, made = bench(), built(folder, arch)
    submission, size = load_submission(folder), Mnk(m=n, n=n, k=n)
    (plan,) = record_plans(
        made,
        submission,
        [size],
        shared.toolchain,
        shared.sandbox,
        declared=read_declarations(made, str(folder), shared.sandbox),
        record_s=20,
        memory_mb=4096,
    )
    assert isinstance(plan, Plan), plan
    return Sampler(made.ptx.read_text(), submission.folder, engine()).sample(plan, seconds, blocks)


@cache
def counts(
    folder: Path, arch: str, n: int, seconds: float = 20.0, blocks: int = SOME
) -> tuple[KernelCounts, ...]:
    """What they do."""
    by_name = {function.name: function for function in functions(folder, arch)}
    size = Mnk(m=n, n=n, k=n)
    found = samples(folder, arch, n, seconds, blocks)
    return tuple(count(by_name[sample.kernel], sample, size) for sample in found)


def loops(
    folder: Path, arch: str, n: int, seconds: float = 20.0, blocks: int = SOME
) -> tuple[MainLoop | None, ...]:
    """How they go round their main loops."""
    by_name = {function.name: function for function in functions(folder, arch)}
    size = Mnk(m=n, n=n, k=n)
    found = samples(folder, arch, n, seconds, blocks)
    return tuple(main_loop_steps(by_name[sample.kernel], sample, size) for sample in found)


@cache
def explained(folder: Path, arch: str = "sm_90") -> Explanation:
    shared, made = bench(), built(folder, arch)
    tools = (shared.toolchain, shared.sandbox)
    submission = load_submission(folder)
    declared = read_declarations(made, str(folder), shared.sandbox)
    (plan,) = record_plans(
        made, submission, [LARGE], *tools, declared=declared, record_s=20, memory_mb=4096
    )
    assert isinstance(plan, Plan)
    card = gpus.find("H200" if arch == "sm_90" else "A100")
    with CpuDevice(shared.sandbox, LIMITS) as simulator:
        code = partial(functions, folder, arch)
        found = explain_speed(made, str(folder), plan, code, simulator, gpu=card)
    assert found.missing is None
    return found
