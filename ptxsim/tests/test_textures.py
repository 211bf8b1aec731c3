"""Reads through texture objects, held against NumPy by the rules of the CUDA programming guide."""

import itertools
from collections.abc import Sequence
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
VOLUME = np.random.default_rng(4).random((4, 3, 5), np.float32)


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


def sampled(t: Texture, *at: float) -> float:
    """The value of the guide's formulas, in weights of 8 fractional bits."""
    extents = t.array.shape[::-1]
    first, share = [0, 0, 0], [0, 0, 0]
    for axis, (place, extent) in enumerate(zip(at, extents, strict=True)):
        here = float(place) * extent if t.normalized else float(place)
        clamps = t.address is AddressMode.CLAMP or not t.normalized
        if t.linear and clamps and t.address is not AddressMode.BORDER:
            here = min(max(here, 0.5), extent - 0.5)
        if t.linear:
            first[axis], share[axis] = divmod(int(np.floor((here - 0.5) * 256 + 0.5)), 256)
        else:
            first[axis] = int(np.floor(here))
    total = 0.0
    for far in itertools.product((0, 1), repeat=len(at)):
        inside = [
            settled(t.address, t.normalized, first[axis] + step, extents[axis])
            for axis, step in enumerate(far)
        ]
        if None not in inside:
            total += weight(share, (*far, 0, 0)[:3]) / 256 * float(t.array[tuple(inside[::-1])])
    return total


def weight(share: Sequence[int], far: Sequence[int]) -> int:
    """Of a corner, in 256ths: by z first, then by x, then by y, each time rounded, halves up but
    for y at the nearer x."""
    left = 256
    for axis in (2, 0, 1):
        half_down = axis == 1 and not far[0]
        taken = (left * share[axis] + 128 - half_down) // 256
        left = taken if far[axis] else left - taken
    return left


@pytest.mark.parametrize("mode", AddressMode)
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
def test_samples_follow_filter_and_address_mode(
    mode: AddressMode, linear: bool, normalized: bool
) -> None:
    generator = np.random.default_rng(2)
    at = [generator.uniform(-3, 9, 256).astype(np.float32) for _ in "xyz"]
    for kernel, image in (("plane", IMAGE), ("volume", VOLUME)):
        texture = Texture(image, address=mode, linear=linear, normalized=normalized)
        out, places = np.zeros(256, np.float32), at[: image.ndim]
        assert run(kernel, texture, *places, Output(out), threads=256).clean
        want = [sampled(texture, *each) for each in zip(*places, strict=True)]
        assert np.allclose(out, want, rtol=1e-6, atol=1e-7)


def test_layers_are_not_filtered_and_clamped() -> None:
    layers = np.array([-1, 0, 1, 5], np.int32)
    out = np.zeros(4, np.float32)
    for kernel, array in (("layers", VOLUME[:, 0].copy()), ("sheets", VOLUME)):
        texture = Texture(array, address=AddressMode.CLAMP, linear=True, layered=True)
        assert run(kernel, texture, layers, Output(out), threads=4).clean
        last = array.shape[0] - 1
        want = [array[min(k, last) if k >= 0 else last, ..., 0].flat[0] for k in layers]
        assert (out == want).all()


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
        (Texture(IMAGE.copy(), layered=True), "or none of a texture that has layers"),
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
        ("gather", "tld4"),
        ("cube", "tex.cube"),
    ],
)
def test_other_textures_are_refused_by_name(kernel: str, opcode: str) -> None:
    with pytest.raises(RefusedProgram, match=rf"{opcode}.*textures\.cu:\d+"):
        run(kernel, Texture(IMAGE.copy()), np.zeros(4, np.float32))


def test_arrays_of_which_no_texture_can_be_made_are_refused() -> None:
    bad: list[tuple[NDArray[Any], dict[str, Any], str]] = [
        (np.zeros((2, 2, 2, 2), np.float32), {}, "one to three dimensions"),
        (np.zeros((2, 3), np.float32), {"channels": 2}, "the last axis"),
        (np.zeros(4), {}, "float64"),
        (np.zeros(4, np.float32), {"reads_normalized": True}, "only integers"),
        (np.zeros(4, np.int32), {"linear": True}, "linear filtering"),
    ]
    for array, fields, says in bad:
        with pytest.raises(ValueError, match=says):
            run("fetch_float", Texture(array, **fields), np.zeros(32, np.float32))
