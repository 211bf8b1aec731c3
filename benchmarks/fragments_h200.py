"""Random fragments through every tensor-core instruction, on a GPU and in the simulator.

``python -m benchmarks.fragments_h200`` on a machine with a GPU of compute capability 9.0 and nvcc.
For each instruction it multiplies at least 500 fragments of each kind of values, counts the results
whose bits differ from the simulator's, and prints a line; the exit status is 1 if any differ. The
instructions and the layouts of their fragments are in ``fragments/fragments.cu``. Without a GPU,
``--dry`` runs the simulator alone.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grader.toolchain.discovery import find_toolchain
from ptxsim.launching import launch

_SOURCE = Path(__file__).parent / "fragments" / "fragments.cu"
_FRAGMENTS = 512
# Kernel: 32-bit words of A, B and C (and D) of one fragment, threads, type of A, halves in C.
_KERNELS = {
    "mma_m16n8k16_f32_f16": (128, 64, 128, 32, "f16", False),
    "mma_m16n8k16_f16_f16": (128, 64, 64, 32, "f16", True),
    "mma_m16n8k16_f32_bf16": (128, 64, 128, 32, "bf16", False),
    "mma_m16n8k8_f32_f16": (64, 32, 128, 32, "f16", False),
    "mma_m16n8k8_f16_f16": (64, 32, 64, 32, "f16", True),
    "mma_m16n8k8_f32_bf16": (64, 32, 128, 32, "bf16", False),
    "mma_m8n8k4_f32_f16": (64, 64, 256, 32, "f16", False),
    "wmma_m16n16k16_f32_f16": (128, 128, 256, 32, "f16", False),
    "wmma_m16n16k16_f16_f16": (128, 128, 128, 32, "f16", True),
    "wmma_m32n8k16_f32_bf16": (256, 64, 256, 32, "bf16", False),
    "wmma_m8n32k16_f32_bf16": (64, 256, 256, 32, "bf16", False),
    "wgmma_m64n8k16_f32_f16": (512, 64, 512, 128, "f16", False),
    "wgmma_m64n8k16_f16_f16": (512, 64, 256, 128, "f16", True),
    "wgmma_m64n8k16_f32_bf16": (512, 64, 512, 128, "bf16", False),
}
_VALUES = ("normal", "wide", "cancelling", "subnormal")


def elements(rng: np.random.Generator, words: int, kind: str, values: str) -> NDArray[np.uint32]:
    """Bits of ``words`` pairs of 16-bit elements, for every fragment."""
    count = (_FRAGMENTS, 2 * words)
    numbers = rng.standard_normal(count)
    if values == "wide":
        numbers = np.ldexp(numbers, rng.integers(-6, 7, count))
    elif values == "cancelling":
        numbers[:, 1::2] = -numbers[:, ::2]
    elif values == "subnormal":
        numbers = np.ldexp(numbers, -14 if kind == "f16" else -60)
    if kind == "f16":
        return numbers.astype(np.float16).view(np.uint32)
    bits = numbers.astype(np.float32).view(np.uint32) >> 16
    return bits.astype(np.uint16).view(np.uint32)


def start(rng: np.random.Generator, words: int, values: str, *, halves: bool) -> NDArray[np.uint32]:
    """Bits of the accumulators that the instruction begins with."""
    if halves:
        return elements(rng, words, "f16", "normal" if values == "subnormal" else values)
    numbers = rng.standard_normal((_FRAGMENTS, words)).astype(np.float32)
    if values == "wide":
        numbers = np.ldexp(numbers, rng.integers(-12, 13, numbers.shape)).astype(np.float32)
    return numbers.view(np.uint32)


def on_gpu(cubin: Path, kernel: str, threads: int, arrays: list[NDArray[np.uint32]]) -> None:
    """As the simulator's ``launch``; the last array is the result."""
    import cupy  # there only with a GPU

    function = cupy.RawModule(path=str(cubin)).get_function(kernel)
    given = [cupy.asarray(array) for array in arrays]
    function((_FRAGMENTS,), (threads,), tuple(given))
    arrays[-1][:] = given[-1].get()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dry", action="store_true", help="the simulator alone")
    dry = parser.parse_args().dry
    rng = np.random.default_rng(18)
    worst = 0
    with tempfile.TemporaryDirectory() as scratch:
        ptx, cubin = Path(scratch, "fragments.ptx"), Path(scratch, "fragments.cubin")
        for target, how in ((ptx, "-ptx"), (cubin, "-cubin")):
            command = [str(find_toolchain().nvcc), "-arch=sm_90a", "-std=c++17", how]
            subprocess.run([*command, "-o", str(target), str(_SOURCE)], check=True)
        for kernel, (of_a, of_b, of_c, threads, kind, halves) in _KERNELS.items():
            for values in _VALUES:
                given = [
                    elements(rng, of_a, kind, values),
                    elements(rng, of_b, kind, values),
                    start(rng, of_c, values, halves=halves),
                ]
                simulated, real = (np.zeros((_FRAGMENTS, of_c), np.uint32) for _ in range(2))
                outcome = launch(ptx, kernel, _FRAGMENTS, threads, [*given, simulated])
                errors = [f for f in outcome.findings if f.severity.value == "error"]
                if errors or outcome.stopped:
                    print(f"{kernel}: {errors} {outcome.stopped}")
                    return 1
                if dry:
                    print(f"{kernel} {values}: {_FRAGMENTS} fragments simulated")
                    continue
                on_gpu(cubin, kernel, threads, [*given, real])
                differ = int((simulated != real).sum())
                worst = max(worst, differ)
                print(f"{kernel} {values}: {_FRAGMENTS} fragments, {differ} of {real.size} differ")
    return int(worst > 0)


if __name__ == "__main__":
    sys.exit(main())
