"""Steps of the heat equation: what the host computes again, and how tight the tolerance is."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grader.problems.comparison import check
from grader.problems.inputs import Floats, make_inputs
from grader.problems.stencil.stencil import Stencil, alpha
from grader.run.gpu.host_check import HostInput
from ptxsim.plan import Size

PROBLEM = Stencil()
KEY = bytes(range(32))
Array = np.ndarray[Any, Any]


def grid(nx: int, ny: int, nz: int, steps: int) -> Size:
    return Size.of(nx=nx, ny=ny, nz=nz, steps=steps)


def given(size: Size) -> Floats:
    (values,) = make_inputs(PROBLEM.operands(size)[:1], [KEY])
    return values


@pytest.mark.parametrize(
    "size",
    [
        grid(*each)
        for each in ((1, 1, 1, 1), (5, 2, 1, 4), (40, 30, 1, 8), (2, 9, 7, 3), (11, 9, 7, 4))
    ],
    ids=str,
)
def test_the_host_computes_single_cells_alike(size: Size) -> None:
    expected, scratch = PROBLEM.reference(np, size, [given(size)])
    places = np.arange(expected.want.size)
    source = HostInput(KEY, PROBLEM.operands(size)[0])
    cells, nothing = PROBLEM.recomputed(size, [source], [places, places]).outputs

    assert np.allclose(cells.want, expected.want.reshape(-1), rtol=0, atol=1e-14)
    assert np.allclose(cells.scale, expected.scale.reshape(-1), rtol=1e-14)
    assert scratch.length == nothing.length == 0


def steps(size: Size, kept: Callable[[Array], Array], form: str) -> Array:
    """In FP32; what is ``kept`` of the cells between the steps."""
    nx, ny, nz, count = size.extents
    factor = np.float32(alpha(size))
    shape = (nz, ny, nx) if nz > 1 else (ny, nx)
    now = given(size).reshape(shape)
    inner = (slice(1, -1),) * now.ndim
    for _ in range(count):
        before = kept(now)
        near = [np.roll(before, by, axis)[inner] for axis in range(now.ndim) for by in (1, -1)]
        centre, number = before[inner], np.float32(len(near))
        now = before.copy()
        if form == "balance":
            now[inner] = centre + factor * (sum(near) - number * centre)
        elif form == "weights":
            now[inner] = (1 - number * factor) * centre + sum(factor * each for each in near)
        else:  # as if divided by alpha
            now[inner] = ((1 / factor - number) * centre + sum(near[::-1])) * factor
    return now.reshape(-1)


SIZES = [
    grid(65, 48, 1, 1),
    grid(65, 48, 1, 8),
    grid(65, 48, 1, 64),
    grid(20, 18, 16, 1),
    grid(20, 18, 16, 12),
]


def error(size: Size, out: Array) -> float:
    found = check(PROBLEM, size, [given(size)], [out, np.full(out.size, np.nan, np.float32)])
    assert found.error.max is not None
    assert bool(found.error.wrong) == (found.error.max > PROBLEM.tolerance(size))
    return found.error.max / PROBLEM.tolerance(size)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_steps_in_fp32_pass_in_any_order(size: Size) -> None:
    for form in ("balance", "weights", "divided"):
        assert error(size, steps(size, np.copy, form)) <= 0.5


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_less_than_fp32_fails(size: Size) -> None:
    assert (
        error(size, steps(size, lambda u: u.astype(np.float16).astype(np.float32), "weights")) > 2
    )
    tf32 = np.uint32(0xFFFFE000)
    cut = error(size, steps(size, lambda u: (u.view(np.uint32) & tf32).view(np.float32), "weights"))
    assert cut > 2
