"""The bench that tests grade on without a GPU."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from grader.base.records import Build
from grader.build.building import compile_submission
from grader.build.toolchain import Toolchain, find_toolchain
from grader.judge.program import GradingContext
from grader.labs.lab import load_lab
from grader.labs.shape import Limits
from grader.labs.submission import load_submission
from grader.run.protocol import quietly
from grader.run.simulator.device import CpuDevice, engine_library
from grader.sandbox.running import Mode, Sandbox
from ptxsim.engine import Engine, load_engine
from ptxsim.frontend.interface import Interface
from tests.support.product import GEMM, MAIN


def read_declarations(build: Build, source_root: str, sandbox: Sandbox) -> Interface:
    """Read the PTX's kernels and variables in a worker of its own."""
    with CpuDevice(sandbox, Limits()) as device:
        return device.read(build, source_root, quietly)


def engine() -> Engine:
    return load_engine(engine_library().compiled())


@cache
def bench() -> GradingContext:
    plain = GradingContext(
        lab=load_lab(), toolchain=find_toolchain(), sandbox=Sandbox.open("auto"), explain=False
    )
    return limited(plain, record_s=2, simulate_s=5)


def of_lab(bench: GradingContext, **changes: object) -> GradingContext:
    """The bench with other fields of its lab."""
    return msgspec.structs.replace(bench, lab=msgspec.structs.replace(bench.lab, **changes))


def limited(bench: GradingContext, **limits: float) -> GradingContext:
    return of_lab(bench, limits=msgspec.structs.replace(bench.lab.limits, **limits))


def built(
    folder: Path, tools: Toolchain | None = None, mode: Mode = "auto", compile_s: float = 60
) -> Build:
    """What sm_80's compilers make of a folder."""
    return compile_submission(
        load_submission(folder, MAIN),
        GEMM.interface,
        tools or find_toolchain(),
        Sandbox.open(mode),
        arch="sm_80",
        compile_s=compile_s,
        memory_mb=4096,
    )
