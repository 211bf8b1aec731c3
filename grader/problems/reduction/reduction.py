"""The sum of n numbers in FP32, exact in any order: ``|out - sum| / unit <= tolerance(n)``, half a
step of the inputs, and sums are whole steps. docs/verification.md says why that can be asked.

**Why 8·√n**, which bounds the partial sums in units if signs do not depend on the order. By
Hoeffding a sum of p ≤ n such terms exceeds t·(the root of their squares' sum), at most
t·√(13/12·p) units here, with a probability of at most 2·exp(-t²/2): for t = 7.68, 8·√n units,
4·10⁻¹³. Take the partial sums of a summation tree by size: those of more than n/2ʲ⁺¹ and up to n/2ʲ
terms form fewer than 2ʲ⁺¹ chains in which each contains the one before, and by Lévy's inequality a
chain exceeds a limit at most twice as often as its last sum. As p shrinks, t grows: together they
exceed it less than once in 10¹² sums.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.problems.cub import CubProblem
from grader.problems.expected import Expected, Recomputed
from grader.problems.operands import FLOAT, Operand, Steps
from grader.problems.problem import GB_S, Dim, Interface
from ptxsim.plan import Size
from ptxsim.text import phrase

if TYPE_CHECKING:
    from grader.problems.inputs import Places, Source

UNIT_BITS = 23
UNIT = 2.0**UNIT_BITS
MOST = 1 << 28
CUB = Path(__file__).with_name("cub.cu")


class Reduction(CubProblem):
    name = "reduction"
    dims = (Dim(name="n", most=MOST),)
    unit = GB_S
    routine = "DeviceReduce::Sum"
    output = "out"
    formula = "N - 1"
    linear = (("in",),)
    profiled = (1 << 20, 1 << 26)
    questions = ("operations", "peak", "limits", "divergence", "traffic")
    advice = (
        *("few-parts", "split-warps", "scattered-pairs", "idle-threads"),
        *("barriers-for-one-warp", "sums-through-memory", "few-bytes-on-the-way"),
        "several-passes",
    )

    gpu_libraries = (CUB,)
    title = phrase("the sum of n numbers in FP32")
    interface = Interface(
        main="reduction.cu",
        header="reduction.cuh",
        text=CUB.with_name("reduction.cuh").read_text(encoding="utf-8"),
        vectors=(FLOAT, FLOAT),
        dims=1,
    )

    def operands(self, size: Size) -> tuple[Operand, ...]:
        n = size["n"]
        return (
            Operand(name="in", role="in", shape=(n,), values=steps(n)),
            Operand(name="out", role="out", shape=(1,)),
        )

    # --- right or wrong ---

    def tolerance(self, size: Size) -> float:
        return tolerance(size["n"])

    def reference(self, xp: Any, size: Size, inputs: Sequence[Any]) -> tuple[Expected, ...]:
        """Exact: float64 holds every whole number up to 2⁵³, and |sum| is below 1.5·n·2²³."""
        return (Expected(want=inputs[0].sum(dtype=xp.float64).reshape(1), scale=UNIT),)

    def recomputed(
        self, size: Size, inputs: Sequence[Source], places: Sequence[Places]
    ) -> Recomputed:
        """Every element counts, so all are added up."""
        import numpy as np  # a lab is read without it

        from grader.problems.inputs import in_parts

        n = size["n"]
        total = sum(in_parts(n, lambda each: float(inputs[0].at(each).sum(dtype=np.float64))))
        want = np.full(places[0].shape, total)
        return Recomputed(outputs=(Expected(want=want, scale=UNIT),), tolerance=tolerance(n))

    # --- fast or slow ---

    def work(self, size: Size) -> int:
        """An addition for each element but the first."""
        return size["n"] - 1


def step_exponent(n: int) -> int:
    """The step is 2 to this power: the least for which 2²⁴ steps are as many as 8·√n or 1.5·n
    units."""
    return next(e for e in itertools.count() if 4 ** (e + 1) >= 64 * n or 2 ** (e + 2) >= 3 * n)


def steps(n: int) -> Steps:
    """The values of the inputs: a unit is 2²³, whatever the step."""
    exponent = step_exponent(n)
    bits = UNIT_BITS - exponent
    return Steps(bits=bits, least=1 << bits - 1, exponent=exponent)


def tolerance(n: int) -> float:
    """Half a step, in units: sums are whole steps, so only the exact one is within."""
    return 2.0 ** (step_exponent(n) - 1) / UNIT
