"""FP32 in any order passes at every K; everything less exact, and every slip, fails."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.verification import errors, numbered_keys
from grader.model import Size
from grader.problems import comparison as verify
from grader.problems.gemm.gemm import Doubles
from grader.problems.inputs import Floats, make_inputs
from tests.support.product import GEMM

KS = (1, 2, 3, 17, 64, 256, 1024, 4096, 16384)
LAB_SIZES = [Size.of(m=m, n=n, k=k) for m, n, k in [(2, 3, 5), (64, 64, 64), (17, 130, 67)]]


def matrices(size: Size, a: Floats, b: Floats) -> tuple[Floats, Floats]:
    return a.reshape(size["m"], size["k"]), b.reshape(size["n"], size["k"]).T


def inputs(size: Size, keys: tuple[bytes, bytes]) -> tuple[Floats, Floats]:
    a, b = make_inputs(GEMM.operands(size), keys)
    return a, b


def check(size: Size, a: Floats, b: Floats, c: Floats) -> verify.Check:
    return verify.check(GEMM, size, (a, b), (c,))


def column_major(c: Doubles | Floats) -> Floats:
    return np.ascontiguousarray(c.T, dtype=np.float32).reshape(-1)


def exact(size: Size, a: Floats, b: Floats) -> Doubles:
    wide_a, wide_b = matrices(size, a.astype(np.float64), b.astype(np.float64))
    return wide_a @ wide_b  # type: ignore[return-value]


def cut(values: Floats, bits: int, *, nearest: bool) -> Floats:
    """Mantissas of ``bits`` bits, rounded to nearest or cut off."""
    raw = values.view(np.uint32).astype(np.uint64)
    if nearest:
        raw = raw + (1 << (22 - bits))
    return (raw >> (23 - bits) << (23 - bits)).astype(np.uint32).view(np.float32)


def in_order(a: Floats, b: Floats, fused: bool) -> Floats:
    """One accumulator per element, K terms one after the other."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for p in range(a.shape[1]):
        if fused:
            product = a[:, p : p + 1].astype(np.float64) * b[p : p + 1]
            total = (product + total).astype(np.float32)
        else:
            total = total + a[:, p : p + 1] * b[p : p + 1]
    return total


def split(a: Floats, b: Floats, parts: int) -> Floats:
    """Split-K: strided partial sums, added up at the end."""
    partial = [in_order(a[:, i::parts], b[i::parts], True) for i in range(parts)]
    total: Floats = np.sum(partial, axis=0, dtype=np.float32)
    return total


@pytest.mark.parametrize("k", [*KS[:-1], pytest.param(KS[-1], marks=pytest.mark.slow)])
def test_fp32_passes_in_any_order_with_a_margin(k: int) -> None:
    size = Size.of(m=96, n=96, k=k)
    a, b = inputs(size, numbered_keys(k))
    left, right = matrices(size, a, b)
    for c in (
        in_order(left, right, fused=True),
        in_order(left[:, ::-1], right[::-1], fused=False),
        split(left, right, parts=4),
        left @ right,
    ):
        error = check(size, a, b, column_major(c)).error
        assert error.wrong == 0
        assert error.max is not None and error.max <= 0.6 * error.tolerance


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("bits", [10, 7], ids=["tf32-fp16", "bf16"])
@pytest.mark.parametrize("nearest", [True, False], ids=["rounded", "cut"])
def test_rounded_inputs_fail_even_with_exact_sums(k: int, bits: int, nearest: bool) -> None:
    size = Size.of(m=64, n=64, k=k)
    a, b = inputs(size, numbered_keys(k))
    c = exact(size, cut(a, bits, nearest=nearest), cut(b, bits, nearest=nearest))
    assert check(size, a, b, column_major(c)).error.wrong > 0.85 * 64 * 64


@given(seed=st.integers(1, 2**63), nearest=st.booleans())
@settings(max_examples=200, deadline=None)
def test_tf32_fails_even_on_a_single_product(seed: int, nearest: bool) -> None:
    size = Size.of(m=1, n=1, k=1)
    a, b = inputs(size, numbered_keys(seed))
    c = exact(size, cut(a, 10, nearest=nearest), cut(b, 10, nearest=nearest))
    assert not check(size, a, b, column_major(c)).right


