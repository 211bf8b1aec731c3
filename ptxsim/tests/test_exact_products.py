"""mma of doubles, integers and bits, against numpy and exact fractions.

Fragments lie as the PTX ISA's figures show: element (row, k) of A, and (column, k) of B, in lane
``row % 8 · 4 + k / each % 4``, where a register holds ``each`` elements.
"""

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from harness import engine, kernels
from ptxsim.findings.finding import Kind
from ptxsim.launching import launch
from ptxsim.outcome import SimOutcome

BITS = {"f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}
INTEGERS = [
    *(f"{s}.s32.{t}" for s in ("m8n8k16", "m16n8k16", "m16n8k32") for t in ("s8.u8", "u8.s8")),
    *(f"{s}.s32.{t}" for s in ("m8n8k32", "m16n8k32", "m16n8k64") for t in ("s4.u4", "u4.s4")),
    *(f"{s}.s32.b1.b1" for s in ("m8n8k128", "m16n8k128", "m16n8k256")),
]
Matrix = NDArray[np.int64] | NDArray[np.float64]


def fragments(matrix: Matrix, bits: int) -> NDArray[np.generic]:
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


def sums(matrix: Matrix) -> NDArray[np.generic]:
    """The registers of every lane that hold C or D, which ``reshape`` makes of a matrix."""
    return matrix.reshape(-1, 8, 4, 2).transpose(1, 2, 0, 3).reshape(32, -1).copy()


def multiply(
    form: str, a: Matrix, b: Matrix, c: NDArray[np.generic], folder: Path, guard: str = ""
) -> tuple[SimOutcome, NDArray[np.generic]]:
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
    outcome = launch(ptx, "multiplies", 1, 32, [*kept, d], engine=engine())
    return outcome, d.reshape(8, 4, -1, 2).transpose(2, 0, 1, 3).reshape(c.shape)


def shape_of(form: str) -> tuple[int, int]:
    rows, _, depth = form.split(".")[0][1:].partition("n8k")
    return int(rows), int(depth)


def rounded(exact: Fraction, mode: str) -> float:
    near = float(exact)
    too_high, too_low = Fraction(near) > exact, Fraction(near) < exact
    if (too_high and mode == "rm") or (too_low and mode == "rp"):
        return math.nextafter(near, math.inf if mode == "rp" else -math.inf)
    if mode == "rz" and abs(Fraction(near)) > abs(exact):
        return math.nextafter(near, 0)
    return near


@pytest.mark.parametrize("mode", ["", "rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("shape", ["m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"])
def test_doubles_are_summed_by_fused_multiply_adds(shape: str, mode: str, tmp_path: Path) -> None:
    (m, k), random = shape_of(shape), np.random.default_rng(3)
    a, b, c = (random.standard_normal(size) for size in ((m, k), (8, k), (m, 8)))
    form = f"{shape}.row.col{'.' * bool(mode)}{mode}.f64.f64.f64.f64"
    outcome, d = multiply(form, a, b, c, tmp_path)
    assert [each.kind for each in outcome.findings] == [Kind.TENSOR_CORE]
    for row, column in np.ndindex(m, 8):
        want = float(c[row, column])
        for x, y in zip(a[row], b[column], strict=True):
            want = rounded(Fraction(x) * Fraction(y) + Fraction(want), mode)
        assert d[row, column] == want


@pytest.mark.parametrize("saturates", [False, True])
@pytest.mark.parametrize("form", INTEGERS)
def test_integers_wrap_or_saturate(form: str, saturates: bool, tmp_path: Path) -> None:
    shape, _, left, right = form.split(".")
    (m, k), random = shape_of(shape), np.random.default_rng(4)

    def matrix(rows: int, kind: str) -> NDArray[np.int64]:
        low, high = (-(1 << BITS[kind] - 1) if kind[0] == "s" else 0), 1 << BITS[kind]
        return random.integers(low, low + high, (rows, k))

    a, b = matrix(m, left), matrix(8, right)
    limits = np.iinfo(np.int32)
    c = random.choice([limits.min, limits.max, 7], (m, 8)).astype(np.int32)
    product = a @ b.T
    if left == "b1":
        form = f"{shape}.row.col.s32.b1.b1.s32.{'xor' if saturates else 'and'}.popc"
        product = (a[:, None] != b[None]).sum(2) if saturates else product
    else:
        form = f"{shape}.row.col{'.satfinite' * saturates}.s32.{left}.{right}.s32"
    want = c + product
    if saturates and left != "b1":
        want = want.clip(limits.min, limits.max)
    outcome, d = multiply(form, a, b, c, tmp_path)
    assert [each.kind for each in outcome.findings] == [Kind.TENSOR_CORE]
    np.testing.assert_array_equal(d, want.astype(np.int32))


@pytest.mark.parametrize(
    "types", ["m16n8k8.row.col.f64.f64.f64.f64", "m16n8k32.row.col.s32.s8.s8.s32"]
)
def test_an_undefined_row_spoils_its_own_row_alone(types: str, tmp_path: Path) -> None:
    m, k = shape_of(types)
    dtype = np.float64 if "f64" in types else np.int32
    a, b, c = np.ones((m, k), dtype), np.ones((8, k), dtype), np.zeros((m, 8), dtype)
    outcome, d = multiply(types, a, b, c, tmp_path, guard="@%p")
    (found,) = [each for each in outcome.findings if each.kind is Kind.UNINITIALIZED_READ]
    assert found.thread == (28, 0, 0)  # rows 7 and 15
    assert (d[[*range(7), *range(8, 15)]] == k).all()
