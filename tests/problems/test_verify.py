"""FP32 in any order passes at every K; everything less exact, and every slip, fails."""

import itertools
import math
from typing import Any, get_args

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.verification import errors, numbered_keys
from benchmarks.verification_16_bits import FORMATS, SUMS_IN_FP16
from grader.base.finding import Kind
from grader.problems import comparison as verify
from grader.problems.comparison import Differing, OutputSample, differing, take
from grader.problems.gemm.gemm import REFERENCE_MARGIN, Gemm, Options
from grader.problems.gemm.products import Doubles
from grader.problems.inputs import Floats, Places, fresh_key, make_inputs, values
from grader.problems.operands import Operand, Order
from grader.problems.problem import Problem
from grader.problems.reduction.reduction import UNIT, Reduction
from grader.problems.scan.scan import Scan
from ptxsim.plan import Size
from tests.support.product import GEMM

KS = (1, 2, 3, 17, 64, 256, 1024, 4096, 16384)


class Product:
    """Inputs by numbered keys, their matrices, and the exact product."""

    def __init__(self, m: int, n: int, k: int, seed: int) -> None:
        self.size = Size.of(m=m, n=n, k=k)
        self.operands = GEMM.operands(self.size)
        self.inputs = make_inputs(self.operands, numbered_keys(seed))
        self.left, self.right = self.matrices(*self.inputs)
        self.exact = self.left.astype(np.float64) @ self.right.astype(np.float64)

    def matrices(self, a: Floats, b: Floats) -> tuple[Floats, Floats]:
        return self.operands[0].logical(a), self.operands[1].logical(b)

    def check(self, c: Doubles | Floats) -> verify.OutputCheck:
        """c: a matrix, or what the memory of C holds."""
        flat = c if c.ndim == 1 else np.ascontiguousarray(c.T, dtype=np.float32).reshape(-1)
        return verify.check(GEMM, self.size, self.inputs, (flat,))

    def rounded(self, bits: int, *, nearest: bool) -> Doubles:
        """The exact product of inputs that have mantissas of so many bits."""
        a, b = self.matrices(*(cut(each, bits, nearest=nearest) for each in self.inputs))
        return a.astype(np.float64) @ b.astype(np.float64)


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
    made = Product(96, 96, k, seed=k)
    left, right = made.left, made.right
    for c in (
        in_order(left, right, fused=True),
        in_order(left[:, ::-1], right[::-1], fused=False),
        split(left, right, parts=4),
        left @ right,
    ):
        error = made.check(c).error
        assert error.wrong == 0
        assert error.max is not None and error.max <= 0.6 * error.tolerance


@pytest.mark.sampled
@pytest.mark.parametrize("k", [*KS[:-1], pytest.param(KS[-1], marks=pytest.mark.nightly)])
@pytest.mark.parametrize("bits", [10, 7], ids=["tf32-fp16", "bf16"])
@pytest.mark.parametrize("nearest", [True, False], ids=["rounded", "cut"])
def test_rounded_inputs_fail_even_with_exact_sums(k: int, bits: int, nearest: bool) -> None:
    made = Product(64, 64, k, seed=k)
    assert made.check(made.rounded(bits, nearest=nearest)).error.wrong > 0.85 * 64 * 64


@given(seed=st.integers(1, 2**63), nearest=st.booleans())
@settings(max_examples=200, deadline=None)
def test_tf32_fails_even_on_a_single_product(seed: int, nearest: bool) -> None:
    made = Product(1, 1, 1, seed)
    assert made.check(made.rounded(10, nearest=nearest)).message


