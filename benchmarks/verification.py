"""The table of docs/verification.md: `python -m benchmarks.verification`.

For every K, errors of 48×48 products in units of the tolerance, on the grader's own inputs. FP32 is
computed in several orders; the others round their inputs and compute exactly from there, which is
kinder than any hardware.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from benchmarks.measure import machine, table
from grader.problems.gemm.gemm import Gemm
from grader.problems.gemm.layout import tolerance
from grader.problems.gemm.products import Doubles
from grader.problems.inputs import KEY_BYTES, Floats, make_inputs
from ptxsim.plan import Size

EXTENT = 48
DEPTHS = (1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
Multiply = Callable[[Floats, Floats], Floats]


def numbered_keys(number: int) -> tuple[bytes, bytes]:
    """Keys that anybody can know: the same inputs every time."""
    return number.to_bytes(KEY_BYTES, "little"), number.to_bytes(KEY_BYTES, "big")


def rounded(values: Floats, bits: int) -> Doubles:
    """To ``bits`` bits of mantissa beside the leading one, to nearest."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    scale = 2.0 ** (bits + 1)
    return np.ldexp(np.round(mantissa * scale) / scale, exponent)


def fma(a: Floats, b: Floats, order: range | None = None) -> Floats:
    """One rounding per term, in one accumulator."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for p in order or range(a.shape[1]):
        # The product of two FP32 numbers is exact in FP64; the sum is rounded twice, once to FP64.
        exact = a[:, p : p + 1].astype(np.float64) * b[p].astype(np.float64) + total
        total = exact.astype(np.float32)
    return total


def without_fma(a: Floats, b: Floats) -> Floats:
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for p in range(a.shape[1]):
        total = total + a[:, p : p + 1] * b[p]
    return total


def backwards(a: Floats, b: Floats) -> Floats:
    return fma(a, b, range(a.shape[1] - 1, -1, -1))


def split(a: Floats, b: Floats) -> Floats:
    """Sixteen parts of K, added up as a tree."""
    cuts = np.array_split(np.arange(a.shape[1]), 16)
    parts = [fma(a[:, cut], b[cut]) for cut in cuts]
    while len(parts) > 1:
        parts = [x + y for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


FP32_ORDERS: tuple[Multiply, ...] = (fma, without_fma, backwards, split)


def errors(k: int, seed: int) -> dict[str, float]:
    """Largest error of FP32 and smallest largest error of everything else, over the tolerance."""
    flat_a, flat_b = make_inputs(
        Gemm().operands(Size.of(m=EXTENT, n=EXTENT, k=k)), numbered_keys(seed)
    )
    a, b = flat_a.reshape(EXTENT, k), flat_b.reshape(EXTENT, k).T
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    exact = wide_a @ wide_b
    norms = np.outer(np.linalg.norm(wide_a, axis=1), np.linalg.norm(wide_b, axis=0))
    unit = norms / math.sqrt(k) * tolerance(k)

    def of(product: Doubles | Floats) -> Doubles:
        return np.abs(product - exact) / unit

    last = wide_a[:, -1:] * wide_b[-1:]
    neighbour = np.roll(exact, 1, axis=0)
    found = {"FP32": max(float(of(multiply(a, b)).max()) for multiply in FP32_ORDERS)}
    for name, bits in (("TF32", 10), ("FP16", 10), ("BF16", 7)):
        product = rounded(a, bits) @ rounded(b, bits)
        found[name] = float(of(product).max())
        found[f"{name}, share wrong"] = float((of(product) > 2).mean())
    found["one K term less"] = float(np.median(of(exact - last)))
    found["one element of another row"] = float(np.median(of(neighbour)))
    return found


def main() -> None:
    rows = []
    for k in DEPTHS:
        found = errors(k, seed=k)
        rows.append(
            [
                str(k),
                f"{tolerance(k):.1e}",
                f"{found['FP32']:.2f}",
                *(
                    f"{found[name]:.0f} ({100 * found[f'{name}, share wrong']:.0f} %)"
                    for name in ("TF32", "FP16", "BF16")
                ),
                f"{found['one K term less']:.0f}",
                f"{found['one element of another row']:.0f}",
            ]
        )
    print(machine())
    print()
    print(
        table(
            [
                "K",
                "tolerance",
                "FP32, worst of 4 orders",
                "TF32",
                "FP16",
                "BF16",
                "one K term less",
                "another row's element",
            ],
            rows,
        )
    )


if __name__ == "__main__":
    main()
