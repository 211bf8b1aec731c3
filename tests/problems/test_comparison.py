"""Pictures and words for vectors, scalars and several outputs; values whose sums are exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from grader.problems.comparison import check, poisoned, tile_edge, tile_map
from grader.problems.inputs import make_inputs
from grader.problems.operands import FLOAT, Operand, Steps
from grader.problems.problem import Dim, Expected, Interface, Problem
from grader.problems.work import GB_S
from ptxsim.records import Size


class Sums(Problem):
    """Running sums, and their last: a vector and a scalar."""

    name = "sums"
    dims = (Dim(name="n", most=1 << 20),)
    unit = GB_S
    baseline = "a copy"
    output = "sums"
    title = "running sums"
    interface = Interface(main="x.cu", header="x.cuh", text="", vectors=(FLOAT,) * 3, dims=1)

    def operands(self, size: Size) -> tuple[Operand, ...]:
        n = size["n"]
        return (
            Operand(name="in", role="in", shape=(n,), values=Steps(bits=4, exponent=-2)),
            Operand(name="sums", role="out", shape=(n,)),
            Operand(name="total", role="out", shape=(1,)),
        )

    def reference(self, xp: Any, size: Size, inputs: Sequence[Any]) -> tuple[Expected, ...]:
        sums = xp.cumsum(inputs[0].astype(np.float64))
        return Expected(want=sums, scale=1.0), Expected(want=sums[-1:], scale=1.0)

    def tolerance(self, size: Size) -> float:
        return 0.0


SIZE = Size.of(n=5000)
SUMS = Sums()


def right() -> tuple[tuple[Any, ...], list[Any]]:
    inputs = make_inputs(SUMS.operands(SIZE))
    sums = np.cumsum(inputs[0])  # in FP32: the values are multiples of 1/4, so nothing is rounded
    return inputs, [sums, sums[-1:].copy()]


def test_exact_values_give_exact_sums_in_any_order() -> None:
    inputs, outputs = right()
    assert not check(SUMS, SIZE, inputs, outputs).message
    assert inputs[0].sum() == inputs[0][::-1].sum() == outputs[1][0]


def test_a_vector_has_a_picture_line_by_line() -> None:
    inputs, outputs = right()
    outputs[0][4000:] += 0.25
    found = check(SUMS, SIZE, inputs, outputs)
    assert str(found.message) == "1000 of 5000 elements are wrong"
    error = found.error
    assert (error.operand, error.shape, error.tile_edge) == ("sums", (5000,), 4)
    assert error.first_mismatch and error.first_mismatch.element == "sums[4000]"
    assert "".join(error.tile_map) == "." * 1000 + "#" * 250
    assert {len(line) for line in error.tile_map[:-1]} == {64}


def test_a_scalar_is_named_alone() -> None:
    inputs, outputs = right()
    outputs[1][0] += 1
    found = check(SUMS, SIZE, inputs, outputs)
    assert str(found.message) == "the one element is wrong"
    assert found.error.first_mismatch and found.error.first_mismatch.element == "total"
    assert (found.error.operand, found.error.tile_map) == ("total", ())


def test_what_nobody_wrote_is_wrong_in_every_output() -> None:
    inputs, outputs = right()
    outputs[1] = poisoned(SUMS.operands(SIZE)[2])
    found = check(SUMS, SIZE, inputs, outputs)
    assert "still NaN: never written" in str(found.message)
    assert found.error.operand == "total" and found.error.max is None


@pytest.mark.parametrize("count", [1, 64, 2048, 2049, 10**6])
def test_a_map_of_a_vector_fits_the_terminal(count: int) -> None:
    rows = tile_map(np.arange(count) == count - 1)
    assert len(rows) <= 32 and max(map(len, rows), default=0) <= 64
    assert len("".join(rows)) == (-(-count // tile_edge((count,))) if count > 1 else 0)


def test_steps_that_fp32_cannot_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 2\\^24"):
        Steps(bits=24, least=1)
