"""y = alpha·x + y in FP32, in place.

One rounding (an FMA) or two (a product, then a sum) are right: with u = 2⁻²⁴ the product is off by
u·|alpha·x| at most, and the sum by u times itself, at most u·(|want| + u·|alpha·x|). So an element
is right if ``|got - want| / (|alpha·x| + |want|) <= u·(1 + u)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.problems.expected import Expected, Recomputed
from grader.problems.operands import FLOAT, Operand, Scalar
from grader.problems.problem import GB_S, Dim, Interface, Problem
from ptxsim.plan import Size
from ptxsim.text import phrase

if TYPE_CHECKING:
    from grader.problems.inputs import Places, Source

_ROUNDOFF = 2.0**-24


class Saxpy(Problem):
    name = "saxpy"
    dims = (Dim(name="n", most=1 << 28),)
    unit = GB_S
    baseline = "copy"
    output = "y"
    formula = "2·N"
    profiled = (1 << 20, 1 << 26)
    linear = (("x", "y"),)
    questions = ("operations", "peak", "limits", "divergence", "traffic")
    advice = ("few-blocks",)
    title = phrase("y = alpha·x + y in FP32")
    interface = Interface(
        main="saxpy.cu",
        header="saxpy.cuh",
        text=Path(__file__).with_name("saxpy.cuh").read_text(encoding="utf-8"),
        vectors=(FLOAT, FLOAT),
        dims=1,
        scalars=(FLOAT,),
    )

    def operands(self, size: Size) -> tuple[Operand, ...]:
        shape = (size["n"],)
        return (
            Operand(name="x", role="in", shape=shape),
            Operand(name="y", role="inout", shape=shape),
        )

    def scalars(self, size: Size) -> tuple[Scalar, ...]:
        return (Scalar(name="alpha", element=FLOAT, value=alpha(size)),)

    # --- right or wrong ---

    def reference(self, xp: Any, size: Size, inputs: Sequence[Any]) -> tuple[Expected, ...]:
        product, want = (each.astype(xp.float64) for each in inputs)
        product *= alpha(size)
        return (_expected(product, want),)

    def tolerance(self, size: Size) -> float:
        return _ROUNDOFF * (1 + _ROUNDOFF)

    def recomputed(
        self, size: Size, inputs: Sequence[Source], places: Sequence[Places]
    ) -> Recomputed:
        x, y = (each.at(places[0]).astype("float64") for each in inputs)
        expected = (_expected(alpha(size) * x, y),)
        return Recomputed(outputs=expected, tolerance=2 * self.tolerance(size))

    # --- fast or slow ---

    def work(self, size: Size) -> int:
        return 2 * size["n"]


def _expected(product: Any, y: Any) -> Expected:
    """From arrays of which this makes others: those of 2²⁸ elements fill a small GPU."""
    y += product
    scale = abs(product)
    scale += abs(y)
    return Expected(want=y, scale=scale)


def alpha(size: Size) -> float:
    """Another one for each size: 1.5 and some, odd in its last place, so that every product is
    rounded."""
    return 1.5 + (2 * (size["n"] % 1021) + 1) * 2.0**-12
