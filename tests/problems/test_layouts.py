"""The product in all eight layouts: right results, named mistakes, and cuBLAS's terms."""

from __future__ import annotations

import itertools
from typing import get_args

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from grader.labs.lab import load_lab, shipped_labs
from grader.problems.comparison import check
from grader.problems.gemm.cublas import call_for
from grader.problems.gemm.gemm import Gemm, Options
from grader.problems.gemm.layout import Layout, header
from grader.problems.inputs import make_inputs
from grader.problems.operands import Operand, Order
from ptxsim.records import Size
from tests.support.places import ROOT

SIZE = Size.of(m=33, n=70, k=17)
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
    a, b, c = problem.operands(SIZE)
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
        found = check(problem, SIZE, inputs, [stored(z, product)])
        assert bool(found.message) == any(wrong)
        for name, words, flag in zip("ABC", names, wrong, strict=True):
            assert (words in str(found.message)) == flag
            assert not flag or layout.element(name).replace(" * ", "*") in str(found.message)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda each: f"{each.A}-{each.B}-{each.C}")
def test_what_cublas_is_asked_for_is_the_product(layout: Layout) -> None:
    """cuBLAS's own terms, computed by NumPy: column-major matrices, op, leading dimensions."""
    problem = Gemm(Options(layout=layout))
    operands = problem.operands(SIZE)
    inputs = make_inputs(operands)
    call = call_for(layout, SIZE)

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
    assert not check(problem, SIZE, inputs, [np.ascontiguousarray(product.T).reshape(-1)]).message


def test_the_headers_of_the_starters_are_those_of_their_labs() -> None:
    row = Layout(A="row", B="row", C="row")
    assert (ROOT / "starter" / "gemm.cuh").read_text() == header(Layout())
    assert (ROOT / "starters" / "sgemm-row" / "gemm.cuh").read_text() == header(row)
    half = (ROOT / "starters" / "hgemm" / "gemm.cuh").read_text()
    assert half == load_lab(shipped_labs()["hgemm"]).problem.interface.text
    assert "//   B  k×n, row-major:     B[p * n + j]\n" in header(row)
