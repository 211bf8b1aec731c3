"""FP16 and BF16 in docs/verification.md: `python -m benchmarks.verification_16_bits`.

For every K, errors of 48×48 products on the grader's own inputs, in units of what the criterion
admits. All results are rounded to the format once, as a program stores them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from benchmarks.measure import machine, table
from benchmarks.verification import fma, numbered_keys, rounded, split
from grader.problems.gemm.gemm import Gemm, Options
from grader.problems.gemm.products import Doubles, product
from grader.problems.inputs import Floats, make_inputs
from ptxsim.plan import Record, Size

EXTENT = 48
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
FORMATS = ({"type": "f16"}, {"type": "bf16"})
SUMS_IN_FP16 = {"type": "f16", "accumulate": "f16"}
_BITS = {"f16": 10, "bf16": 7}  # of the mantissa beside the leading one


class Case(Record):
    """One K: the inputs, what is right, and how far off others are."""

    problem: Gemm
    k: int
    a: Doubles
    b: Doubles

    def units(self, result: Doubles | Floats, margin: float = 1.0) -> Doubles:
        """Errors of a result that is rounded to the format, in units of what is admitted. On a
        GPU the margin is 2."""
        found = product(self.a, self.b)
        most, onto, fixed = self.problem.criterion(self.k, margin)
        scale = (fixed or found.scale) + onto * np.abs(found.want)
        return np.abs(self.stored(result) - found.want) / (most * scale)

    def stored(self, result: Doubles | Floats) -> Doubles:
        return rounded(np.asarray(result, np.float64), _BITS[self.problem.kind])


def case(options: dict[str, str], k: int) -> Case:
    problem = Gemm(msgspec.convert(options, Options))
    operands = problem.operands(Size.of(m=EXTENT, n=EXTENT, k=k))
    flat = make_inputs(operands, numbered_keys(k))
    a, b = (each.wide(values) for each, values in zip(operands, flat, strict=False))
    return Case(problem=problem, k=k, a=a, b=b)


# --- right ------------------------------------------------------------------------------------


def cut(values: Doubles) -> Doubles:
    """To FP32, toward zero."""
    near = values.astype(np.float32)
    toward = np.nextafter(near, np.float32(0))
    return np.where(np.abs(near) > np.abs(values), toward, near).astype(np.float64)


def tensor_cores(step: int) -> Callable[[Doubles, Doubles], Doubles]:
    """Sums in FP32 as tensor cores add: exact for ``step`` products, then cut."""

    def multiply(a: Doubles, b: Doubles) -> Doubles:
        total = np.zeros((a.shape[0], b.shape[1]))
        for p in range(0, a.shape[1], step):
            total = cut(total + a[:, p : p + step] @ b[p : p + step])
        return total

    return multiply


def fp32_fma(a: Doubles, b: Doubles) -> Floats:
    return fma(a.astype(np.float32), b.astype(np.float32))


def fp32_split(a: Doubles, b: Doubles) -> Floats:
    return split(a.astype(np.float32), b.astype(np.float32))


RIGHT = (fp32_fma, fp32_split, *(tensor_cores(step) for step in (4, 8, 16)))


# --- wrong ------------------------------------------------------------------------------------


def halves(values: Doubles) -> Doubles:
    return values.astype(np.float16).astype(np.float64)


def sums_in_fp16(a: Doubles, b: Doubles) -> Doubles:
    """The kindest there is: a rounding for every sixteen products."""
    total = np.zeros((a.shape[0], b.shape[1]))
    for p in range(0, a.shape[1], 16):
        total = halves(total + a[:, p : p + 16] @ b[p : p + 16])
    return total


def promoted(a: Doubles, b: Doubles) -> Doubles:
    """Sums in FP16 of 64 products each, added up in FP32."""
    parts = range(0, a.shape[1], 64)
    return np.sum([sums_in_fp16(a[:, p : p + 64], b[p : p + 64]) for p in parts], axis=0)


def fp8(a: Doubles, b: Doubles) -> Doubles:
    """Inputs in E4M3, exact sums."""
    return rounded(a, 3) @ rounded(b, 3)


def int8(a: Doubles, b: Doubles) -> Doubles:
    """Inputs as whole numbers of 1.5/127, exact sums."""
    step = max(np.abs(a).max(), np.abs(b).max()) / 127
    return np.round(a / step) * step @ (np.round(b / step) * step)


def one_term_less(a: Doubles, b: Doubles) -> Doubles:
    return a[:, :-1] @ b[:-1]


def swapped_rows(a: Doubles, b: Doubles) -> Doubles:
    """Registers of the rows g and g + 8 of mma.m16n8k16 exchanged."""
    return (a @ b)[np.arange(a.shape[0]) ^ 8]


def swapped_halves(a: Doubles, b: Doubles) -> Doubles:
    """Registers of the lower and the upper eight along K exchanged, of A only."""
    other = np.arange(a.shape[1]) ^ 8
    return a[:, np.where(other < a.shape[1], other, 0)] @ b


WRONG = {
    "sums in FP16": sums_in_fp16,
    "FP16 for 64 terms": promoted,
    "FP8 inputs": fp8,
    "INT8 inputs": int8,
    "one K term less": one_term_less,
    "rows swapped": swapped_rows,
    "K halves swapped": swapped_halves,
}


def errors(at: Case) -> Iterator[tuple[str, float, float]]:
    """What a program does, its largest error, and the share of elements that a GPU finds wrong."""
    yield "right", max(float(at.units(way(at.a, at.b)).max()) for way in RIGHT), 0.0
    for name, way in WRONG.items():
        found = at.units(way(at.a, at.b), 2)
        yield name, float(at.units(way(at.a, at.b)).max()), float((found > 1).mean())


def main() -> None:
    print(machine())
    for options in (*FORMATS, SUMS_IN_FP16):
        rows = []
        for k in DEPTHS:
            at = case(options, k)
            row = [str(k), f"{at.problem.criterion(k)[0]:.1e}"]
            for name, worst, share in errors(at):
                row.append(
                    f"{worst:.2f}" if name == "right" else f"{worst:.0f} ({100 * share:.0f} %)"
                )
            rows.append(row)
        print(f"\n{at.problem.title}\n")
        print(table(["K", "tolerance", "right, worst of 5 orders", *WRONG], rows))


if __name__ == "__main__":
    main()
