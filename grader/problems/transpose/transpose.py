"""The transpose of a row-major matrix in FP32. Nothing is computed, so every element must be
exact; the inputs are drawn from six million values, so that few of a small matrix are alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.problems.expected import Expected, Recomputed
from grader.problems.operands import FLOAT, Operand
from grader.problems.problem import GB_S, Dim, Interface, Problem
from ptxsim.plan import Size
from ptxsim.text import phrase

if TYPE_CHECKING:
    from grader.problems.inputs import Places, Source


class Transpose(Problem):
    name = "transpose"
    dims = (Dim(name="rows", most=32768), Dim(name="columns", most=32768))
    unit = GB_S
    baseline = "copy"
    output = "out"
    linear = (("in",),)
    moved = ("in",)
    questions = ("peak", "limits", "divergence", "traffic")
    advice = ("few-blocks", "bank-conflicts")
    title = phrase("the transpose of a matrix in FP32")
    interface = Interface(
        main="transpose.cu",
        header="transpose.cuh",
        text=Path(__file__).with_name("transpose.cuh").read_text(encoding="utf-8"),
        vectors=(FLOAT, FLOAT),
        dims=2,
    )

    def operands(self, size: Size) -> tuple[Operand, ...]:
        return (
            Operand(name="in", role="in", shape=size.extents),
            Operand(name="out", role="out", shape=size.extents[::-1]),
        )

    def reference(self, xp: Any, size: Size, inputs: Sequence[Any]) -> tuple[Expected, ...]:
        return (Expected(want=inputs[0].reshape(size.extents).T),)

    def tolerance(self, size: Size) -> float:
        return 0.0

    def recomputed(
        self, size: Size, inputs: Sequence[Source], places: Sequence[Places]
    ) -> Recomputed:
        j, i = places[0] // size["rows"], places[0] % size["rows"]
        want = inputs[0].at(i * size["columns"] + j)
        return Recomputed(outputs=(Expected(want=want),), tolerance=0.0)
