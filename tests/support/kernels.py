"""Small kernels for the simulator's tests: CUDA source → nvcc's PTX → one launch."""

from __future__ import annotations

import hashlib
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from grader.backends.simulator.engine_library import engine_library
from grader.model import Allocation, Dim3, Launch, Plan, Size
from grader.toolchain.discovery import find_toolchain
from ptxsim.engine import Engine, load_engine
from ptxsim.outcome import SimLimits, SimOutcome
from ptxsim.simulator import Simulator

FIRST_ADDRESS = 0x7F00_0000_0000
SPACING = 1 << 32


@cache
def compiled(source: str, arch: str = "sm_80") -> tuple[str, Path]:
    """PTX of ``source`` with line info, and the folder its paths are relative to."""
    folder = (
        Path(tempfile.gettempdir())
        / f"sgemm-grader-kernels-{hashlib.sha256(source.encode()).hexdigest()[:12]}"
    )
    folder.mkdir(exist_ok=True)
    file = folder / "sgemm.cu"
    file.write_text(source)
    target = folder / f"{arch}.ptx"
    command = [str(find_toolchain().nvcc), f"-arch={arch}", "-std=c++17", "-lineinfo", "-ptx"]
    subprocess.run([*command, "-o", str(target), str(file)], check=True, capture_output=True)
    return target.read_text(), folder


def engine() -> Engine:
    return load_engine(engine_library().compiled())


def run(
    source: str,
    arrays: Sequence[np.ndarray],
    scalars: Sequence[int] = (),
    grid: Dim3 = (1, 1, 1),
    block: Dim3 = (32, 1, 1),
    shared: int = 0,
    arch: str = "sm_80",
    seconds: float = 20.0,
    kernel: str | None = None,
    resident: tuple[int, ...] = (),
    stack: int = 1024,
    cooperative: bool = False,
) -> SimOutcome:
    """Launch ``kernel``, or the first one of ``source``.

    Its parameters are pointers to ``arrays``, then ``scalars`` as ints. The first two arrays count
    as initialised, as A and B do.
    """
    ptx, folder = compiled(source, arch)
    return run_ptx(
        ptx,
        arrays,
        scalars,
        grid,
        block,
        shared,
        seconds,
        folder,
        kernel,
        resident,
        stack,
        cooperative,
    )


def run_ptx(
    ptx: str,
    arrays: Sequence[np.ndarray],
    scalars: Sequence[int] = (),
    grid: Dim3 = (1, 1, 1),
    block: Dim3 = (32, 1, 1),
    shared: int = 0,
    seconds: float = 20.0,
    folder: Path = Path("/nowhere"),
    kernel: str | None = None,
    resident: tuple[int, ...] = (),
    stack: int = 1024,
    cooperative: bool = False,
) -> SimOutcome:
    """As ``run``, for PTX text."""
    simulator = Simulator(ptx, folder, engine())
    names = ["A", "B", "C", *(f"workspace {i}" for i in range(1, len(arrays)))]
    allocations = tuple(
        Allocation(name=name, address=FIRST_ADDRESS + i * SPACING, size=array.nbytes)
        for i, (name, array) in enumerate(zip(names, arrays, strict=False))
    )
    kernels = (line.split("(")[0].split()[-1] for line in ptx.splitlines() if ".entry" in line)
    params = struct.pack(f"<{len(arrays)}Q", *(a.address for a in allocations))
    params += struct.pack(f"<{len(scalars)}i", *scalars)
    launch = Launch(
        kernel=kernel or next(kernels),
        grid=grid,
        block=block,
        shared_bytes=shared,
        params=params,
        pointers=(),
        stack_bytes=stack,
        cooperative=cooperative,
    )
    inputs = min(2, len(arrays))
    plan = Plan(
        size=Size.of(m=1, n=1, k=1),
        allocations=allocations,
        operations=(launch,),
        inputs=inputs,
        outputs=min(1, len(arrays) - inputs),
    )
    buffers = {i: array.reshape(-1).view(np.uint8) for i, array in enumerate(arrays)}
    return simulator.run(plan, buffers, SimLimits(seconds=seconds, resident=resident))
