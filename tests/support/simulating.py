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

FAKE = """\
import os, sys, threading, time
from pathlib import Path
import numpy as np
from grader.run.simulator import simulation_worker as worker
from grader.base.errors import ToolchainError
from grader.base import Verdict
from ptxsim.outcome import Reason, RefusedProgram
from ptxsim.frontend.interface import Interface
from ptxsim.outcome import SimOutcome

class Fake:
    declared = Interface(entries={{}}, symbols={{}})

    def __init__(self, ptx, root, engine):
        self.ptx, self.root = ptx, root

    def calls(self, plan, buffers, limits, *, turn):
        size = plan.size
        a, b, c = (buffers[i].view(np.float32) for i in range(3))
        while True:
            print("noise that must not reach the answers", flush=True)
            stopped, printed = None, "hello"
            {body}
            yield SimOutcome((), (), stopped, 0.25, printed)
            turn += 1

def right(size, a, b, c):
    c[:] = (a.reshape(size["m"], size["k"]) @ b.reshape(size["n"], size["k"]).T).T.reshape(-1)

def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

worker.main({arguments})
"""


def misbehaving(body: str = "pass", arguments: str = "Fake, lambda: None") -> Sequence[str]:
    return (sys.executable, "-c", FAKE.format(body=body, arguments=arguments))


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
