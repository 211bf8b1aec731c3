"""The generator of inputs: ChaCha as RFC 8439 has it, and values as the tolerance needs them."""

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

import harness
from benchmarks.verification_16_bits import FORMATS, SUMS_IN_FP16, Case, case, errors, promoted
from grader.base.errors import LabError
from grader.labs.lab import find_lab, load_lab
from grader.problems.comparison import check, poisoned
from grader.problems.gemm.cublas import types_for
from grader.problems.gemm.gemm import CHECKS as PRODUCT_CHECKS
from grader.problems.gemm.gemm import Gemm, Options
from grader.problems.gemm.layout import Layout
from grader.problems.gemm.products import product
from grader.problems.inputs import (
    KEY_BYTES,
    Floats,
    chacha_blocks,
    fresh_key,
    key_stream,
    make_inputs,
    values,
)
from grader.problems.operands import Course, Operand, Steps, Whole
from grader.run import gpu
from grader.run.gpu.filling import source_of
from grader.run.gpu.host_check import HostInput
from ptxsim.plan import Size
from tests.support.kinds import KINDS
from tests.support.product import GEMM

CHECKS = Path(gpu.__file__).parent / "checks.cu"
KEY = bytes(range(KEY_BYTES))
MANY = 1 << 18
ENDS = ("rows", "ragged", "gaps", "power")  # where rows begin: the last element is the bound


@pytest.fixture(scope="module")
def many() -> Floats:
    return values(KEY, MANY)


def test_the_block_function_is_that_of_rfc_8439() -> None:
    """The vector of section 2.3.2, and the key stream of section 2.4.2."""
    (block,) = chacha_blocks(KEY, 1, 1, bytes.fromhex("000000090000004a00000000"), 20)
    assert block.astype("<u4").tobytes().hex() == (
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )
    blocks = chacha_blocks(KEY, 1, 2, bytes.fromhex("000000000000004a00000000"), 20)
    first, second = (each.astype("<u4").tobytes().hex() for each in blocks)
    assert first.startswith("224f51f3401bd9e12fde276fb8631ded8c131f82")
    assert second.startswith("69a6749f3f630f4122cafe28ec4dc47e26d4346d")


def test_twelve_rounds_are_those_that_others_published() -> None:
    """draft-strombergson-chacha-test-vectors-01, TC1: a key and a nonce of zeros, 12 rounds."""
    (block,) = chacha_blocks(bytes(KEY_BYTES), 0, 1)
    assert block.astype("<u4").tobytes().hex().startswith("9bf49a6a0755f953811fce125f2683d5")


def test_the_stream_is_the_blocks_one_after_the_other() -> None:
    count = 5000 * 16 + 3
    stream = key_stream(KEY, count)
    assert stream.shape == (count,)
    for block in (0, 1, 2047, 2048, 4999, 5000):
        expected = chacha_blocks(KEY, block, 1)[0]
        assert (stream[16 * block : 16 * block + 16] == expected[: count - 16 * block]).all()


def test_every_key_makes_its_own_inputs() -> None:
    size = Size.of(m=100, n=50, k=30)
    keys = fresh_key(), fresh_key()
    a, b = make_inputs(GEMM.operands(size), keys)
    again, _ = make_inputs(GEMM.operands(size), keys)
    other, _ = make_inputs(GEMM.operands(size))
    assert (a == again).all()
    assert a.dtype == b.dtype == np.float32
    assert a.size == 3000 and b.size == 1500
    # Words are compared, not values: of those a few agree by chance.
    assert not (key_stream(keys[0], 16) == key_stream(keys[1], 16)).any()
    assert (a == other).mean() < 0.01


def test_magnitudes_are_spread_evenly_and_signs_are_random(many: Floats) -> None:
    magnitudes = np.abs(many)
    assert magnitudes.min() >= 0.5 and magnitudes.max() < 1.5
    counts, _ = np.histogram(magnitudes, bins=64, range=(0.5, 1.5))
    expected = MANY / 64
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)
    assert abs(many.mean()) < 5 / np.sqrt(MANY)
    assert abs((many > 0).mean() - 0.5) < 2.5 / np.sqrt(MANY)
    assert np.square(many, dtype=np.float64).mean() == pytest.approx(13 / 12, rel=0.005)


def test_neighbours_are_not_related(many: Floats) -> None:
    """What sums of random-sign products rest on, at the distances that rows and blocks have."""
    wide = many.astype(np.float64)
    for apart in (1, 2, 4, 16, 17, 64, 256, 1000, 1024):
        product = wide[:-apart] * wide[apart:]
        assert abs(product.mean()) < 5 * 13 / 12 / np.sqrt(product.size), apart


