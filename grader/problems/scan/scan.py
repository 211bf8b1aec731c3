"""The inclusive prefix sums of n whole numbers of 32 bits, exact in any order.

No element is 0, and no sum of neighbours leaves the range: by Hoeffding one of n ≤ 2²⁸ elements
exceeds 7.6 times the root of their squares' sum, at most 8526·√n, with a probability below 10⁻¹².
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.problems.cub import CubProblem
from grader.problems.expected import Expected, Recomputed
from grader.problems.operands import INT32, Operand, Steps
from grader.problems.problem import GB_S, Dim, Interface
from ptxsim.plan import Size
from ptxsim.text import phrase

if TYPE_CHECKING:
    from grader.problems.inputs import Places, Source

_VALUES = Steps(bits=13, least=1 << 12)
_CUB = Path(__file__).with_name("cub.cu")


class Scan(CubProblem):
    name = "scan"
    dims = (Dim(name="n", most=1 << 28),)
    unit = GB_S
    routine = "DeviceScan::InclusiveSum"
    output = "out"
    profiled = (1 << 20, 1 << 26)
    linear = (("in",),)
    questions = ("peak", "limits", "divergence", "traffic")
    advice = ("few-blocks", "bank-conflicts")
    gpu_libraries = (_CUB,)
    title = phrase("the inclusive prefix sums of n numbers of 32 bits")
    interface = Interface(
        main="scan.cu",
        header="scan.cuh",
        text=_CUB.with_name("scan.cuh").read_text(encoding="utf-8"),
        vectors=(INT32, INT32),
        dims=1,
        element=INT32,
    )

    def operands(self, size: Size) -> tuple[Operand, ...]:
        shape = (size["n"],)
        return (
            Operand(name="in", role="in", shape=shape, element=INT32, values=_VALUES),
            Operand(name="out", role="out", shape=shape, element=INT32),
        )

    def reference(self, xp: Any, size: Size, inputs: Sequence[Any]) -> tuple[Expected, ...]:
        return (Expected(want=inputs[0].cumsum(dtype=inputs[0].dtype)),)

    def tolerance(self, size: Size) -> float:
        return 0.0

    def recomputed(
        self, size: Size, inputs: Sequence[Source], places: Sequence[Places]
    ) -> Recomputed:
        """All elements up to the last place are added up."""
        import numpy as np  # a lab is read without it

        from grader.problems.inputs import in_parts

        want, before = np.zeros(places[0].shape, np.int64), 0

        def part(along: Places) -> tuple[Any, Any, int]:
            sums = inputs[0].at(along).astype(np.int64).cumsum()
            asked = np.flatnonzero((along[0] <= places[0]) & (places[0] <= along[-1]))
            return asked, sums[places[0][asked] - along[0]], int(sums[-1])

        for asked, sums, total in in_parts(int(places[0].max()) + 1, part):
            want[asked] = before + sums
            before += total
        return Recomputed(outputs=(Expected(want=want),), tolerance=0.0)
