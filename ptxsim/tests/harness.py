"""Small kernels: CUDA source → nvcc's PTX → one launch.

``PTXSIM_ENGINE`` names a compiled engine to use instead of the one that a first call compiles.
"""

import ast
import hashlib
import os
import struct
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ptxsim import nvcc
from ptxsim.engine import Engine, load_engine
from ptxsim.findings import sentences
from ptxsim.findings.finding import Finding
from ptxsim.launching import Argument, Extents, Module, default_engine
from ptxsim.native import user_cache
from ptxsim.outcome import SimLimits, SimOutcome
from ptxsim.plan.records import Allocation, Dim3, Launch, Operation, Plan, Size
from ptxsim.report import Report
from ptxsim.simulator import Simulator

FIRST_ADDRESS = 0x7F00_0000_0000
SPACING = 1 << 32


@cache
def cuda_tool(name: str) -> Path:
    """nvcc, ptxas or nvdisasm."""
    found = nvcc.cuda_program(name)
    assert found, f"no {name}: pip install 'ptxsim[test]'"
    return found


@cache
def compiled(
    source: str, arch: str = "sm_80", name: str = "sgemm", flags: str = ""
) -> tuple[str, Path]:
    """PTX of ``source`` with line info, and the folder its paths are relative to.

    nvcc makes it once for all tests, workers and runs.
    """
    key = hashlib.sha256(f"{cuda_tool('nvcc')} {arch} {flags} {name} {source}".encode()).hexdigest()
    folder = user_cache("ptxsim") / "test-kernels" / key[:16]
    folder.mkdir(parents=True, exist_ok=True)
    file, target = folder / f"{name}.cu", folder / f"{name}.ptx"
    if not target.exists():
        ours = file.with_suffix(f".{os.getpid()}.cu")
        ours.write_text(source)
        ours.replace(file)
        made = target.with_suffix(f".{os.getpid()}")
        made.write_text(nvcc.compiled(file, arch, "-std=c++17", *flags.split()))
        made.replace(target)
    return target.read_text(), folder


def engine() -> Engine:
    named = os.environ.get("PTXSIM_ENGINE")
    return load_engine(Path(named)) if named else default_engine()


def kernels(name: str, /, **holes: object) -> str:
    """Read kernels/``name`` and put ``holes`` in the place of ``$HOLES``."""
    text = (Path(__file__).parent / "kernels" / name).read_text()
    for hole, filling in holes.items():
        text = text.replace(f"${hole.upper()}", str(filling))
    return text


def table(name: str) -> list[list[str]]:
    """Read tables/``name``: a row a line, ¦ between its columns; # begins a comment."""
    lines = (Path(__file__).parent / "tables" / name).read_text().splitlines()
    return [
        [cell.strip() for cell in line.split("¦")] for line in lines if line[:1] not in ("", "#")
    ]


def values(name: str) -> list[list[Any]]:
    """As ``table``, but a cell that Python reads as a literal stands for its value."""
    return [list(map(_value, row)) for row in table(name)]


def _value(cell: str) -> Any:
    try:
        return ast.literal_eval(cell)
    except (SyntaxError, ValueError):
        return cell


def sentence(seen: Finding) -> str:
    return str(sentences.sentence(seen))


def allocated(*sizes: int) -> tuple[Allocation, ...]:
    """Allocations A, B, C, … of these sizes in bytes."""
    return tuple(
        Allocation(name="ABCDEF"[i], address=FIRST_ADDRESS + i * SPACING, size=size)
        for i, size in enumerate(sizes)
    )


def launched(kernel: str, *given: Allocation, **fields: Any) -> Launch:
    """A launch of one warp with pointers to these allocations, unless ``fields`` say otherwise."""
    params = b"".join(each.address.to_bytes(8, "little") for each in given)
    shape = {"grid": (1, 1, 1), "block": (32, 1, 1), "shared_bytes": 0}
    return Launch(**{**shape, "kernel": kernel, "params": params, "pointers": (), **fields})


def planned(
    allocations: tuple[Allocation, ...], *operations: Operation, inputs: int = 2, outputs: int = 1
) -> Plan:
    size = Size.of(m=1, n=1, k=1)
    return Plan(
        size=size, allocations=allocations, operations=operations, inputs=inputs, outputs=outputs
    )


def launch(
    ptx: Path,
    kernel: str,
    grid: Extents,
    block: Extents,
    arguments: Sequence[Argument],
    shared: int = 0,
    **options: Any,
) -> Report:
    """Launch a kernel of the file ``ptx`` on ``engine()``."""
    module = Module(ptx, engine=engine())
    return module.kernel(kernel)[grid, block, shared](*arguments, **options)


def run(
    source: str,
    arrays: Sequence[np.ndarray],
    scalars: Sequence[int] = (),
    grid: Dim3 = (1, 1, 1),
    block: Dim3 = (32, 1, 1),
    shared: int = 0,
    arch: str = "sm_80",
    **launch: Any,
) -> SimOutcome:
    """As ``run_ptx``, for CUDA source."""
    ptx, folder = compiled(source, arch)
    return run_ptx(ptx, arrays, scalars, grid, block, shared, folder=folder, **launch)


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
    turn: int = 0,
    seed: int = 0,
) -> SimOutcome:
    """Launch ``kernel``, or the first one of ``ptx``.

    Its parameters are pointers to ``arrays``, then ``scalars`` as ints. The first two arrays count
    as initialised, as A and B do.
    """
    simulator = Simulator(ptx, folder, engine())
    allocations = allocated(*(array.nbytes for array in arrays))
    kernels = (line.split("(")[0].split()[-1] for line in ptx.splitlines() if ".entry" in line)
    shape = {"grid": grid, "block": block, "shared_bytes": shared, "stack_bytes": stack}
    launch = launched(kernel or next(kernels), *allocations, cooperative=cooperative, **shape)
    params = launch.params + struct.pack(f"<{len(scalars)}i", *scalars)
    inputs = min(2, len(arrays))
    outputs = min(1, len(arrays) - inputs)
    launch = msgspec.structs.replace(launch, params=params)
    plan = planned(allocations, launch, inputs=inputs, outputs=outputs)
    buffers = {i: array.reshape(-1).view(np.uint8) for i, array in enumerate(arrays)}
    limits = SimLimits(seconds=seconds, resident=resident)
    return simulator.run(plan, buffers, limits, turn=turn, seed=seed)
