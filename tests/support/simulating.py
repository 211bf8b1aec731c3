"""A simulator's process that misbehaves as told, and what it is given to simulate."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from grader.base.records import Build
from grader.labs.lab import Lab, load_lab
from grader.run.protocol import CaseOutcome, PlannedCase, Progress, quietly
from grader.run.simulator.device import CpuDevice
from grader.sandbox.running import Mode, Sandbox
from ptxsim.records import Allocation, Plan, Size
from tests.support.files import beside


def misbehaving(body: str = "pass", arguments: str = "Fake, lambda: None") -> Sequence[str]:
    program = beside(__file__, "misbehaving.py.in", body=body, arguments=arguments)
    return (sys.executable, "-c", program)


def planned(index: int, m: int = 5, n: int = 7, k: int = 3) -> PlannedCase:
    floats = {"A": m * k, "B": k * n, "C": m * n}
    allocations = tuple(
        Allocation(name=name, address=0x7F00_0000_0000 + (i << 32), size=4 * count)
        for i, (name, count) in enumerate(floats.items())
    )
    size = Size.of(m=m, n=n, k=k)
    plan = Plan(size=size, allocations=allocations, operations=(), inputs=2, outputs=1)
    return PlannedCase(id=f"cpu-{index}", plan=plan)


def lab(**limits: float) -> Lab:
    default = load_lab()
    return msgspec.structs.replace(
        default, limits=msgspec.structs.replace(default.limits, **limits)
    )


def run(
    command: Sequence[str],
    build: Build,
    cases: Sequence[PlannedCase],
    progress: Progress = quietly,
    mode: Mode = "auto",
    **limits: float,
) -> tuple[CaseOutcome, ...]:
    chosen = lab(**limits)
    with CpuDevice(Sandbox.open(mode), chosen.limits, chosen.problem_ref, command) as device:
        return device.run(build, str(build.ptx.parent), cases, chosen, progress)