@pytest.mark.parametrize("k", KS[1:])
def test_one_missing_term_fails_wherever_it_is(k: int) -> None:
    made = Product(16, 16, k, seed=k)
    for p in (0, k // 2, k - 1):
        c = made.exact - np.outer(made.left[:, p], made.right[p])
        assert made.check(c).error.wrong == 16 * 16


@pytest.mark.parametrize("extents", [(2, 3, 5), (64, 64, 64), (17, 130, 67)], ids=str)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_one_wrong_element_is_found_and_located(
    extents: tuple[int, int, int], data: st.DataObject
) -> None:
    m, n, _ = extents
    row, col = data.draw(st.integers(0, m - 1)), data.draw(st.integers(0, n - 1))
    value = data.draw(st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1000.0]))
    made = Product(*extents, seed=1)
    c = made.exact.copy()
    c[row, col] = value
    error = made.check(c).error
    mismatch = error.first_mismatch
    assert error.wrong == 1 and mismatch is not None
    assert mismatch.index == (row, col)
    assert mismatch.got == (value if math.isfinite(value) else None)
    assert mismatch.got_text == f"{value:.7g}"
    assert mismatch.want == pytest.approx(made.exact[row, col])
    edge = verify.tile_edge((m, n))
    assert error.tile_map[row // edge][col // edge] in "+#"
    untouched = sum(set(line) == {"."} for line in error.tile_map)
    assert untouched == len(error.tile_map) - 1


def test_unwritten_elements_are_counted_as_such() -> None:
    made = Product(5, 4, 3, seed=2)
    c = verify.poisoned(made.operands[2])
    assert np.isnan(c).all()
    words = "20 of 20 elements are wrong, still NaN: never written"
    assert words in str(made.check(c).message)
    c[:15] = made.exact.T.reshape(-1)[:15]
    found = made.check(c)
    assert str(found.message).startswith("5 of 20 elements are wrong, still NaN: never written, or")
    assert found.error.tile_map == ("...#",) * 5
    assert found.error.max is None and found.error.rms is None


def test_the_cause_of_a_wrong_product_is_named_if_it_is_known() -> None:
    made = Product(9, 10, 67, seed=4)
    assert "C is all zeros" in str(made.check(np.zeros((9, 10))).message)
    rubbish = made.check(np.random.default_rng(0).normal(size=(9, 10)))
    assert str(rubbish.message) == "90 of 90 elements are wrong"


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


# --- elements that the host computes again


LAYOUTS = [
    dict(zip("ABC", each, strict=True)) for each in itertools.product(get_args(Order), repeat=3)
]
ALL = [
    *({"layout": layout} for layout in LAYOUTS),
    *({**form, "layout": layout} for form in (*FORMATS, SUMS_IN_FP16) for layout in LAYOUTS[1::3]),
]
SIZE = Size.of(m=21, n=70, k=33)


class FromKey:
    """An input that NumPy makes as a whole."""

    def __init__(self, key: bytes, operand: Operand) -> None:
        self._all = values(key, operand.count, operand.values)

    def at(self, places: Places) -> Floats:
        return self._all[places]


class Ran:
    """A right program's outputs, on inputs of its own."""

    def __init__(self, problem: Problem, size: Size) -> None:
        self.problem, self.size = problem, size
        operands = problem.operands(size)
        given = [each for each in operands if each.role == "in"]
        keys = [fresh_key() for _ in given]
        self.sources = [FromKey(key, each) for key, each in zip(keys, given, strict=True)]
        (self.expected,) = problem.reference(np, size, make_inputs(operands, keys))
        self.target = operands[-1]

    def stored(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """As the output's memory holds them, rounded once."""
        flat = np.ascontiguousarray(self.target.flat(values)).astype(np.float32)
        if self.target.element.upper:  # to the nearest BF16
            flat = ((flat.view(np.uint32) + 0x8000) & 0xFFFF0000).view(np.float32)
        return self.target.element.packed(flat)

    def sample(self, memory: NDArray[Any]) -> OutputSample:
        return take(self.target, lambda first, end: memory[first:end])

    def seen(self, *samples: OutputSample) -> Differing | None:
        return differing(self.problem, self.size, self.sources, samples)


def ran(options: dict[str, Any], size: Size = SIZE) -> Ran:
    return Ran(Gemm(msgspec.convert(options, Options)), size)


@pytest.mark.parametrize("options", ALL, ids=lambda each: " ".join(map(str, each.values())))
def test_a_wrong_element_among_the_sampled_is_found(options: dict[str, Any]) -> None:
    run = ran(options)
    sample = run.sample(run.stored(run.expected.want))
    assert sample.got.size == 64 and run.seen(sample) is None
    limit = run.problem.tolerance(SIZE) * run.expected.scale
    too_large = run.stored(run.expected.want + (REFERENCE_MARGIN + 2) * limit)
    for at in (0, 63, 27):
        place = int(sample.places[at])
        for bad in (run.target.element.packed(np.array([np.nan], np.float32))[0], too_large[place]):
            wrong = sample.got.copy()
            wrong[at] = bad
            found = run.seen(msgspec.structs.replace(sample, got=wrong))
            assert found is not None and found.error.wrong == 1
            first = found.error.first_mismatch
            assert first is not None and first.index == run.target.index(place)
            assert first.want == run.expected.want[first.index]
            assert found.finding.kind is Kind.CHECKS_DIFFER
            assert first.element in str(found.finding.message)


def test_what_the_gpu_lets_pass_is_never_held_against_a_program() -> None:
    """The GPU compares with a reference that may itself be off by the tolerance."""
    run = ran({})
    limit = run.problem.tolerance(SIZE) * run.expected.scale
    for factor, right in ((REFERENCE_MARGIN + 0.9, True), (REFERENCE_MARGIN + 1.1, False)):
        found = run.seen(run.sample(run.stored(run.expected.want + factor * limit)))
        assert (found is None) is right


def test_products_of_a_lower_precision_are_found_at_any_depth() -> None:
    for k in (1, 64, 4096):
        run = ran({}, Size.of(m=9, n=9, k=k))
        coarse = [
            source.at(np.arange(9 * k)).view(np.uint32) & ~np.uint32(0x1FFF)
            for source in run.sources
        ]
        a, b, _ = run.problem.operands(run.size)
        wide = [x.wide(each.view(np.float32)) for x, each in zip((a, b), coarse, strict=True)]
        found = run.seen(run.sample(run.stored(wide[0] @ wide[1])))
        assert found is not None and found.error.wrong > 32


def test_places_are_the_corners_and_others_that_nobody_knows() -> None:
    run = ran({}, Size.of(m=3000, n=2000, k=1))
    memory = np.arange(3000 * 2000)
    samples = [run.sample(memory) for _ in range(3)]
    for sample in samples:
        assert (sample.got == sample.places).all() and len(set(sample.places.tolist())) == 64
        assert {0, 2999, 3000 * 1999, 3000 * 2000 - 1} <= set(sample.places.tolist())
    assert len({tuple(sample.places.tolist()) for sample in samples}) == 3


@pytest.mark.parametrize("extents", [(1, 1, 1), (1, 9, 2), (300, 1, 2), (3, 200, 1)], ids=str)
def test_small_outputs_have_samples_too(extents: tuple[int, int, int]) -> None:
    for layout in (LAYOUTS[0], LAYOUTS[-1]):
        run = ran({"layout": layout}, Size.of(**dict(zip("mnk", extents, strict=True))))
        sample = run.sample(run.stored(run.expected.want))
        assert len(set(sample.places.tolist())) == sample.got.size
        assert sample.got.size >= min(run.target.count, 60) and run.seen(sample) is None


@pytest.mark.parametrize("n", [1, 100_003])
def test_a_sum_is_added_up_again(n: int) -> None:
    run = Ran(Reduction(), Size.of(n=n))
    memory = run.stored(run.expected.want)
    assert run.seen(run.sample(memory)) is None
    step = np.float32(2 * run.problem.tolerance(run.size) * UNIT)
    for wrong in (memory + step, memory * np.nan):
        found = run.seen(run.sample(wrong))
        assert found is not None
        assert str(found.message) == "1 of 1 elements that the host computed again are wrong"


@pytest.mark.parametrize("n", [1, 100_003])
def test_prefix_sums_are_added_up_again(n: int) -> None:
    run = Ran(Scan(), Size.of(n=n))
    memory = run.stored(run.expected.want)
    assert run.seen(run.sample(memory)) is None
    for wrong in (memory + 1, np.roll(memory, 1) + 1):
        found = run.seen(run.sample(wrong))
        assert found is not None and found.error.wrong == found.sampled


class Doubled(Reduction):
    """A problem that says nothing of how to compute a part of its output."""

    recomputed = Problem.recomputed

    def operands(self, size: Size) -> tuple[Operand, ...]:
        given, out = super().operands(size)
        return given, msgspec.structs.replace(out, shape=given.shape)

    def reference(self, xp: Any, size: Size, inputs: Any) -> Any:
        (total,) = super().reference(xp, size, inputs)
        return (msgspec.structs.replace(total, want=2.0 * inputs[0].astype(np.float64)),)


def test_a_problem_is_computed_again_as_a_whole_while_that_takes_no_time() -> None:
    run = Ran(Doubled(), Size.of(n=1000))
    sample = run.sample(run.stored(run.expected.want))
    assert sample.got.size == 64 and run.seen(sample) is None
    assert run.seen(msgspec.structs.replace(sample, got=sample.got[::-1])) is not None
    assert Doubled().recomputed(Size.of(n=1 << 23), run.sources, [sample.places]) is None
