"""The parts of the result document that no stage produces."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Sequence

import msgspec

from grader.backends.protocol import PlannedCase
from grader.errors import MachineError, Rejected, one_line
from grader.judging.launches import kernels_launched
from grader.model import (
    Build,
    BuildInfo,
    CaseResult,
    KernelLaunch,
    Launch,
    Plan,
    Size,
    SlurmInfo,
    phrase,
)
from grader.problems.problem import Problem


def build_info(built: Build) -> BuildInfo:
    return BuildInfo(
        ok=True,
        command=built.command,
        log=built.log,
        seconds=built.seconds,
        kernels=built.kernels,
        arch=built.arch,
    )


def launches_of(planned: Sequence[PlannedCase], problem: Problem) -> tuple[KernelLaunch, ...]:
    """The launches of the largest size; equal launches are counted together."""
    largest = max(planned, key=lambda case: problem.amount(case.plan.size), default=None)
    if largest is None:
        return ()
    shapes = Counter(
        (operation.kernel, operation.grid, operation.block, operation.shared_bytes)
        for operation in largest.plan.operations
        if isinstance(operation, Launch)
    )
    return tuple(
        KernelLaunch(kernel=kernel, grid=grid, block=block, shared_bytes=shared, times=times)
        for (kernel, grid, block, shared), times in shapes.items()
    )


def with_kernels(
    results: Sequence[CaseResult], plans: Sequence[Plan | Rejected]
) -> tuple[CaseResult, ...]:
    """The results with the number of kernels that one call launches at their size."""
    counts = {plan.size: kernels_launched(plan) for plan in plans if isinstance(plan, Plan)}
    return tuple(
        msgspec.structs.replace(case, kernels=counts.get(Size(dims=case.size))) for case in results
    )


def slurm_job() -> SlurmInfo | None:
    """The Slurm job that this process runs in, or None. Raises MachineError for invalid values."""
    job = _variable("SLURM_JOB_ID")
    if job is None:
        return None
    restarts = _variable("SLURM_RESTART_COUNT") or "0"
    if not (restarts.isascii() and restarts.isdecimal()):
        raise MachineError(
            phrase("SLURM_RESTART_COUNT={restarts}: not a number; unset it", restarts=restarts)
        )
    return SlurmInfo(
        job=job,
        node=_variable("SLURMD_NODENAME") or one_line(platform.node()),
        partition=_variable("SLURM_JOB_PARTITION") or "",
        task=_variable("SLURM_ARRAY_TASK_ID"),
        restarts=int(restarts[:9]),
    )


def _variable(name: str) -> str | None:
    """A variable of the environment as UTF-8, which is all that a document can hold."""
    value = os.environ.get(name)
    return None if value is None else one_line(value)
