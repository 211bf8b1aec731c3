"""The sum on a GPU: CUB as reference and baseline, a sum in float64 as its proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from grader.model import ErrorStats, Size
from grader.problems.comparison import compare
from grader.problems.on_gpu import Tools
from grader.problems.operands import Launch
from grader.problems.problem import Expected
from grader.problems.reduction.baseline import Cub
from grader.problems.reduction.reduction import CUB, UNIT, Reduction


class ReductionOnGpu:
    baselines_are_right = True  # every order of summation is exact

    def __init__(self, problem: Reduction, tools: Tools) -> None:
        self._problem = problem
        self._cub = Cub(tools.library(CUB), int(tools.stream.ptr))
        self._workspace = cupy.empty(0, dtype=cupy.uint8)

    @property
    def library(self) -> str:
        return f"CUB {self._cub.version}"

    def baselines(
        self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> dict[str, Launch]:
        return {"DeviceReduce::Sum": self._sum(size, inputs, outputs)}

    def refer(self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self._sum(size, inputs, outputs)()

    def prove(self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]) -> float:
        (expected,) = self._problem.reference(cupy, size, inputs)
        apart = np.abs(outputs[0].get().astype(np.float64) - expected.want.get()) / expected.scale
        return float(apart[0] / self._problem.tolerance(size))

    def compare(
        self, size: Size, inputs: Sequence[Any], got: Sequence[Any], want: Sequence[Any]
    ) -> ErrorStats:
        target = self._problem.operands(size)[1]
        expected = Expected(want=want[0].astype(np.float64), scale=UNIT)
        return compare(cupy, target, got[0], expected, self._problem.tolerance(size))

    def _sum(self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]) -> Launch:
        n = size["n"]
        need = self._cub.workspace_bytes(n)
        if self._workspace.size < need:
            self._workspace = cupy.empty(need, dtype=cupy.uint8)
        pointers = (int(each.data.ptr) for each in (inputs[0], outputs[0], self._workspace))
        source, target, workspace = pointers
        return self._cub.sum(source, target, n, workspace, self._workspace.size)
