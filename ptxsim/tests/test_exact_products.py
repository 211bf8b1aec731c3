"""mma of doubles, integers and bits, against numpy and exact fractions.

Fragments lie as the PTX ISA's figures show: element (row, k) of A, and (column, k) of B, in lane
``row % 8 · 4 + k / each % 4``, where a register holds ``each`` elements.
"""

import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness import compiled, kernels, launch, table
from ptxsim.findings.finding import FindingKind
from ptxsim.outcome import SimOutcome

BITS = {"f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}
INT = np.iinfo(np.int32)
FORMS = [form for (form,) in table("exact_mma.txt")]
Matrix = NDArray[Any]


def fragments(matrix: Matrix, bits: int) -> Matrix:
    """The registers of every lane that hold the rows of A or the columns of B."""
    rows, depth = matrix.shape
    each = max(32 // bits, 1)
    word = np.float64 if bits == 64 else np.uint32
    held = np.zeros((32, rows * depth // 32 // each), word)
    for row, k in np.ndindex(rows, depth):
        lane, register = row % 8 * 4 + k // each % 4, row // 8 + k // (4 * each) * (rows // 8)
        part = matrix[row, k] if bits == 64 else (int(matrix[row, k]) & (1 << bits) - 1)
        held[lane, register] += part if bits == 64 else word(part << bits * (k % each))
    return held


def sums(matrix: Matrix) -> Matrix:
    """The registers of every lane that hold C or D, which ``reshape`` makes of a matrix."""
    return matrix.reshape(-1, 8, 4, 2).transpose(1, 2, 0, 3).reshape(32, -1).copy()


def multiply(
    form: str, a: Matrix, b: Matrix, c: Matrix, folder: Path, guard: str = ""
) -> tuple[SimOutcome, Matrix]:
    """One mma of the fragments; the rows of D."""
    types = [each for each in form.split(".") if each in BITS]
    wide = types[0] == "f64"
    kept = [fragments(a, BITS[types[0]]), fragments(b, BITS[types[-1]]), sums(c)]
    type_ = "f64" if wide else "b32"
    lists, loads, stores = [], [], []
    for letter, array in zip("abc", kept, strict=True):
        names = [f"%{letter}{i}" for i in range(array.shape[1])]
        places = [f"%{letter}+{i * array.itemsize}" for i in range(array.shape[1])]
        lists.append(f"{{{', '.join(names)}}}")
        for name, place in zip(names, places, strict=True):
            loads.append(f"{guard if letter == 'a' else ''} ld.global.{type_} {name}, [{place}];")
            if letter == "c":
                stores.append(f"st.global.{type_} [{place.replace('c', 'd')}], {name};")
    bytes_of = {f"bytes_{n}": k[0].nbytes for n, k in zip("abc", kept, strict=True)}
    ptx = folder / "exact.ptx"
    ptx.write_text(
        kernels(
            "exact_mma.ptx",
            **bytes_of,
            type=type_,
            loads="\n  ".join(loads),
            stores="\n  ".join(stores),
            multiplies=f"mma.sync.aligned.{form} {lists[2]}, {', '.join(lists)};",
        )
    )
    d = np.zeros_like(kept[2])
    outcome = launch(ptx, "multiplies", 1, 32, [*kept, d])
    return outcome, d.reshape(8, 4, -1, 2).transpose(2, 0, 1, 3).reshape(c.shape)


def operands(form: str) -> tuple[Matrix, Matrix, Matrix]:
    rows, _, depth = form.split(".")[0][1:].partition("n8k")
    (m, k), random = (int(rows), int(depth)), np.random.default_rng(3)
    kinds = [kind for kind in form.split(".") if kind in BITS]
    if kinds[0] == "f64":
        a, b, c = (random.standard_normal(size) for size in ((m, k), (8, k), (m, 8)))
        return a, b, c
    least = [-(1 << BITS[kind] - 1) if kind[0] == "s" else 0 for kind in kinds]
    a, b = (
        random.integers(low, low + (1 << BITS[kind]), (size, k))
        for low, kind, size in zip(least, kinds, (m, 8), strict=True)
    )
    return a, b, random.choice([INT.min, INT.max, 7], (m, 8)).astype(np.int32)


def exact(form: str, a: Matrix, b: Matrix, c: Matrix) -> Matrix:
    """D. Doubles are summed by fused multiply-adds in the order of K."""
    if "xor" in form:
        return c + (a[:, None] != b[None]).sum(2)
    if "f64" not in form:
        total = c + a @ b.T
        return total.clip(INT.min, INT.max) if "satfinite" in form else total
    d = c.copy()
    for (row, column), k in product(np.ndindex(c.shape), range(a.shape[1])):
        fused = Fraction(a[row, k]) * Fraction(b[column, k]) + Fraction(d[row, column])
        d[row, column] = rounded(fused, form.split(".")[3])
    return d


def rounded(value: Fraction, mode: str) -> float:
    near = float(value)
    toward = {"rm": -math.inf, "rp": math.inf, "rz": 0.0}.get(mode, near)
    beyond = value < near if toward < near else value > near
    return math.nextafter(near, toward) if beyond else near


@pytest.mark.parametrize("form", FORMS)
def test_products(form: str, tmp_path: Path) -> None:
    a, b, c = operands(form)
    outcome, d = multiply(form, a, b, c, tmp_path)
    assert [each.kind for each in outcome.findings] == [FindingKind.TENSOR_CORE]
    np.testing.assert_array_equal(d, exact(form, a, b, c).astype(d.dtype))


@pytest.mark.parametrize("form", [FORMS[10], FORMS[30]])
def test_an_undefined_row_spoils_its_own_row_alone(form: str, tmp_path: Path) -> None:
    a, b, c = operands(form)
    outcome, d = multiply(form, a, b, c, tmp_path, guard="@%p")
    (found,) = [each for each in outcome.findings if each.kind is FindingKind.UNINITIALIZED_READ]
    assert found.thread == (28, 0, 0)  # rows 7 and 15
    right = exact(form, a, b, c).astype(d.dtype) == d
    assert right[[*range(7), *range(8, 15)]].all()


# --- wmma

SHAPES = {
    **{"f64_rc": (8, 8, 4), "f64_cr": (8, 8, 4), "s8_tall": (32, 8, 16), "u8_wide": (8, 32, 16)},
    **dict.fromkeys(("s8_rc", "s8_cr", "u8_cr"), (16, 16, 16)),
    **{"s4_rc": (8, 8, 32), "u4_rc": (8, 8, 32), "b1_rc": (8, 8, 128)},
}
BY_ROWS = {"rc": (True, False), "cr": (False, True), "tall": (True, False), "wide": (True, True)}


def in_memory(matrix: Matrix, kind: str, by_rows: bool) -> Matrix:
    """The matrix as a kernel finds it: elements of less than a byte fill words from the low end."""
    flat = (matrix if by_rows else matrix.T).reshape(-1)
    bits = BITS[kind]
    if bits >= 8:
        return flat.astype({"f64": np.float64, "s8": np.int8, "u8": np.uint8}[kind])
    parts = (flat.reshape(-1, 32 // bits) & (1 << bits) - 1).astype(np.uint64)
    return (parts << np.arange(0, 32, bits, dtype=np.uint64)).sum(1).astype(np.uint32)


@pytest.mark.parametrize("kernel", SHAPES)
def test_products_by_wmma(kernel: str) -> None:
    (m, n, k), (kind, layouts) = SHAPES[kernel], kernel.split("_")
    random = np.random.default_rng(4)
    if kind == "f64":
        a, b, c = (random.standard_normal(size) for size in ((m, k), (k, n), (m, n)))
    else:
        least = -(1 << BITS[kind] - 1) if kind[0] == "s" else 0
        a, b = (
            random.integers(least, least + (1 << BITS[kind]), size) for size in ((m, k), (k, n))
        )
        c = random.choice([INT.min, INT.max, 7], (m, n)).astype(np.int32)
    _, folder = compiled(kernels("wmma.cu"), name="wmma")
    rows_a, rows_b = BY_ROWS[layouts]
    given = in_memory(a, kind, rows_a), in_memory(b, kind, rows_b), c, np.zeros_like(c).T.copy()
    outcome = launch(folder / "wmma.ptx", kernel, 1, 32, given)
    assert {each.kind for each in outcome.findings} == {FindingKind.TENSOR_CORE}
    form = {"f64": "m8n8k4.f64.f64.rn", "b1": "xor"}.get(kind, "satfinite")
    np.testing.assert_array_equal(given[3].T, exact(form, a, b.T, c).astype(c.dtype))
