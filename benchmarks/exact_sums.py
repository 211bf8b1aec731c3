"""The table for sums in docs/verification.md: `python -m benchmarks.exact_sums`.

For every n, errors of sums in units of the tolerance, on inputs as the grader makes them. The lower
precisions add up a tree of pairs, whose partial sums are the smallest, and round each of them to
nearest as if no sum could overflow: kinder than any hardware. Takes a few minutes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import machine, table
from grader.problems.inputs import KEY_BYTES, Floats, values
from grader.problems.reduction.reduction import UNIT, steps, tolerance

COUNTS = (1, 2, 3, 10, 100, 1000, 10**4, 2**16, 2**20, 2**24, 2**28)
SUMS = 20  # of each n, fewer of long ones
CHUNK = 1 << 22
STRIDES = 1024  # accumulators of a grid-stride loop


def chunks(n: int, seed: int) -> Iterator[Floats]:
    """n elements in parts, each with a key that anybody can know."""
    for number, first in enumerate(range(0, n, CHUNK)):
        key = (seed << 64 | number).to_bytes(KEY_BYTES, "little")
        yield values(key, min(CHUNK, n - first), steps(n))


def rounded(sums: NDArray[np.float64], bits: int) -> NDArray[np.float64]:
    """To ``bits`` significant bits, to nearest."""
    mantissa, exponent = np.frexp(sums)
    return np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits)


def tree(part: NDArray[np.float64], bits: int) -> float:
    """Elements and all sums of pairs rounded."""
    part = rounded(part, bits)
    while len(part) > 1:
        odd = part[len(part) // 2 * 2 :]
        part = np.concatenate(
            [rounded(part[: len(part) - len(odd)].reshape(-1, 2).sum(1), bits), odd]
        )
    return float(part[0])


def one_by_one(total: np.float32, part: Floats) -> np.float32:
    return np.add.accumulate(np.concatenate([[total], part]), dtype=np.float32)[-1]


def errors(n: int, seed: int) -> dict[str, float]:
    """|sum - exact| over the tolerance."""
    exact = 0.0
    forwards, backwards = np.float32(0), np.float32(0)
    strided = np.zeros(STRIDES, np.float32)
    lower: dict[int, list[float]] = {11: [], 8: []}
    last = 0.0
    for part in chunks(n, seed):
        exact += float(part.sum(dtype=np.float64))
        forwards = one_by_one(forwards, part)
        backwards = one_by_one(backwards, part[::-1])
        padded = np.pad(part, (0, -len(part) % STRIDES)).reshape(-1, STRIDES)
        strided = np.add.accumulate(np.vstack([strided, padded]), dtype=np.float32)[-1]
        for bits, sums in lower.items():
            sums.append(tree(part.astype(np.float64), bits))
        last = float(part[-1])
    unit = UNIT * tolerance(n)
    halves = strided
    while len(halves) > 1:
        halves = halves[::2] + halves[1::2]
    fp32 = (float(forwards), float(backwards), float(halves[0]))
    return {
        "fp32": max(abs(total - exact) for total in fp32) / unit,
        "11": abs(tree(np.array(lower[11]), 11) - exact) / unit,
        "8": abs(tree(np.array(lower[8]), 8) - exact) / unit,
        "missing": abs(last) / unit,
    }


def main() -> None:
    rows = []
    for n in COUNTS:
        found = [errors(n, seed) for seed in range(max(1, min(SUMS, 2**26 // n)))]
        largest = {name: max(each[name] for each in found) for name in found[0]}
        shares = {
            name: 100 * sum(not each[name] <= 1 for each in found) / len(found)
            for name in ("11", "8")
        }
        rows.append(
            [
                str(n) if n < 2**16 else f"2^{round(math.log2(n))}",
                f"{steps(n).bits + 1}",
                f"{tolerance(n):.1e}",
                f"{largest['fp32']:.0f}",
                *(f"{largest[name]:.0f} ({shares[name]:.0f} %)" for name in ("11", "8")),
                f"{min(each['missing'] for each in found):.0f}",
            ]
        )
    print(machine())
    print()
    heads = ["n", "bits of an element", "tolerance", "FP32, worst of 3 orders"]
    heads += ["FP16 (scaled), TF32", "BF16", "one element less, least"]
    print(table(heads, rows))


if __name__ == "__main__":
    main()
