"""The sum on a GPU: CUB as reference and baseline, a sum in float64 as its proof."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_int, c_size_t, c_void_p
from typing import Any

import cupy
import numpy as np

from grader.base import ErrorStats, MachineError
from grader.problems.comparison import compare
from grader.problems.expected import Expected
from grader.problems.operands import Launcher, Tools
from grader.problems.reduction.reduction import CUB, UNIT, Reduction
from ptxsim.plan import Size


class ReductionOnGpu:
    baselines_are_right = True  # every order of summation is exact

    def __init__(self, problem: Reduction, tools: Tools) -> None:
        self._problem = problem
        self._cub = tools.library(CUB)
        self._stream = c_void_p(int(tools.stream.ptr))
        self._workspace = cupy.empty(0, dtype=cupy.uint8)

    @property
    def library(self) -> str:
        """Name and version, such as "CUB 3.0.1", whose number is 300001."""
        number = self._cub.cub_version()
        return f"CUB {number // 100000}.{number // 100 % 1000}.{number % 100}"

    def baselines(
        self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> dict[str, Launcher]:
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

    def _sum(self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]) -> Launcher:
        count, need = c_int(size["n"]), c_size_t()
        _check(self._cub.cub_workspace(count, byref(need)))
        if self._workspace.size < need.value:
            self._workspace = cupy.empty(need.value, dtype=cupy.uint8)
        source, target, workspace = (
            c_void_p(int(each.data.ptr)) for each in (inputs[0], outputs[0], self._workspace)
        )
        space = c_size_t(self._workspace.size)
        return lambda: _check(
            self._cub.cub_sum(workspace, space, source, target, count, self._stream)
        )


def _check(error: int) -> None:
    if error:
        raise MachineError.saying("CUB failed: CUDA error {why}", why=str(error))