def test_every_value_is_far_from_its_neighbours_in_tf32(many: Floats) -> None:
    low = many.view(np.uint32) & 0x1FFF
    assert low.min() == 0x1001 and low.max() == 0x1800
    assert np.unique(low).size == 0x800


INPUTS = [
    Gemm(msgspec.convert(options, Options)).operands(Size.of(m=10_007, n=1, k=1))[0]
    for options in ({}, {"type": "f16"}, {"type": "bf16"})
]
STEPS = [Steps(bits=4, least=3, exponent=-5), Steps(bits=0, least=1)]


@pytest.mark.sampled
@pytest.mark.parametrize("count", [1, 4096, 10_007])
@pytest.mark.parametrize(
    "operand",
    [
        *INPUTS,
        *(msgspec.structs.replace(INPUTS[0], values=kind) for kind in STEPS),
        *(
            pytest.param(msgspec.structs.replace(INPUTS[0], element=own, values=kind), id=name)
            for name, (own, kind) in KINDS.items()
        ),
    ],
)
def test_the_gpu_makes_the_same_bits(count: int, operand: Operand) -> None:
    """The GPU's own kernel, simulated; tests/whole/gpu_checks.py does the same on a GPU."""
    operand = msgspec.structs.replace(operand, shape=(count,))
    out = np.zeros(count + 8, operand.element.dtype)
    key = bytes(range(100, 100 + KEY_BYTES))
    (expected,) = make_inputs([operand], [key])
    # fill's parameters: the array, its length, the key and a bound, in 64-bit words; the kind.
    arguments = source_of(key, operand.values, operand.element)
    scalars = np.frombuffer(b"".join(each.tobytes() for each in arguments), np.int32).tolist()
    if isinstance(steps := operand.values, Steps):
        magnitudes = np.abs(operand.wide(expected)) / 2.0**steps.exponent
        assert magnitudes.min() >= steps.least
        assert magnitudes.max() < steps.least + (1 << steps.bits)
    seen = harness.run(
        CHECKS.read_text(), [out], [count, 0, *scalars], (2, 1, 1), (256, 1, 1), kernel="fill"
    )
    assert not seen.stopped and not seen.findings, seen.findings
    assert (out[:count] == expected).all() and expected.dtype == out.dtype
    assert not out[count:].any()


@pytest.mark.parametrize("name", KINDS)
def test_the_host_makes_single_elements_alike(name: str) -> None:
    element, kind = KINDS[name]
    operand = Operand(name="in", role="in", shape=(5003,), element=element, values=kind)
    (whole,) = make_inputs([operand], [KEY])
    places = np.array([0, 17, 4096, 5002])
    found = element.packed(HostInput(KEY, operand).at(places))
    assert (found == whole[places]).all() and found.dtype == whole.dtype
    wide = whole.astype(np.float64) if not element.upper else element.wide(whole)
    numbers = wide * 2.0**-kind.exponent - kind.least
    assert numbers.min() >= 0 and numbers.max() < kind.below + (kind.course in ENDS)
    if kind.course in ENDS:
        assert numbers[0] == 0 and numbers[-1] == kind.below
    if kind.course not in ("random", "equal"):
        steps = np.diff(numbers) * (-1 if kind.course == "falling" else 1)
        assert (steps >= 0).all() and steps.any()
    if kind.often:
        few = (numbers >= kind.first) & (numbers < kind.first + kind.few)
        assert abs(few.mean() - kind.often / 256) < 0.02


def test_equal_keys_are_any_number_of_their_type() -> None:
    kind = Whole(below=1 << 32, course="equal")
    drawn = [values(bytes([each]) * KEY_BYTES, 3, kind) for each in range(8)]
    assert all((each == each[0]).all() for each in drawn)
    assert max(each[0] for each in drawn) >= 1 << 31


def test_rows_have_the_lengths_that_are_asked_for() -> None:
    def lengths(course: Course) -> NDArray[np.float64]:
        return np.diff(values(KEY, 1025, Whole(below=8192, course=course)))

    assert set(lengths("rows")) == {8}
    assert lengths("ragged").min() < 4 and 12 < lengths("ragged").max() <= 17
    assert (lengths("gaps") > 0).mean() == 1 / 4
    power = lengths("power")
    assert power[0] == power.max() > 100 * np.median(power)


# --- formats of 16 bits


DEPTHS = [1, 3, 16, 64, 512, *(pytest.param(k, marks=pytest.mark.slow) for k in (4096, 16384))]


