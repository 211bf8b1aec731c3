"""A problem on a GPU by its own methods, with CuPy's arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import cupy
import numpy as np

from grader.base import ErrorStats
from grader.problems.comparison import compare, worst
from grader.problems.expected import Expected
from grader.problems.inputs import Places
from grader.problems.operands import Launcher, Operand
from grader.problems.problem import Problem
from ptxsim.plan import Size

_PROVED_WHOLE = 1 << 24  # elements of all inputs, which NumPy takes less than a second for
_SAMPLED = 1 << 16


class _OnDevice:
    """An input that is on the GPU: a ``Source``."""

    def __init__(self, operand: Operand, array: Any) -> None:
        self._element, self._array = operand.element, array

    def at(self, places: Places) -> Any:
        stored = self._array[cupy.asarray(places)].get()
        return self._element.wide(stored).astype("float32") if self._element.upper else stored


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
        excess = 0.0
        for ours, theirs in self._proofs(size, inputs):
            if theirs.scale is None:
                apart = np.where(ours == theirs.want, 0.0, np.inf)
            else:
                apart = np.abs(ours - theirs.want) / theirs.scale
            excess = max(excess, float(np.max(apart)), key=lambda value: (value != value, value))
        tolerance = self._problem.tolerance(size)
        return excess / tolerance if tolerance else float("inf") if excess else 0.0

    def _proofs(self, size: Size, inputs: Sequence[Any]) -> Iterator[tuple[Any, Expected]]:
        """Each output, or of a large problem that computes single elements a sample, beside what
        NumPy makes of the same inputs."""
        given = [each for each in self._problem.operands(size) if each.given]
        targets = [each for each in self._problem.operands(size) if each.written]
        single = type(self._problem).recomputed is not Problem.recomputed
        if not single or sum(each.size for each in inputs) <= _PROVED_WHOLE:
            proof = self._problem.reference(np, size, [each.get() for each in inputs])
            for ours, theirs in zip(self._expected, proof, strict=True):
                yield cupy.asnumpy(ours.want), theirs
            return
        places = [np.random.default_rng().integers(each.count, size=_SAMPLED) for each in targets]
        sources = [_OnDevice(*each) for each in zip(given, inputs, strict=True)]
        found = self._problem.recomputed(size, sources, places)
        assert found
        for target, ours, at, each in zip(
            targets, self._expected, places, found.outputs, strict=True
        ):
            yield target.flat(ours.want)[cupy.asarray(at)].get(), each

    def compare(
        self, size: Size, inputs: Sequence[Any], got: Sequence[Any], want: Sequence[Any]
    ) -> ErrorStats:
        targets = [each for each in self._problem.operands(size) if each.written]
        found = [
            compare(cupy, target, each, expected, self._problem.tolerance(size))
            for target, each, expected in zip(targets, got, self._expected, strict=True)
        ]
        return found[worst(found)]
