"""Small kernels as the grader compiles them, simulated."""

from __future__ import annotations

import hashlib
import struct
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from grader.base.native import cache_folder, locked
from grader.build.toolchain import find_toolchain
from ptxsim.outcome import SimLimits, SimOutcome
from ptxsim.records import Allocation, Dim3, Launch, Plan, Size
from ptxsim.simulator import Simulator
from tests.support.bench import engine


@cache
def compiled(source: str, arch: str = "sm_80", name: str = "sgemm") -> tuple[str, Path]:
    """PTX of ``source`` with line info, and the folder its paths are relative to.

    nvcc makes it once for all tests, workers and runs.
    """
    key = hashlib.sha256(f"{find_toolchain().cuda_version} {arch} {name} {source}".encode())
    folder = cache_folder() / "test-kernels" / key.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    file, target = folder / f"{name}.cu", folder / f"{name}.ptx"
    with locked(folder / "lock"):
        if not target.exists():
            file.write_text(source)
            made = target.with_suffix(".new")
            command = [str(find_toolchain().nvcc), f"-arch={arch}", "-std=c++17", "-lineinfo"]
            command += ["-ptx", "-o", str(made), str(file)]
            subprocess.run(command, check=True, capture_output=True)
            made.replace(target)
    return target.read_text(), folder


def run(
    source: str,
    arrays: Sequence[np.ndarray],
    words: Sequence[int],
    grid: Dim3,
    block: Dim3,
    kernel: str,
) -> SimOutcome:
    """Launch a kernel of ``source``; its parameters are pointers to the arrays, then the words.

    The first two arrays count as initialised.
    """
    ptx, folder = compiled(source)
    allocations = tuple(
        Allocation(name="ABCDEF"[i], address=0x7F00_0000_0000 + (i << 32), size=array.nbytes)
        for i, array in enumerate(arrays)
    )
    params = struct.pack(f"<{len(arrays)}Q", *(each.address for each in allocations))
    params += struct.pack(f"<{len(words)}i", *words)
    launch = Launch(
        kernel=kernel, grid=grid, block=block, shared_bytes=0, params=params, pointers=()
    )
    inputs = min(2, len(arrays))
    outputs = min(1, len(arrays) - inputs)
    size = Size.of(m=1, n=1, k=1)
    plan = Plan(
        size=size, allocations=allocations, operations=(launch,), inputs=inputs, outputs=outputs
    )
    buffers = {i: array.reshape(-1).view(np.uint8) for i, array in enumerate(arrays)}
    return Simulator(ptx, folder, engine()).run(plan, buffers, SimLimits(seconds=20.0))
