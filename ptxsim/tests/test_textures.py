"""Reads through texture objects, held against NumPy by the rules of the CUDA programming guide."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness import compiled, kernels, launch
from ptxsim import Output, Report, Texture
from ptxsim.outcome import RefusedProgram
from ptxsim.tensor_maps import AddressMode

SOURCE = kernels("textures.cu")
IMAGE = np.random.default_rng(3).random((3, 5), np.float32)


def run(kernel: str, *arguments: Any, threads: int = 32) -> Report:
    _, folder = compiled(SOURCE, name="textures")
    return launch(folder / "textures.ptx", kernel, 1, threads, arguments)


@pytest.mark.parametrize(
    ("kernel", "dtype", "channels"),
    [
        ("fetch_float", np.float32, 1),
        ("fetch_float", np.float16, 1),
        ("fetch_float2", np.float32, 2),
        ("fetch_float4", np.float32, 4),
        ("fetch_int", np.int32, 1),
        ("fetch_int", np.int16, 1),
        ("fetch_uchar4", np.uint8, 4),
    ],
)
def test_a_fetch_gives_the_texel_and_zero_outside(kernel: str, dtype: Any, channels: int) -> None:
    generator = np.random.default_rng(1)
    texels = generator.integers(-100, 100, (20, channels)).astype(dtype)
    given = texels[:, 0].copy() if channels == 1 else texels
    kind = {"float": np.float32, "int": np.int32}.get(kernel[6:].rstrip("24"), dtype)
    out = np.full((32, channels), 7, kind)
    report = run(kernel, Texture(given, channels, AddressMode.CLAMP), Output(out))
    assert report.clean
    assert (out[2:22] == texels).all() and not out[:2].any() and not out[22:].any()


def settled(mode: AddressMode, normalized: bool, at: int, extent: int) -> int | None:
    if 0 <= at < extent:
        return at
    if mode is AddressMode.BORDER:
        return None
    if mode is AddressMode.CLAMP or not normalized:
        return min(max(at, 0), extent - 1)
    place = at % (extent if mode is AddressMode.WRAP else 2 * extent)
    return place if place < extent else 2 * extent - 1 - place


def sampled(t: Texture, x: float, y: float) -> float:
    """The value of the guide's formulas, in weights of 8 fractional bits."""
    (height, width), (i, j), (a, b) = t.array.shape, (0, 0), (0, 0)
    x, y = (float(x) * width, float(y) * height) if t.normalized else (float(x), float(y))
    if t.linear:
        (i, a), (j, b) = (divmod(int(np.floor((at - 0.5) * 256 + 0.5)), 256) for at in (x, y))
    else:
        i, j = int(np.floor(x)), int(np.floor(y))
    both = (a * b + 128) // 256
    weights = {(0, 0): 256 - a - b + both, (0, 1): a - both, (1, 0): b - both, (1, 1): both}
    total = 0.0
    for (down, right), weight in weights.items():
        row = settled(t.address, t.normalized, j + down, height)
        column = settled(t.address, t.normalized, i + right, width)
        if row is not None and column is not None:
            total += weight / 256 * float(t.array[row, column])
    return total


@pytest.mark.parametrize("mode", AddressMode)
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
def test_samples_follow_filter_and_address_mode(
    mode: AddressMode, linear: bool, normalized: bool
) -> None:
    texture = Texture(IMAGE, address=mode, linear=linear, normalized=normalized)
    generator = np.random.default_rng(2)
    x, y = (generator.uniform(-3, 9, 256).astype(np.float32) for _ in "xy")
    out = np.zeros(256, np.float32)
    assert run("plane", texture, x, y, Output(out), threads=256).clean
    want = [sampled(texture, *at) for at in zip(x, y, strict=True)]
    assert np.allclose(out, want, rtol=1e-6, atol=1e-7)


def test_small_integers_are_read_as_fractions() -> None:
    for dtype, most in ((np.uint8, 255), (np.int8, 127), (np.uint16, 65535)):
        texels = np.array([0, 1, 100, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
        x, out = np.arange(5, dtype=np.float32) + 0.5, np.zeros(5, np.float32)
        texture = Texture(texels, linear=True, reads_normalized=True)
        assert run("line", texture, x, Output(out), threads=5).clean
        assert (out == np.maximum(texels / most, -1).astype(np.float32)).all()


def test_coordinates_that_are_no_numbers_stay_inside() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 3e38], np.float32)
    for mode in AddressMode:
        for normalized in (False, True):
            texture = Texture(IMAGE[0].copy(), address=mode, normalized=normalized)
            assert run("line", texture, x, Output(np.zeros(4, np.float32)), threads=4).clean


def test_a_handle_that_is_no_such_texture_is_a_finding() -> None:
    out = Output(np.zeros(32, np.float32))
    for handle, says in (
        (IMAGE.copy(), "0x7f0000000000 is no texture object"),
        (12, "0xc is no texture object"),
        (Texture(IMAGE.copy()), "a texture of 2 dimensions with 1 coordinates"),
        (Texture(np.arange(8, dtype=np.int32)), "a texture of integers as floats"),
    ):
        (found,) = run("fetch_float", handle, out).remarks
        assert found.kind == "out-of-bounds" and says in str(found.message)


def test_what_a_launch_writes_no_texture_may_read() -> None:
    array = np.zeros(64, np.float32)
    (found,) = run("writes", Texture(array), array).remarks
    line = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if text.endswith("// read"))
    assert (found.kind, found.line) == ("race", line)


@pytest.mark.parametrize(
    ("kernel", "opcode"),
    [
        ("cube", "tex.3d"),
        ("levels", "tex.level.2d"),
        ("gather", "tld4"),
        ("layers", "tex.a1d"),
        ("surface", "suld"),
    ],
)
def test_other_textures_and_surfaces_are_refused_by_name(kernel: str, opcode: str) -> None:
    with pytest.raises(RefusedProgram, match=rf"{opcode}.*textures\.cu:\d+"):
        run(kernel, Texture(IMAGE.copy()), np.zeros(4, np.float32))


def test_arrays_of_which_no_texture_can_be_made_are_refused() -> None:
    bad: list[tuple[NDArray[Any], dict[str, Any], str]] = [
        (np.zeros((2, 2, 2), np.float32), {}, "one or two dimensions"),
        (np.zeros((2, 3), np.float32), {"channels": 2}, "the last axis"),
        (np.zeros(4), {}, "float64"),
        (np.zeros(4, np.float32), {"reads_normalized": True}, "only integers"),
        (np.zeros(4, np.int32), {"linear": True}, "linear filtering"),
    ]
    for array, fields, says in bad:
        with pytest.raises(ValueError, match=says):
            run("fetch_float", Texture(array, **fields), np.zeros(32, np.float32))