@pytest.mark.parametrize("k", DEPTHS)
@pytest.mark.parametrize("options", FORMATS, ids=lambda each: each["type"])
def test_sums_in_fp32_pass_in_any_order_and_nothing_less(options: dict[str, str], k: int) -> None:
    found = {name: (worst, share) for name, worst, share in errors(case(options, k))}
    assert found["right"][0] <= 1
    least = 0.75 if options["type"] == "bf16" else 0.95
    assert found["one K term less"][1] > least and found["rows swapped"][1] > least
    assert k < 16 or found["K halves swapped"][1] > least
    assert found["FP8 inputs"][1] > 0.85 and found["INT8 inputs"][1] > 0.2
    # Rounded after every sixteen products, sums in FP16 are off as soon as there are two roundings.
    assert k <= 16 or found["sums in FP16"][1] > (0.02 if options["type"] == "bf16" else 0.2)
    assert k != 512 or found["FP16 for 64 terms"][1] > 0.03


@pytest.mark.parametrize("k", DEPTHS)
def test_sums_in_fp16_are_exact_in_any_order_and_miss_nothing(k: int) -> None:
    at = case(SUMS_IN_FP16, k)
    found = {name: (worst, share) for name, worst, share in errors(at)}
    assert found["right"][0] == found["sums in FP16"][0] == 0
    assert at.units(promoted(at.a, at.b)).max() == 0
    assert found["one K term less"][1] == 1 and found["rows swapped"][1] > 0.9


def test_partial_sums_of_whole_numbers_fit_fp16_at_every_k() -> None:
    problem = Gemm(Options(type="f16", accumulate="f16"))
    for k in (*range(1, 200), 1550, 10_000, 16384, 41_943, 65536):
        kind = problem.operands(Size.of(m=1, n=1, k=k))[0].values
        assert isinstance(kind, Steps) and kind.exponent == 0
        magnitudes = kind.least + np.arange(1 << kind.bits)
        deviations = 10 if k <= 41_943 else 8  # nothing is smaller than ones
        most = deviations * math.sqrt(k) * float(np.mean(magnitudes**2))
        assert min(most, k * int(magnitudes[-1]) ** 2) <= 2048


@pytest.mark.parametrize("options", FORMATS, ids=lambda each: each["type"])
def test_an_output_nobody_wrote_is_wrong_and_said_to_be(options: dict[str, str]) -> None:
    """The poison is a NaN in either half of a word, and another one in the next call."""
    problem, size = Gemm(msgspec.convert(options, Options)), Size.of(m=3, n=5, k=7)
    operands = problem.operands(size)
    inputs = make_inputs(operands)
    for call in range(3):
        found = check(problem, size, inputs, [poisoned(operands[2], call)])
        assert found.error.wrong == 15 and "still NaN: never written" in str(found.message)


def test_bfloat16_is_the_upper_half_of_a_float() -> None:
    values = np.array([1.0, -1.5, 1.2265625, np.inf], np.float32)
    bfloat16 = Gemm(Options(type="bf16")).numbers.element
    stored = bfloat16.packed(values)
    assert stored.tolist() == [0x3F80, 0xBFC0, 0x3F9D, 0x7F80]
    assert (bfloat16.wide(stored) == values).all()
    assert (bfloat16.wide(stored.reshape(2, 2).T) == values.reshape(2, 2).T).all()


def test_what_cublas_is_asked_for() -> None:
    """The numbers of cudaDataType_t, cublasComputeType_t and cublasMath_t."""
    single, half = types_for("f32", "f32", "f32"), types_for("f16", "f16", "f32")
    assert (single.inputs, single.result, single.compute, single.scale) == (0, 0, 68, 0)
    assert (half.inputs, half.result, half.compute, half.scale) == (2, 2, 68, 0)
    assert single.math_mode == 2 and half.math_mode == 16
    assert [each.value for each in half.factors()] == [1.0, 0.0]
    short = types_for("f16", "f16", "f16")
    assert (short.compute, short.scale, short.math_mode) == (64, 2, 0)
    assert [each.value for each in short.factors()] == [0x3C00, 0]  # one and zero in FP16
    assert types_for("bf16", "f32", "f32").inputs == 14


def test_a_lab_file_cannot_ask_for_sums_that_do_not_exist(tmp_path: Path) -> None:
    text = find_lab("hgemm").read_text()
    lab = tmp_path / "lab.yaml"
    for old, new, complaint in (
        ("type: f16 ", "type: bf16\naccumulate: f16 #", "accumulate: f16 needs type: f16"),
        ("type: f16 ", "split_into: f16\ntype: f16 ", "split_into: f16 needs type: f32, not f16"),
        ("type: f16 ", "type: fp16 ", "type: expected 'f32' or 'f16' or 'bf16', got 'fp16'"),
    ):
        changed = text.replace("accumulate: f32 ", "# ") if "accumulate" in new else text
        lab.write_text(changed.replace(old, new))
        with pytest.raises(LabError, match=complaint) as refused:
            load_lab(lab)
        assert str(refused.value).startswith(f"{lab}: ") and "\n" not in str(refused.value)


