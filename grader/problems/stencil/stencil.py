"""Explicit steps of the heat equation in FP32, on a plane or in a box whose edges are held. Errors
are measured against the same steps of |in|; docs/verification.md derives how large they may be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.problems.expected import Cause, Expected, Recomputed
from grader.problems.operands import FLOAT, Operand, Scalar
from grader.problems.problem import GB_S, Dim, Interface, Problem
from ptxsim.plan import Size
from ptxsim.text import phrase

if TYPE_CHECKING:
    from grader.problems.inputs import Places, Source

_MOST = {"nx": 32768, "ny": 32768, "nz": 2048, "steps": 64}
_PART = 1 << 20  # cells that are recomputed at a time


class Stencil(Problem):
    name = "stencil"
    dims = tuple(Dim(name=name, most=most) for name, most in _MOST.items())
    unit = GB_S
    baseline = "copy"
    output = "out"
    linear = (("in",),)
    profiled = (64,)
    questions = ("operations", "peak", "limits", "divergence", "traffic")
    advice = ("few-blocks", "bank-conflicts")
    title = phrase("steps of the heat equation in FP32")
    interface = Interface(
        main="stencil.cu",
        header="stencil.cuh",
        text=Path(__file__).with_name("stencil.cuh").read_text(encoding="utf-8"),
        vectors=(FLOAT, FLOAT, FLOAT),
        dims=4,
        scalars=(FLOAT,),
    )

    def operands(self, size: Size) -> tuple[Operand, ...]:
        given = Operand(name="in", role="in", shape=_shape(size))
        outputs = (Operand(name=each, role="out", shape=given.shape) for each in ("out", "scratch"))
        return (given, *outputs)

    def scalars(self, size: Size) -> tuple[Scalar, ...]:
        return (Scalar(name="alpha", element=FLOAT, value=alpha(size)),)

    def reference(
        self, xp: Any, size: Size, inputs: Sequence[Any], steps: int | None = None
    ) -> tuple[Expected, ...]:
        want = inputs[0].reshape(_shape(size)).astype(xp.float64)
        scale = abs(want)
        for _ in range(size["steps"] if steps is None else steps):
            for grid in (want, scale):
                grid[_inner(want.ndim)] += _balance(xp, grid, want.ndim) * alpha(size)
        return Expected(want=want, scale=scale), _anything(xp, want.shape)

    def tolerance(self, size: Size) -> float:
        dims = len(_shape(size))
        return 1.001 * size["steps"] * dims * (2 * dims + 2) * 2.0**-24

    def recomputed(
        self, size: Size, inputs: Sequence[Source], places: Sequence[Places]
    ) -> Recomputed:
        """From the cells that are at most ``steps`` away along each axis."""
        import numpy as np  # a lab is read without it

        shape, steps = _shape(size), size["steps"]
        dims, parts = len(shape), []
        near = np.arange(-steps, steps + 1)
        for part in np.array_split(places[0], places[0].size * near.size**dims // _PART + 1):
            at, free = np.zeros(1, np.int64), np.ones(1, bool)
            for axis, middle in enumerate(np.unravel_index(part, shape)):
                others = [1 + other for other in range(dims) if other != axis]
                line = np.expand_dims(np.add.outer(middle, near), others)
                at = at * shape[axis] + line.clip(0, shape[axis] - 1)
                free = free & (line > 0) & (line < shape[axis] - 1)
            grid: Any = inputs[0].at(at)
            grid = np.stack([grid, abs(grid)]).astype(np.float64)
            for _ in range(steps):
                free = free[_inner(dims)]
                grid = grid[_inner(dims)] + alpha(size) * free * _balance(np, grid, dims)
            parts.append(grid.reshape(2, -1))
        want, scale = np.concatenate(parts, axis=1)
        outputs = (Expected(want=want, scale=scale), _anything(np, places[1].shape))
        return Recomputed(outputs=outputs, tolerance=2 * self.tolerance(size))

    def causes(self, size: Size, inputs: Sequence[Any]) -> Iterator[Cause]:
        import numpy as np

        words = phrase("this is the grid after step {count}, not after step {steps}")
        for count in (size["steps"] - 1, size["steps"] + 1):
            said = words.given(count=count, steps=size["steps"])
            outputs = self.reference(np, size, inputs, count)
            yield Cause(words=said, outputs=outputs, tolerance=self.tolerance(size))

    def work(self, size: Size) -> int:
        shape = _shape(size)
        return (2 * len(shape) + 2) * size["steps"] * prod(max(0, each - 2) for each in shape)

    def traffic(self, size: Size) -> int:
        """Count ``in`` once and ``out`` once, however many steps a call does."""
        return sum(each.bytes for each in self.operands(size)[:2])


def _shape(size: Size) -> tuple[int, ...]:
    nx, ny, nz, _ = size.extents
    return (nz, ny, nx) if nz > 1 else (ny, nx)


def _anything(xp: Any, shape: tuple[int, ...]) -> Expected:
    """Return an expectation of scratch: no element counts."""
    return Expected(want=xp.broadcast_to(xp.zeros(1, xp.float32), shape), length=0)


def _inner(dims: int, along: int | None = None) -> tuple[Any, ...]:
    """The inner cells of the last axes; ``along`` one of them all cells."""
    return (..., *(slice(None) if axis == along else slice(1, -1) for axis in range(dims)))


def _balance(xp: Any, grid: Any, dims: int) -> Any:
    """Return how much more the neighbours along the last axes have than each inner cell."""
    return sum(xp.diff(grid[_inner(dims, axis)], n=2, axis=axis - dims) for axis in range(dims))


def alpha(size: Size) -> float:
    """Another one for each size, between 1/16 and 1/12; FP32 holds its first multiples."""
    nx, ny, nz, steps = size.extents
    return (2 * (256 + (nx + 3 * ny + 5 * nz + 7 * steps) % 85) + 1) * 2.0**-13
