"""Comparisons: pictures and words for any output, exact sums, and the product in all layouts."""

import itertools
from collections.abc import Sequence
from typing import Any, get_args

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from grader.labs.lab import load_lab, shipped_labs
from grader.problems.comparison import check, poisoned, tile_edge, tile_map
from grader.problems.expected import Expected
from grader.problems.gemm.cublas import call_for
from grader.problems.gemm.gemm import Gemm, Options
from grader.problems.gemm.layout import Layout, header
from grader.problems.inputs import make_inputs
from grader.problems.operands import FLOAT, Operand, Order, Steps
from grader.problems.problem import GB_S, Dim, Interface, Problem
from ptxsim.plan import Size
from tests.support.places import ROOT


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


# --- the product in all eight layouts


PRODUCT = Size.of(m=33, n=70, k=17)
ORDERS: tuple[Order, ...] = get_args(Order)
LAYOUTS = [Layout(A=a, B=b, C=c) for a, b, c in itertools.product(ORDERS, repeat=3)]
Floats = NDArray[np.float32]


def stored(operand: Operand, logical: Floats) -> Floats:
    return np.ascontiguousarray(operand.flat(logical))


def turned(operand: Operand) -> Operand:
    return msgspec.structs.replace(operand, order="col" if operand.order == "row" else "row")


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda each: f"{each.A}-{each.B}-{each.C}")
def test_what_is_right_and_what_is_named_wrong(layout: Layout) -> None:
    problem = Gemm(Options(layout=layout))
    a, b, c = problem.operands(PRODUCT)
    inputs = make_inputs((a, b, c))
    other = {"row": "column-major", "col": "row-major"}
    names = (
        f"A was read as if {other[layout.A]}: A is ",
        f"B was read as if {other[layout.B]}: B is ",
        "C came out transposed: C is ",
    )
    for wrong in itertools.product((False, True), repeat=3):
        x, y, z = (
            turned(each) if flag else each for each, flag in zip((a, b, c), wrong, strict=True)
        )
        product = x.logical(inputs[0]) @ y.logical(inputs[1])
        found = check(problem, PRODUCT, inputs, [stored(z, product)])
        assert bool(found.message) == any(wrong)
        for name, words, flag in zip("ABC", names, wrong, strict=True):
            assert (words in str(found.message)) == flag
            assert not flag or layout.element(name).replace(" * ", "*") in str(found.message)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda each: f"{each.A}-{each.B}-{each.C}")
def test_what_cublas_is_asked_for_is_the_product(layout: Layout) -> None:
    """cuBLAS's own terms, computed by NumPy: column-major matrices, op, leading dimensions."""
    problem = Gemm(Options(layout=layout))
    operands = problem.operands(PRODUCT)
    inputs = make_inputs(operands)
    call = call_for(layout, PRODUCT)

    def read(flat: Floats, rows: int, columns: int, leading: int, op_t: bool) -> Floats:
        height, width = (columns, rows) if op_t else (rows, columns)
        assert leading == height, "no matrix of ours has gaps between its columns"
        matrix: Floats = flat.reshape(width, height).T
        return matrix.T if op_t else matrix

    x, y = inputs[::-1] if call.swapped else inputs
    product = read(x, call.rows, call.depth, call.leading[0], call.transposed[0]) @ read(
        y, call.depth, call.columns, call.leading[1], call.transposed[1]
    )
    assert call.leading[2] == call.rows
    assert not check(
        problem, PRODUCT, inputs, [np.ascontiguousarray(product.T).reshape(-1)]
    ).message


def test_the_headers_of_the_starters_are_those_of_their_labs() -> None:
    row = Layout(A="row", B="row", C="row")
    assert (ROOT / "starter" / "gemm.cuh").read_text() == header(Layout()) == Gemm().interface.text
    assert (ROOT / "starters" / "sgemm-row" / "gemm.cuh").read_text() == header(row)
    half = (ROOT / "starters" / "hgemm" / "gemm.cuh").read_text()
    assert half == load_lab(shipped_labs()["hgemm"]).problem.interface.text
    assert "//   B  k×n, row-major:     B[p * n + j]\n" in header(row)
