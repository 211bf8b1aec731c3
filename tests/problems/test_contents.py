"""What wrong elements hold: in words that are true, or not at all."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from grader.problems.content_words import describe_contents, ranges
from grader.problems.contents import Run, look_into, suspect
from grader.problems.expected import Expected
from grader.problems.operands import Operand
from grader.problems.reduction.reduction import Reduction
from grader.problems.stencil.stencil import Stencil, alpha
from grader.problems.transpose.transpose import Transpose
from ptxsim import Module
from ptxsim.plan import Launch, Plan, Size
from tests.support.bench import engine
from tests.support.files import beside
from tests.support.product import GEMM

SIZE = Size.of(m=33, n=17, k=70)


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Module:
    source = tmp_path_factory.mktemp("products") / "products.cu"
    source.write_text(beside(__file__, "products.cu"))
    return Module(source, engine=engine(), checked=True)


def products(module: Module, how: str) -> Run:
    number = re.findall(r"\w+", beside(__file__, "products.cu").partition("enum {")[2]).index(how)
    m, n, k = SIZE.extents

    def run(inputs: Sequence[NDArray[Any]], _seconds: float) -> Sequence[NDArray[Any]]:
        out = np.zeros(m * n, np.float32)
        a, b = (each.copy() for each in inputs)
        module.kernel("product")[(-(-m // 16), -(-n // 8)), (16, 8)](a, b, out, m, n, k, number)
        return [out]

    return run


def plan(size: Size, block: tuple[int, int, int]) -> Plan:
    launch = Launch(
        kernel="k", grid=(4, 4, 1), block=block, shared_bytes=0, params=b"", pointers=()
    )
    return Plan(size=size, allocations=(), operations=(launch,))


@pytest.mark.parametrize(
    ("how", "says", "signs"),
    [
        (
            "TAIL",
            "holds the products p = 0 … 63 and lacks p = 64 … 69 (beyond whole parts of 16",
            "-",
        ),
        ("STRIDE", "holds the products p = 0, 2, … 68 and lacks p = 1, 3, … 69", "+"),
        ("TWICE", "counts the products p = 8 … 15, 24 … 31, … 56 … 63 twice (in parts of 8", "2"),
        ("ROW", "C[row 0, column 0] holds row 1 of A in the place of row 0 of A; the same in", "x"),
        ("PAIRED", "A at p meets B at another place (p: 0 – 4, 1 – 5", "x"),
        ("SHIFTED", "A at p meets B at another place (p: 0 – 1, 1 – 2", "x"),
        ("FRAGMENT", "holds A[row 8, columns 0 … 7, 16 … 23, … 48 … 55] in the", "x"),
        (
            "STAGE",
            "lacks the products p = 16 … 31 of p = 0 … 69 (in parts of 16: a block's extent",
            "2",
        ),
        ("MINUS", "holds the products p = 0 … 69 with the opposite sign", "2"),
        ("STARTED", "holds 0.5 that comes from no input; the same in", ""),
    ],
)
def test_a_wrong_product_is_said_to_hold_what_it_holds(
    module: Module, how: str, says: str, signs: str
) -> None:
    found = look_into(GEMM, SIZE, products(module, how), 20)
    message, strips = describe_contents(found, plan(SIZE, (16, 8, 1)))
    assert says in str(message)
    assert all(signs in strip.signs and strip.operand == "A·B" for strip in strips)
    assert bool(strips) is bool(signs)


@pytest.mark.parametrize("how", ["RIGHT", "BRANCH"])
def test_nothing_is_said_of_what_is_right_or_depends_on_values(module: Module, how: str) -> None:
    assert not look_into(GEMM, SIZE, products(module, how), 20)


def test_no_time_no_words(module: Module) -> None:
    assert not look_into(GEMM, SIZE, products(module, "TAIL"), 0)


class Scan(Reduction):
    """Sums up to each element, as a lab of its own would declare it."""

    linear = (("in",),)

    def operands(self, size: Size) -> tuple[Operand, ...]:
        given, _ = super().operands(size)
        return given, Operand(name="out", role="out", shape=given.shape)

    def reference(self, xp: Any, size: Size, inputs: Sequence[Any]) -> tuple[Expected, ...]:
        sums = np.cumsum(inputs[0], dtype=np.float64)
        return (Expected(want=sums, scale=np.full(sums.shape, 2.0**23)),)


@pytest.mark.parametrize(
    ("exclusive", "blocks", "says"),
    [
        (1, 0, "out[0] lacks in[0]: exclusive where inclusive is asked; the same in out[199]"),
        (0, 1, "holds in[64] and lacks in[0 … 63]"),
    ],
)
def test_a_wrong_scan(module: Module, exclusive: int, blocks: int, says: str) -> None:
    size, problem = Size.of(n=200), Scan()

    def run(inputs: Sequence[NDArray[Any]], _seconds: float) -> Sequence[NDArray[Any]]:
        out = np.zeros(200, np.float32)
        module.kernel("scan")[4, 64](inputs[0].copy(), out, 200, exclusive, blocks)
        return [out]

    found = look_into(problem, size, run, 20)
    assert says in str(describe_contents(found, plan(size, (64, 1, 1)))[0])
    assert (seen := suspect(found))
    assert not seen.foreign


def test_of_a_matrix_a_map_is_drawn() -> None:
    size, problem = Size.of(rows=40, columns=24), Transpose()

    def run(inputs: Sequence[NDArray[Any]], _seconds: float) -> Sequence[NDArray[Any]]:
        given = inputs[0].reshape(40, 24)
        out = given.T.copy()
        out[8:16, 8:16] = given[8:16, 8:16]
        return [out.reshape(-1)]

    message, maps = describe_contents(look_into(problem, size, run, 20), plan(size, (8, 8, 1)))
    assert "row and column are exchanged" in str(message)
    first = maps[0]
    assert first.element == "out[row 8, column 9]"
    assert first.corner == "in[row 8, column 8]"
    assert first.signs == " o\n- "


def test_a_neighbour_that_is_taken_for_another_is_in_the_map() -> None:
    size, problem = Size.of(nx=24, ny=20, nz=1, steps=1), Stencil()
    part = alpha(size)

    def run(inputs: Sequence[NDArray[Any]], _seconds: float) -> Sequence[NDArray[Any]]:
        grid = inputs[0].reshape(20, 24).astype(np.float64)
        out = grid.copy()
        sides = grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[:-2, 2:]
        out[1:-1, 1:-1] += part * (sides - 4 * grid[1:-1, 1:-1])
        return [out.astype(np.float32).reshape(-1), np.zeros(480, np.float32)]

    _, maps = describe_contents(look_into(problem, size, run, 20), plan(size, (16, 16, 1)))
    assert {each.signs for each in maps} == {" .o\n..-\n . "}


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([3], "3"),
        ([0, 1, 2, 5], "0 … 2, 5"),
        (range(0, 64, 2), "0, 2, … 62"),
        (
            [*range(8, 16), *range(24, 32), *range(40, 48), *range(56, 64)],
            "8 … 15, 24 … 31, … 56 … 63",
        ),
        ([1, 5, 6, 20, 40, 41], "1, 5 … 6, 20, … 40 … 41"),
    ],
)
def test_indices_are_folded(numbers: Sequence[int], text: str) -> None:
    assert ranges(np.array(numbers)) == text
