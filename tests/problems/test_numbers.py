"""The formats of 16 bits: what their criterion admits and refuses, and how a GPU applies it."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from benchmarks.verification_16_bits import FORMATS, SUMS_IN_FP16, Case, case, errors, promoted
from grader.base.errors import LabError
from grader.labs.lab import find_lab, load_lab
from grader.problems.comparison import check, poisoned
from grader.problems.gemm.cublas import types_for
from grader.problems.gemm.gemm import CHECKS, Gemm, Options, product
from grader.problems.gemm.layout import Layout
from grader.problems.inputs import make_inputs
from grader.problems.operands import BFLOAT16, Operand, Steps
from ptxsim.records import Size
from tests.support import kernels

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
    stored = BFLOAT16.packed(values)
    assert stored.tolist() == [0x3F80, 0xBFC0, 0x3F9D, 0x7F80]
    assert (BFLOAT16.wide(stored) == values).all()
    assert (BFLOAT16.wide(stored.reshape(2, 2).T) == values.reshape(2, 2).T).all()


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
    seen = kernels.run(CHECKS.read_text(), arrays, words, grid, threads, kernel=name)
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
    for operand, values, count in zip((a, b), inputs, (33, 20), strict=False):
        out, steps = np.zeros(count), strides(operand)
        around = steps if operand is a else [*steps[2:], *steps[:2]]
        launched("norms", [values, out], [number, 40, *around], blocks=count, threads=128)
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
