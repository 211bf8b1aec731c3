"""A problem on a GPU by its own methods, with CuPy's arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cupy
import numpy as np

from grader.base import ErrorStats
from grader.problems.comparison import compare, worst
from grader.problems.operands import Launcher
from grader.problems.problem import Expected, Problem
from ptxsim.plan import Size


class ArraysOnGpu:
    """The reference in float64 by CuPy, and as its proof the same by NumPy."""

    baselines_are_right = False

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._expected: tuple[Expected, ...] = ()

    @property
    def library(self) -> str:
        return f"CuPy {cupy.__version__}"

    def baselines(
        self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launcher]:
        return self._problem.baselines(cupy, size, inputs, outputs)

    def refer(self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self._expected = self._problem.reference(cupy, size, inputs)

    def prove(self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]) -> float:
        host = [each.get() for each in inputs]
        proof = self._problem.reference(np, size, host)
        excess = 0.0
        for ours, theirs in zip(self._expected, proof, strict=True):
            want = cupy.asnumpy(ours.want)
            if theirs.scale is None:
                apart = np.where(want == theirs.want, 0.0, np.inf)
            else:
                apart = np.abs(want - theirs.want) / theirs.scale
            excess = max(excess, float(np.max(apart)), key=lambda value: (value != value, value))
        tolerance = self._problem.tolerance(size)
        return excess / tolerance if tolerance else float("inf") if excess else 0.0

    def compare(
        self, size: Size, inputs: Sequence[Any], got: Sequence[Any], want: Sequence[Any]
    ) -> ErrorStats:
        targets = [each for each in self._problem.operands(size) if each.written]
        found = [
            compare(cupy, target, each, expected, self._problem.tolerance(size))
            for target, each, expected in zip(targets, got, self._expected, strict=True)
        ]
        return found[worst(found)]
