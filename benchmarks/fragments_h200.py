"""Random fragments through tensor cores and bulk copies, on a GPU and in the simulator.

``python -m benchmarks.fragments_h200`` on a machine with a GPU of compute capability 9.0 and nvcc.
It tries at least 512 fragments of each kind, counts the bytes of results that differ from the
simulator's, and prints a line; the exit status is 1 if any differ. The kinds and their kernels are
in ``fragments/``. ``--only TEXT`` takes the kinds with that text in their names; ``--keep FOLDER``
writes the GPU's results of kinds that differ there. Without a GPU, ``--dry`` runs the simulator
alone.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fragments import copies, matrices, on_gpu, products
from benchmarks.fragments.kind import Arguments, Kind, results
from grader.build.toolchain import find_toolchain
from ptxsim import Module, SimLimits, default_engine

_SOURCES = Path(__file__).parent / "fragments"
_KINDS = {kind.name: kind for kind in (*products.KINDS, *matrices.KINDS, *copies.KINDS)}
_LIMITS = SimLimits(seconds=300.0, steps=1 << 40)


def compiled(folder: Path, source: str) -> None:
    """Its PTX and its machine code, in the folder."""
    for how in ("ptx", "cubin"):
        target = (folder / source).with_suffix(f".{how}")
        command = [str(find_toolchain().nvcc), "-arch=sm_90a", "-std=c++17", f"-{how}"]
        includes = [f"-I{folder}", str(_SOURCES / source)]
        subprocess.run([*command, "-o", str(target), *includes], check=True)


def simulated(folder: Path, name: str) -> NDArray[Any] | str:
    """The results, or what went wrong."""
    kind = _KINDS[name]
    arguments = kind.arguments()
    ptx = (folder / kind.source).with_suffix(".ptx")
    kernel = Module(ptx).kernel(kind.kernel)
    outcome = kernel[kind.blocks, kind.threads](*arguments, limits=_LIMITS)
    wrong = [finding for finding in outcome.findings if finding.severity.value == "error"]
    if wrong or outcome.stopped:
        return f"the simulator: {wrong[:2]} {outcome.stopped}"
    return results(arguments)


def compared(kind: Kind, arguments: Arguments, real: NDArray[Any], ours: NDArray[Any]) -> str:
    """A line on what differs, with the first of the fragments that do; "" if none does."""
    per_block = (real != ours).reshape(kind.blocks, -1)
    blocks = np.flatnonzero(per_block.any(1))
    if not blocks.size:
        return ""
    first = int(blocks[0])
    lines = [f"{int(per_block.sum())} of {per_block.size} differ, of {blocks.size} blocks"]
    for argument in arguments[:-1]:
        if isinstance(argument, list):
            request = argument[first * len(argument) // kind.blocks]
            lines.append(f"  block {first}: {on_gpu.described(request)}")
        elif isinstance(argument, np.ndarray) and argument[0].size <= 32:
            lines.append(f"  block {first}: {argument[first * len(argument) // kind.blocks]}")
    return "\n".join(lines)


class Gpu:
    """The GPU in a process of its own, and in another one after an error, which stays with it."""

    def __init__(self) -> None:
        self._process = _processes(1)

    def run(self, cubin: Path, kind: Kind) -> NDArray[Any] | str:
        """The results, or what went wrong."""
        try:
            return self._process.submit(on_gpu.run, cubin, kind).result()
        except Exception as error:  # CuPy's, the driver's, the end of the process
            self._process.shutdown()
            self._process = _processes(1)
            return f"the GPU: {error}"


def _processes(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"))


def verdict(kind: Kind, ours: NDArray[Any] | str, real: NDArray[Any] | str) -> str:
    """What is wrong, or ""."""
    if isinstance(ours, str) or isinstance(real, str):
        return " ".join(each for each in (ours, real) if isinstance(each, str))
    return compared(kind, kind.arguments(), real, ours)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dry", action="store_true", help="the simulator alone")
    parser.add_argument("--only", default="", metavar="TEXT", help="kinds with it in their names")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="for the results that differ")
    options = parser.parse_args()
    kinds = [kind for name, kind in _KINDS.items() if options.only in name]
    default_engine()  # compiled once, not by each process
    bad = 0
    with (
        tempfile.TemporaryDirectory() as scratch,
        _processes(len(os.sched_getaffinity(0))) as pool,
    ):
        folder, gpu = Path(scratch), Gpu()
        (folder / "forms.hpp").write_text(products.forms_header())
        list(pool.map(partial(compiled, folder), {kind.source for kind in kinds}))
        outcomes = pool.map(partial(simulated, folder), [kind.name for kind in kinds])
        for kind, ours in zip(kinds, outcomes, strict=True):
            cubin = (folder / kind.source).with_suffix(".cubin")
            real = ours if options.dry else gpu.run(cubin, kind)
            wrong = verdict(kind, ours, real)
            bad += wrong != ""
            done = "simulated" if options.dry else "none differs"
            print(f"{kind.name}: {wrong or done}", flush=True)
            if wrong and options.keep and not isinstance(real, str):
                options.keep.mkdir(exist_ok=True)
                np.savez_compressed(options.keep / f"{kind.name.replace(' ', '_')}.npz", real)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
