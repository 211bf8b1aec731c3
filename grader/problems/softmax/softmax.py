"""The softmax of each row of a row-major matrix in FP32. docs/verification.md derives the scale of
an element's error: roundings of exp, of the sum, and of what stands in the exponent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.problems.expected import Cause, Expected, Recomputed
from grader.problems.operands import FLOAT, Operand, Whole
from grader.problems.problem import GB_S, Dim, Interface, Problem
from ptxsim.plan import Size
from ptxsim.text import phrase

if TYPE_CHECKING:
    from grader.problems.inputs import Places, Source

# Fifteen of sixteen numbers lie in the topmost four of a range, the others anywhere in it, in steps
# of 2⁻¹⁶. In FP32 exp(89) is infinite, and exp(-104) is 0.
_HIGH = Whole(
    below=200 << 16, least=-100 << 16, exponent=-16, often=240, first=196 << 16, few=4 << 16
)
_LOW = Whole(
    below=140 << 16, least=-250 << 16, exponent=-16, often=240, first=136 << 16, few=4 << 16
)
_ROUNDOFF = 2.0**-24
_LEAST = 2.0**-126  # the smallest normal number: what is below may become 0
_NO_MAXIMUM = phrase(
    "as if the row's maximum was not subtracted, or its search began at 0: in FP32 exp(89) is "
    "infinite, and exp(-104) is 0"
)
_NOT_DIVIDED = phrase("what exp gave was not divided by the row's sum")
_COLUMNS = phrase("this is the softmax along columns, not along rows")
_WHOLE = phrase("the sum is that of the whole matrix, not of a row")


class Softmax(Problem):
    name = "softmax"
    dims = (Dim(name="rows", most=1 << 24), Dim(name="columns", most=100_000))
    kinds = ("low",)
    unit = GB_S
    baseline = "copy"
    output = "out"
    questions = ("peak", "limits", "divergence", "traffic")
    advice = ("few-blocks", "bank-conflicts")
    title = phrase("the softmax of each row of a matrix in FP32")
    interface = Interface(
        main="softmax.cu",
        header="softmax.cuh",
        text=Path(__file__).with_name("softmax.cuh").read_text(encoding="utf-8"),
        vectors=(FLOAT, FLOAT),
        dims=2,
    )

    def operands(self, size: Size) -> tuple[Operand, ...]:
        values = _LOW if size.inputs == "low" else _HIGH
        return (
            Operand(name="in", role="in", shape=size.extents, values=values),
            Operand(name="out", role="out", shape=size.extents),
        )

    def reference(self, xp: Any, size: Size, inputs: Sequence[Any]) -> tuple[Expected, ...]:
        return (_softmax(xp, inputs[0].reshape(size.extents).astype(xp.float64)),)

    def tolerance(self, size: Size) -> float:
        return 1.001 * _ROUNDOFF  # the scale has everything else; products of errors are small

    def recomputed(
        self, size: Size, inputs: Sequence[Source], places: Sequence[Places]
    ) -> Recomputed:
        import numpy as np  # a lab is read without it

        rows, which = np.unique(places[0] // size["columns"], return_inverse=True)
        along = rows[:, None] * size["columns"] + np.arange(size["columns"])
        whole = _softmax(np, inputs[0].at(along).astype(np.float64))
        at = which, places[0] % size["columns"]
        found = Expected(want=whole.want[at], scale=whole.scale[at])
        return Recomputed(outputs=(found,), tolerance=2 * self.tolerance(size))

    def causes(self, size: Size, inputs: Sequence[Any]) -> Iterator[Cause]:
        import numpy as np

        x = inputs[0].reshape(size.extents)
        with np.errstate(over="ignore", invalid="ignore"):
            nan = np.isnan(np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)).reshape(-1)
        right, along, whole = (_softmax(np, x.astype(np.float64), axis) for axis in (1, 0, None))
        most = right.want.max(axis=1, keepdims=True)  # that is 1 / the row's sum
        for words, wrong in (
            (_NO_MAXIMUM, Expected(want=x, wrong=lambda got: np.isnan(got) != nan)),
            (_NOT_DIVIDED, Expected(want=right.want / most, scale=right.scale / most)),
            (_COLUMNS, along),
            (_WHOLE, whole),
        ):
            yield Cause(words=words, outputs=(wrong,), tolerance=self.tolerance(size))


def _softmax(xp: Any, x: Any, axis: int | None = 1) -> Expected:
    """Compute it in float64, in place of ``x``: 2²⁸ numbers and one more array fill a small GPU."""
    most = x.max(axis=axis, keepdims=True)
    x -= most
    want = xp.exp(x)
    want /= want.sum(axis=axis, keepdims=True)
    average = (want * x).sum(axis=axis, keepdims=True)
    x *= -7
    x += 24 + 16 * (x.size // most.size) ** 0.5 + 8 * abs(most) - 7 * average
    x *= want
    x += _LEAST / _ROUNDOFF
    return Expected(want=want, scale=x)
