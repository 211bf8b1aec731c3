"""The generator of inputs: ChaCha as RFC 8439 has it, and values as the tolerance needs them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from grader.problems.gemm.gemm import Gemm, Options
from grader.problems.inputs import (
    KEY_BYTES,
    Floats,
    chacha_blocks,
    fresh_key,
    key_stream,
    make_inputs,
    values,
)
from grader.problems.operands import Operand, Steps
from grader.run import gpu
from ptxsim.records import Size
from tests.support import kernels
from tests.support.product import GEMM

CHECKS = Path(gpu.__file__).parent / "checks.cu"
KEY = bytes(range(KEY_BYTES))
MANY = 1 << 18


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
    "operand", [*INPUTS, *(msgspec.structs.replace(INPUTS[0], values=kind) for kind in STEPS)]
)
def test_the_gpu_makes_the_same_bits(count: int, operand: Operand) -> None:
    """The GPU's own kernel, simulated; tests/whole/gpu_checks.py does the same on a GPU."""
    operand = msgspec.structs.replace(operand, shape=(count,))
    out = np.zeros(count + 8, operand.element.dtype)
    key = bytes(range(100, 100 + KEY_BYTES))
    (expected,) = make_inputs([operand], [key])
    # fill's parameters: the array, its length and the key, in 64-bit words; kind and format.
    words = np.frombuffer(key, np.int32).tolist()
    kind = [0, 0, 0, 0, 0]  # exposing values
    if isinstance(steps := operand.values, Steps):
        unit = int(np.float32(2.0**steps.exponent).view(np.int32))
        kind = [1, (1 << steps.bits) - 1, steps.least, unit, 1]
        magnitudes = np.abs(operand.wide(expected)) / 2.0**steps.exponent
        assert magnitudes.min() >= steps.least
        assert magnitudes.max() < steps.least + (1 << steps.bits)
    form = ["float32", "float16", "uint16"].index(operand.element.dtype)
    scalars = [count, 0, *words, *kind, form]
    seen = kernels.run(CHECKS.read_text(), [out], scalars, (2, 1, 1), (256, 1, 1), kernel="fill")
    assert not seen.stopped and not seen.findings, seen.findings
    assert (out[:count] == expected).all() and expected.dtype == out.dtype
    assert not out[count:].any()