# --- the kernels that check a product on a GPU, simulated ---------------------------------------


def launched(
    name: str, arrays: list[np.ndarray], scalars: list[int | float], **launch: int
) -> None:
    """Run a kernel of checks.cu; doubles among the scalars take two words."""
    words: list[int] = []
    for each in scalars:
        raw = np.float64(each).tobytes() if isinstance(each, float) else np.int32(each).tobytes()
        words += np.frombuffer(raw, np.int32).tolist()
    grid, threads = (launch["blocks"], launch.get("rows", 1), 1), (launch["threads"], 1, 1)
    seen = harness.run(PRODUCT_CHECKS.read_text(), arrays, words, grid, threads, kernel=name)
    assert not seen.stopped, seen.findings


def strides(operand: Operand) -> list[int]:
    """Down and across, as two words each."""
    rows, columns = operand.shape
    return [columns, 0, 1, 0] if operand.order == "row" else [1, 0, rows, 0]


@pytest.mark.parametrize("order", ["row", "col"])
@pytest.mark.parametrize("form", ["f32", "f16", "bf16"])
def test_a_gpu_finds_the_same_elements_wrong(form: str, order: str) -> None:
    problem = Gemm(msgspec.convert({"type": form, "layout": {"C": order}}, Options))
    size = Size.of(m=33, n=20, k=40)
    operands = problem.operands(size)
    inputs = make_inputs(operands)
    a, b, c = operands
    wide = [each.wide(values) for each, values in zip((a, b), inputs, strict=True)]
    right = product(*wide)
    at = Case(problem=problem, k=40, a=wide[0], b=wide[1])
    stored = at.stored(right.want) if form != "f32" else right.want
    got = c.element.packed(np.ascontiguousarray(c.flat(stored).astype(np.float32)))
    got[[3, 77]] = got[[77, 3]]
    want = np.ascontiguousarray(c.flat(right.want).astype(np.float32))

    norms = []
    number = ["f32", "f16", "bf16"].index(form)
    for operand, stored_input, count in zip((a, b), inputs, (33, 20), strict=False):
        out, steps = np.zeros(count), strides(operand)
        around = steps if operand is a else [*steps[2:], *steps[:2]]
        launched("norms", [stored_input, out], [number, 40, *around], blocks=count, threads=128)
        norms.append(out)
    assert np.allclose(norms[0], np.linalg.norm(wide[0], axis=1), rtol=1e-12)
    assert np.allclose(norms[1], np.linalg.norm(wide[1], axis=0), rtol=1e-12)

    tolerance, rounded, fixed = problem.criterion(40, 2.0)
    result, squares = np.zeros(3, np.uint64), np.zeros(1)
    launched(
        "compare",
        [got, want, *norms, result, squares],
        [number, 33, 20, 0, *strides(c), math.sqrt(40), fixed, rounded, tolerance],
        blocks=2,
        threads=256,
    )
    assert result[0] == 2 and result[1] == 0
    largest = float(result[2:].view(np.float64)[0])
    scale = right.scale + rounded * np.abs(right.want)
    assert largest == pytest.approx(
        float((np.abs(c.wide(got) - right.want) / scale).max()), rel=1e-3
    )


def test_freivalds_reads_the_inputs_in_their_format() -> None:
    problem = Gemm(Options(type="f16", layout=Layout()))
    operands = problem.operands(Size.of(m=9, n=30, k=21))
    inputs = make_inputs(operands)
    a, b = (each.wide(values) for each, values in zip(operands, inputs, strict=False))
    signs = np.where(np.arange(30) % 3, 1, -1).astype(np.float32)
    bx, abx = np.zeros(21), np.zeros(9)
    launched(
        "signed_columns",
        [inputs[1], signs, bx],
        [1, 21, 30, 0, *strides(operands[1])],
        blocks=1,
        rows=4,
        threads=256,
    )
    assert np.allclose(bx, b @ signs, rtol=1e-12)
    launched(
        "rows_times", [inputs[0], bx, abx], [1, 21, *strides(operands[0])], blocks=9, threads=128
    )
    assert np.allclose(abx, a @ (b @ signs), rtol=1e-12)
