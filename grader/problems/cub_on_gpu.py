"""Problems of ``cub.py`` on a GPU: CUB as reference and baseline, the same by CuPy as its proof."""

from __future__ import annotations

import math
from collections.abc import Sequence
from ctypes import byref, c_int, c_size_t, c_void_p
from typing import Any

import cupy

from grader.base import ErrorStats, MachineError
from grader.problems.comparison import compare, worst
from grader.problems.cub import CubProblem
from grader.problems.expected import Expected
from grader.problems.operands import Launcher, Tools
from ptxsim.plan import Size


class CubOnGpu:
    baselines_are_right = True  # every order of operations is exact

    def __init__(self, problem: CubProblem, tools: Tools) -> None:
        self._problem = problem
        self._cub = tools.library(problem.gpu_libraries[0])
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
        operands = [c_void_p(int(each.data.ptr)) for each in (*inputs, *outputs)]
        rest = (*operands, *map(c_int, size.extents), self._stream)
        need = c_size_t()
        _check(self._cub.cub_call(None, byref(need), *rest))
        if self._workspace.size < need.value:
            self._workspace = cupy.empty(need.value, dtype=cupy.uint8)
        workspace = self._workspace  # a later size may replace it
        at, room = c_void_p(int(workspace.data.ptr)), c_size_t(workspace.size)

        def launch() -> None:
            _check(self._cub.cub_call(at, byref(room), *rest))

        return {self._problem.routine: launch}

    def refer(self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        for launch in self.baselines(size, inputs, outputs).values():
            launch()

    def prove(self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]) -> float:
        proof = self._problem.reference(cupy, size, inputs)
        return math.inf if self._apart(size, outputs, proof).wrong else 0.0

    def compare(
        self, size: Size, inputs: Sequence[Any], got: Sequence[Any], want: Sequence[Any]
    ) -> ErrorStats:
        return self._apart(size, got, [Expected(want=each) for each in want])

    def _apart(self, size: Size, got: Sequence[Any], expected: Sequence[Expected]) -> ErrorStats:
        targets = [each for each in self._problem.operands(size) if each.written]
        tolerance = self._problem.tolerance(size)
        found = [
            compare(cupy, target, each, want, tolerance)
            for target, each, want in zip(targets, got, expected, strict=True)
        ]
        return found[worst(found)]


def _check(error: int) -> None:
    if error:
        raise MachineError.saying("CUB failed: CUDA error {why}", why=str(error))