@pytest.mark.parametrize("k", KS[1:])
def test_one_missing_term_fails_wherever_it_is(k: int) -> None:
    size = Size.of(m=16, n=16, k=k)
    a, b = inputs(size, numbered_keys(k))
    left, right = matrices(size, a, b)
    for p in (0, k // 2, k - 1):
        c = exact(size, a, b) - np.outer(left[:, p], right[p])
        assert check(size, a, b, column_major(c)).error.wrong == 16 * 16


@pytest.mark.parametrize("size", LAB_SIZES, ids=str)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_one_wrong_element_is_found_and_located(size: Size, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, size["m"] - 1))
    col = data.draw(st.integers(0, size["n"] - 1))
    value = data.draw(st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1000.0]))
    a, b = inputs(size, numbered_keys(1))
    c = column_major(exact(size, a, b))
    c[row + col * size["m"]] = value
    found = check(size, a, b, c)
    mismatch = found.error.first_mismatch
    assert found.error.wrong == 1
    assert mismatch is not None
    assert mismatch.index == (row, col)
    assert mismatch.got == (value if math.isfinite(value) else None)
    assert mismatch.got_text == f"{value:.7g}"
    assert mismatch.want == pytest.approx(exact(size, a, b)[row, col])
    edge = verify.tile_edge(size.extents[:2])
    assert found.error.tile_map[row // edge][col // edge] in "+#"
    assert sum(line.count(".") == len(line) for line in found.error.tile_map) == (
        len(found.error.tile_map) - 1
    )


def test_unwritten_elements_are_counted_as_such() -> None:
    size = Size.of(m=5, n=4, k=3)
    a, b = inputs(size, numbered_keys(2))
    c = verify.poisoned(GEMM.operands(size)[2])
    assert np.isnan(c).all()
    assert "20 of 20 elements are wrong, still NaN: never written" in str(
        check(size, a, b, c).message
    )
    c[:15] = column_major(exact(size, a, b))[:15]
    found = check(size, a, b, c)
    assert str(found.message).startswith("5 of 20 elements are wrong, still NaN: never written, or")
    assert found.error.tile_map == ("...#",) * 5
    assert found.error.max is None and found.error.rms is None


def wrong_layouts(size: Size, a: Floats, b: Floats) -> dict[str, Floats]:
    m, n, k = size["m"], size["n"], size["k"]
    left, right = matrices(size, a, b)
    other_left, other_right = a.reshape(k, m).T, b.reshape(k, n)
    return {
        "C came out transposed: C is column-major, C[i + j*m]": (left @ right).reshape(-1),
        "A was read as if column-major": column_major(other_left @ right),
        "B was read as if row-major": column_major(left @ other_right),
        "A[i*k + p]; B was read": column_major(other_left @ other_right),
        "A[i*k + p]; C came out transposed": (other_left @ right).reshape(-1),
    }


@pytest.mark.parametrize("size", LAB_SIZES, ids=str)
def test_a_wrong_layout_is_named(size: Size) -> None:
    a, b = inputs(size, numbered_keys(3))
    for words, c in wrong_layouts(size, a, b).items():
        found = check(size, a, b, np.ascontiguousarray(c))
        assert not found.right
        assert words in str(found.message)


def test_a_dropped_tail_of_k_is_named() -> None:
    size = Size.of(m=9, n=10, k=67)
    a, b = inputs(size, numbered_keys(4))
    left, right = matrices(size, a, b)
    c = column_major(left[:, :64] @ right[:64])
    assert "the last 3 of K = 67 terms are missing" in str(check(size, a, b, c).message)
    assert "C is all zeros" in str(check(size, a, b, np.zeros_like(c)).message)


def test_random_rubbish_gets_no_cause() -> None:
    size = Size.of(m=9, n=10, k=67)
    a, b = inputs(size, numbered_keys(5))
    c = np.random.default_rng(0).normal(size=90).astype(np.float32)
    assert str(check(size, a, b, c).message) == "90 of 90 elements are wrong"


@given(m=st.integers(1, 3000), n=st.integers(1, 3000))
@settings(max_examples=60, deadline=None)
def test_a_tile_map_fits_the_terminal(m: int, n: int) -> None:
    wrong = np.zeros((m, n), bool)
    wrong[-1, :] = True
    rows = verify.tile_map(wrong)
    assert len(rows) <= 32 and len(rows[0]) <= 64
    edge = verify.tile_edge((m, n))
    assert len(rows) == -(-m // edge) and len(rows[0]) == -(-n // edge)
    assert set("".join(rows[:-1])) <= {"."}
    assert set(rows[-1]) == ({"#"} if m % edge == 1 or edge == 1 else {"+"})


@pytest.mark.parametrize("k", [1, 2, 3, 17, 129, 1024, 8192])
def test_the_documented_errors(k: int) -> None:
    """The table of docs/verification.md, on other inputs: 1 is the tolerance, 2 what a GPU uses."""
    found = errors(k, seed=1000 + k)
    assert found["FP32"] < 0.6
    for name in ("TF32", "FP16", "BF16"):
        assert found[f"{name}, share wrong"] > 0.8
    assert found["one K term less"] > 100
    assert found["one element of another row"] > 1000
