"""Errors of the rungs of an FP32 lab against FP64, beside cublasSgemm's, on a Hopper GPU.

    python -m benchmarks.research.beside_cublas --lab sgemm-tensor --build
    python -m benchmarks.research.product_errors --lab sgemm-tensor

For three kinds of inputs: normal numbers; numbers that range over a factor of 2^24 within each row;
sums whose second half takes most of the first away. An error is in units of the lab's tolerance,
the rms error beside cublasSgemm's, over 128 columns of C.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from benchmarks.research.beside_cublas import Card, Program, caller, programs
from grader.labs.lab import find_lab, load_lab
from ptxsim.plan import Size

_SIZES = (1024, 4096, 8192, 16384)
_COLUMNS = 128  # of C, computed in FP64


def widen(a: Any, b: Any) -> None:
    """Spread the numbers of each row of A and column of B over a factor of 2^24."""
    import cupy

    for each in (a, b):
        each *= cupy.exp2(cupy.random.uniform(-12, 12, each.shape, cupy.float32))


def cancel(a: Any, b: Any) -> None:
    """Let the second half of each sum take most of the first away."""
    half = a.shape[1] // 2
    a[:, half : 2 * half] = a[:, :half]
    b[:, half : 2 * half] = -b[:, :half] * (1 + b[:, half : 2 * half] * 2**-12)


KINDS: dict[str, Callable[[Any, Any], None]] = {
    "normal": lambda a, b: None,
    "wide range": widen,
    "cancelling": cancel,
}


def measure(chosen: list[Program], n: int) -> None:
    """Print every program's errors at n³."""
    import cupy

    size, card = Size.of(m=n, n=n, k=n), Card("f32")
    tolerance = load_lab(find_lab("sgemm")).problem.tolerance(size)
    for kind, change in KINDS.items():
        matrices = card.matrices(size)
        a, b = (each.reshape(n, n) for each in matrices[:2])
        change(a, b)
        some = cupy.random.randint(0, n, _COLUMNS)
        rows, columns = a.astype(cupy.float64), b[some].astype(cupy.float64)
        want = columns @ rows.T
        lengths = (cupy.linalg.norm(each, axis=1) for each in (columns, rows))
        scale = cupy.outer(*lengths) / math.sqrt(n)
        del rows
        calls = {"cublasSgemm": card.baselines(size, matrices)["cublasSgemm"]}
        calls |= {each.name: caller(each, matrices, size) for each in chosen}
        rms: dict[str, float] = {}
        for name, call in calls.items():
            matrices[2].fill(math.nan)
            call()
            off = cupy.abs(matrices[2].reshape(n, n)[some] - want) / scale
            rms[name] = float(cupy.sqrt((off * off).mean()))
            print(
                f"{n:>6}³ {kind:<10} {name:<17} largest {float(off.max()) / tolerance:6.3f} of the "
                f"tolerance, rms {rms[name]:.2e}, {rms[name] / rms['cublasSgemm']:5.2f} of "
                "cublasSgemm's",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lab", default="sgemm-tensor", help="whose rungs")
    parser.add_argument("--sizes", default=",".join(map(str, _SIZES)), help="N of N³, with commas")
    options = parser.parse_args()
    built = [each for each in programs(options.lab) if each.library.exists()]
    for n in map(int, options.sizes.split(",")):
        measure(built, n)


if __name__ == "__main__":
    main()
