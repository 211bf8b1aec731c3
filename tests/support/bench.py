"""The bench that tests grade on without a GPU, its sandboxes, and a simulator that misbehaves."""

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec
import pytest

from grader.base.result import Build
from grader.build.building import compile_submission
from grader.build.toolchain import Toolchain, find_toolchain
from grader.judge.program import GradingContext
from grader.labs.lab import Lab, load_lab
from grader.labs.shape import Limits
from grader.labs.submission import load_submission
from grader.run.protocol import CaseOutcome, PlannedCase, Progress, quietly
from grader.run.simulator.device import CpuDevice, engine_library
from grader.sandbox import bubblewrap, landlock
from grader.sandbox.running import Mode, Sandbox
from ptxsim import Declarations, Engine, load_engine
from ptxsim.plan import Allocation, Plan, Size
from tests.support.files import beside
from tests.support.product import GEMM, MAIN


def read_declarations(build: Build, source_root: str, sandbox: Sandbox) -> Declarations:
    """Read the PTX's kernels and variables in a worker of its own."""
    with CpuDevice(sandbox, Limits()) as device:
        return device.read(build, source_root, quietly)


def engine() -> Engine:
    return load_engine(engine_library().compiled())


@cache
def bench() -> GradingContext:
    plain = GradingContext(lab=load_lab(), toolchain=find_toolchain(), sandbox=Sandbox.open("auto"))
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
        limits=Limits(compile_s=compile_s),
    )


needs_bubblewrap = pytest.mark.skipif(
    bubblewrap.working() is None, reason="nothing is tried in bubblewrap: it does not work here"
)
needs_landlock = pytest.mark.skipif(
    landlock.working() is None, reason="nothing is tried under Landlock: it does not work here"
)
needs_cutlass = pytest.mark.skipif(
    find_toolchain().cutlass_include is None,
    reason="needs the CUTLASS headers: pip install nvidia-cutlass",
)
# Modes of Sandbox.open. The first two show a program nothing but what is named.
CLOSED = (
    pytest.param("bubblewrap", marks=needs_bubblewrap),
    pytest.param("landlock", marks=needs_landlock),
)
MODES = (*CLOSED, "off")


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
    case = CaseOutcome(id=f"cpu-{index}", size=size.dims, amount=GEMM.amount(size))
    return PlannedCase(case=case, plan=plan)


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
