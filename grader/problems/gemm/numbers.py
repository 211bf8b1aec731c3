"""The number formats in which the product can be asked for, and what a right program may err by.

**The criterion** is the same for all: an element is right if ``|C - Cref| <= tolerance · scale``.
With ``s = ‖row i of A‖ · ‖column j of B‖ / √K``, the typical size of a sum of K products with
random signs, and ``u = 2⁻²⁴``:

FP32
    ``scale = s``, ``tolerance = u·(2 + 8·√K)``: gemm.py derives it.
FP16 and BF16, sums in FP32
    ``tolerance = u·(2 + 8·√K + K)``, and the result may be rounded once: ``r·|Cref|`` more, with
    ``r`` the format's unit roundoff, 2⁻¹¹ or 2⁻⁸. So ``scale = s + |Cref|·r / tolerance``.
    The K is what tensor cores add: after each step of 4 (Volta, Turing), 8 (Ampere) or 16 products
    (Hopper) they cut the sum off, toward zero, instead of rounding it. These errors do not cancel
    while the sum keeps its sign: each is at most ``2u`` of the sum and about ``u`` on average. The
    partial sums of one element add up to at most ``3.5·s`` for each step, at six sigma (their
    integral has a variance of one third), which makes ``0.9·K·u·s`` for steps of 4.
FP16, sums in FP16
    The sum must be exact, and so must every partial sum, in any order: the inputs are small whole
    numbers. ``scale = 1``, ``tolerance = 1/2``.

**The inputs** of the formats of 16 bits have random signs and magnitudes in [1, 1.5), with all the
bits that the format has there. Products have 20 bits (BF16: 14), so an FP32 sum begins to round
after some tens of terms, as real data's does, and its lowest bit is far above FP16's smallest
number: C loses nothing there. |C| stays below 10·1.6·√K, far from FP16's 65504. A missing term
costs at least 0.63/√K of s: ten times what rounding to FP16 explains at K = 16384.

Sums in FP16 get whole numbers of ``bits``, chosen such that ten standard deviations of the sum, or
the largest possible sum, are at most 2¹¹: FP16 has every whole number up to that.
"""

from __future__ import annotations

import math
from typing import Literal

from grader.model import Record
from grader.problems.operands import (
    BFLOAT16,
    EXPOSING,
    FLOAT,
    HALF,
    Element,
    Exposing,
    Steps,
    Values,
)

Format = Literal["f32", "f16", "bf16"]
Sum = Literal["f32", "f16"]

FP32_ROUNDOFF = 2.0**-24
_LARGEST_EXACT = 2.0**11  # FP16 holds every whole number up to this
_DEVIATIONS = 10  # of a sum: it exceeds them less than once in 10²¹ sums
_WHOLE = ((5, 16), (4, 8), (3, 4), (2, 2), (1, 1))  # bits of a magnitude, and the least of them


class Numbers(Record):
    """One format of the matrices."""

    words: str  # in a title: "FP16"
    precision: str  # in a header: "half precision (FP16)"
    element: Element
    main: str  # the file to hand in
    others: tuple[Element, ...] = ()  # types of the same bits that a program may use instead
    include: str = ""  # the header that declares the type
    values: Values = EXPOSING  # of the inputs, when sums are FP32
    roundoff: float | None = None  # of the one rounding of an FP32 sum; None: it is not rounded


FORMATS: dict[Format, Numbers] = {
    "f32": Numbers(words="FP32", precision="single precision", element=FLOAT, main="sgemm.cu"),
    "f16": Numbers(
        words="FP16",
        precision="half precision (FP16)",
        element=HALF,
        others=(
            Element(name="cute::half_t", dtype="float16", bytes=2, mangled="N7cutlass6half_tE"),
        ),
        main="hgemm.cu",
        include="cuda_fp16.h",
        values=Steps(bits=9, least=1 << 10, exponent=-10),
        roundoff=2.0**-11,
    ),
    "bf16": Numbers(
        words="BF16",
        precision="bfloat16 (BF16)",
        element=BFLOAT16,
        others=(
            Element(
                name="cute::bfloat16_t",
                dtype="uint16",
                bytes=2,
                mangled="N7cutlass10bfloat16_tE",
                upper=True,
            ),
        ),
        main="hgemm.cu",
        include="cuda_bf16.h",
        values=Steps(bits=6, least=1 << 7, exponent=-7),
        roundoff=2.0**-8,
    ),
}


def input_values(numbers: Numbers, sums: Sum, k: int) -> Values:
    return _whole(k) if sums == "f16" else numbers.values


def _whole(k: int) -> Steps:
    """Whole numbers with as many bits as a sum of ``k`` products leaves room for."""
    for bits, least in _WHOLE:
        most = 2 * least - 1
        square = sum(each * each for each in range(least, most + 1)) / least
        if min(_DEVIATIONS * math.sqrt(k) * square, k * most * most) <= _LARGEST_EXACT:
            return Steps(bits=bits - 1, least=least)
    return Steps(bits=0, least=1)


def tolerance(k: int, numbers: Numbers = FORMATS["f32"], sums: Sum = "f32") -> float:
    """In units of the scale."""
    if sums == "f16":
        return 0.5
    cut = 0 if isinstance(numbers.values, Exposing) else k
    return FP32_ROUNDOFF * (2 + 8 * math.sqrt(k) + cut)
