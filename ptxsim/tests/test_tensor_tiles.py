"""Tiles of tensors of one to five dimensions, as TMA brings them and takes them away: what of them
lies where in shared memory under each swizzle, and what becomes of the parts outside."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness import kernels, launch, sentence, values
from ptxsim.findings.event_table import Event
from ptxsim.findings.finding import FindingKind, Severity
from ptxsim.tensor_maps import DataType, Output, Swizzle, TensorMap

TILES = values("tiles.txt")
# Bits of the shared address that are flipped by others, three places further up.
SWIZZLED = {Swizzle.BYTES_32: 0x10, Swizzle.BYTES_64: 0x30, Swizzle.BYTES_128: 0x70}


def map_of(
    array: NDArray[Any], extents: tuple[int, ...], box: tuple[int, ...], swizzle: Swizzle
) -> TensorMap:
    """array: one row of the innermost dimension after the other, 4 bytes an element."""
    strides = tuple(4 * int(np.prod(extents[:d])) for d in range(1, len(extents)))
    return TensorMap(array, DataType.FLOAT32, extents, strides, box, swizzle=swizzle)


def in_tile(
    extents: tuple[int, ...], box: tuple[int, ...], at: tuple[int, ...]
) -> list[tuple[int, int]]:
    """Each element of the tile that the tensor has: its place in the tile, that in the tensor."""
    found = []
    for place, steps in enumerate(itertools.product(*map(range, reversed(box)))):
        here = [a + s for a, s in zip(reversed(at), steps, strict=True)]
        outermost = tuple(reversed(extents))
        if all(0 <= h < e for h, e in zip(here, outermost, strict=True)):
            found.append((place, int(np.ravel_multi_index(here, outermost))))
    return found


def laid_out(tile: NDArray[Any], box: tuple[int, ...], swizzle: Swizzle) -> NDArray[Any]:
    """The words of shared memory that hold a tile, at a multiple of 1024 bytes.

    A swizzle gives each row of the innermost dimension its whole span; what is left of it is -1.
    """
    flipped = SWIZZLED.get(swizzle, 0)
    pitch = flipped + 16 if flipped else 4 * box[0]
    rows, columns = np.divmod(np.arange(tile.size), box[0])
    addresses = pitch * rows + 4 * columns
    places = addresses ^ (addresses >> 3 & flipped)
    words = np.full(tile.size // box[0] * pitch // 4, -1, tile.dtype)
    words[places // 4] = tile
    return words


def ptx_for(
    box: tuple[int, ...], at: tuple[int, ...], folder: Path, words: int = 0, room: int = 0
) -> Path:
    """words: how many are copied by themselves; room: bytes of the array in shared memory.

    0: as many as the tile has.
    """
    path = folder / "tiles.ptx"
    size = 4 * int(np.prod(box))
    words = 4 * words or size
    first = ", ".join(map(str, at))
    path.write_text(
        kernels(
            "tensor_tiles.ptx", bytes=size, words=words, room=room or words, rank=len(box), at=first
        )
    )
    return path


def brought_and_taken(
    extents: tuple[int, ...],
    box: tuple[int, ...],
    at: tuple[int, ...],
    swizzle: Swizzle,
    folder: Path,
) -> None:
    size, pairs = int(np.prod(box)), in_tile(extents, box, at)
    ptx = ptx_for(box, at, folder, laid_out(np.zeros(size), box, swizzle).size)
    tensor = np.arange(1, np.prod(extents) + 1, dtype=np.float32)
    tile = np.zeros(size, np.float32)
    for place, source in pairs:
        tile[place] = tensor[source]

    expected = laid_out(tile, box, swizzle)
    words = np.zeros_like(expected)
    given = map_of(tensor, extents, box, swizzle)
    outcome = launch(ptx, "brings", 1, 32, [given, Output(words)])
    gaps = bool((expected == -1).any())  # nothing was ever written there
    assert [f.event for f in outcome.findings] == [Event.UNDEFINED_STORE] * gaps
    np.testing.assert_array_equal(words[expected != -1], expected[expected != -1])

    tile = -np.arange(2, size + 2, dtype=np.float32)
    expected = tensor.copy()
    for place, target in pairs:
        expected[target] = tile[place]
    given = map_of(tensor, extents, box, swizzle)
    words = laid_out(tile, box, swizzle)
    outcome = launch(ptx, "takes", 1, 32, [given, words])
    before = [f"has {a} as coordinate {d} " for d, a in enumerate(at) if a < 0]
    assert [f.event for f in outcome.findings] == [Event.TILE_BEFORE_TENSOR] * bool(before)
    for found in outcome.findings:
        assert found.kind is FindingKind.OUT_OF_BOUNDS and before[0] in sentence(found)
    np.testing.assert_array_equal(tensor, expected)


@pytest.mark.parametrize(("extents", "box", "at"), TILES)
def test_a_tile_beyond_the_edge_is_filled_with_zeros_and_stored_in_part(
    extents: tuple[int, ...], box: tuple[int, ...], at: tuple[int, ...], tmp_path: Path
) -> None:
    padded = (-(-extents[0] // 4) * 4, *extents[1:])  # strides are multiples of 16 bytes
    brought_and_taken(padded, box, at, Swizzle.NONE, tmp_path)


@pytest.mark.parametrize("swizzle", SWIZZLED)
@pytest.mark.parametrize("rank", [2, 3])
def test_a_swizzle_moves_pieces_of_16_bytes(swizzle: Swizzle, rank: int, tmp_path: Path) -> None:
    """Rows of the tile as long as the swizzle's span, and of half of it."""
    span = {Swizzle.BYTES_32: 8, Swizzle.BYTES_64: 16, Swizzle.BYTES_128: 32}[swizzle]
    extents, box, at = ((36, 40), (span, 16), (12, 30))
    if rank == 3:
        extents, box, at = (36, 9, 5), (span // 2, 8, 4), (4, 3, 2)  # type: ignore[assignment]
    brought_and_taken(extents, box, at, swizzle, tmp_path)


@pytest.mark.parametrize("room", [8, 5])
def test_the_last_16_bytes_of_a_row_are_stored_whole(room: int, tmp_path: Path) -> None:
    """A tensor of five floats; behind it in memory there are three more, or nothing."""
    ptx = ptx_for((32,), (0,), tmp_path)
    tensor = np.full(room, -1, np.float32)
    words = np.arange(32, dtype=np.float32)
    given = map_of(tensor, (5,), (32,), Swizzle.NONE)
    found = launch(ptx, "takes", 1, 32, [given, words]).findings
    assert [each.kind for each in found] == [FindingKind.OUT_OF_BOUNDS] * (room == 5)
    if not found:
        np.testing.assert_array_equal(tensor, words[:room])


@pytest.mark.parametrize("extents", [(32, 2), (32, 3), (30, 2), (28, 3)])
def test_only_what_is_stored_must_have_been_written(
    extents: tuple[int, int], tmp_path: Path
) -> None:
    """Two rows of a box of four are written."""
    ptx = ptx_for((32, 4), (0, 0), tmp_path, words=64, room=512)
    tensor = np.full((4, 32), -1, np.float32)
    map_ = TensorMap(tensor, DataType.FLOAT32, extents, (128,), (32, 4))
    words = np.arange(64, dtype=np.float32)
    found = launch(ptx, "takes", 1, 32, [map_, words]).findings
    assert [each.event for each in found] == [Event.UNDEFINED_STORE] * (extents[1] > 2)
    columns = -(-extents[0] // 4) * 4  # the last 16 bytes of a row are stored whole
    np.testing.assert_array_equal(tensor[:2, :columns], words.reshape(2, 32)[:, :columns])


def test_a_row_that_begins_anywhere_is_not_stored_beyond_its_end(tmp_path: Path) -> None:
    """29 of 32 floats, three places before the tensor: 116 bytes, not 128."""
    ptx = ptx_for((32,), (-3,), tmp_path)
    tensor = np.full(100, -1, np.float32)
    given = map_of(tensor, (100,), (32,), Swizzle.NONE)
    words = np.arange(32, dtype=np.float32)
    found = launch(ptx, "takes", 1, 32, [given, words]).findings
    assert [each.event for each in found] == [Event.TILE_MISALIGNED]
    np.testing.assert_array_equal(tensor[:29], words[3:])
    assert (tensor[29:] == -1).all()


@pytest.mark.parametrize("kernel", ["brings", "takes"])
@pytest.mark.parametrize("room", [176, 11 * 128 - 16, 11 * 128])
def test_a_swizzle_needs_room_for_its_whole_span(kernel: str, room: int, tmp_path: Path) -> None:
    """Rows of 16 bytes lie 128 bytes apart; the last one may lie anywhere in these."""
    ptx = ptx_for((4, 11), (0, 0), tmp_path, room=room)
    tensor = np.ones((11, 4), np.float32)
    given = map_of(tensor, (4, 11), (4, 11), Swizzle.BYTES_128)
    outcome = launch(ptx, kernel, 1, 32, [given, np.zeros(44, np.float32)])
    beyond = [f for f in outcome.findings if f.kind is FindingKind.OUT_OF_BOUNDS]
    assert bool(beyond) == (room < 11 * 128)
    assert not any(f.kind is FindingKind.RACE for f in outcome.findings)


@pytest.mark.parametrize("kernel", ["brings", "takes"])
@pytest.mark.parametrize(("type_", "first", "says"), values("tile_starts.txt"))
@pytest.mark.parametrize("other", [0, 1])
def test_a_tile_begins_at_a_multiple_of_16_bytes(
    kernel: str, type_: str, first: int, says: str, other: int, tmp_path: Path
) -> None:
    """Of the innermost dimension; other coordinates may be anything."""
    each = {"UINT8": 1, "FLOAT16": 2, "FLOAT64": 8}[type_]
    ptx = ptx_for((4, 8), (first, other), tmp_path)  # 4 words a row, in elements of any size
    tensor, words = np.ones(1024, np.float32), np.ones(32, np.float32)
    given = TensorMap(tensor, DataType[type_], (64, 8), (512,), (16 // each, 8))
    found = launch(ptx, kernel, 1, 32, [given, words]).findings
    events = [Event.TILE_MISALIGNED] * bool(says)
    if kernel == "takes" and first == -8:
        events, says = [Event.TILE_BEFORE_TENSOR], "has -8 as coordinate 0 "
    assert [each.event for each in found] == events
    for each_found in found:
        assert each_found.severity is Severity.ERROR and says in sentence(each_found)


@pytest.mark.parametrize(
    ("type_", "bits"),
    [
        (DataType.FLOAT16, np.uint16(0x7FF7)),
        (DataType.BFLOAT16, np.uint16(0x7FF7)),
        (DataType.FLOAT32, np.uint32(0x7FF77FF7)),
        (DataType.TFLOAT32, np.uint32(0x7FF77FF7)),
        (DataType.FLOAT64, np.uint64(0x7FF77FF77FF77FF7)),
    ],
)
def test_what_fills_with_nan(type_: DataType, bits: np.generic, tmp_path: Path) -> None:
    """Of maps that ask for it; others fill with zeros."""
    ptx = ptx_for((32,), (0,), tmp_path)
    tensor = np.ones(16, np.float32)
    each = bits.itemsize
    for fills in (False, True):
        words = np.zeros(32, np.float32)
        given = TensorMap(tensor, type_, (64 // each,), (), (128 // each,), fills_nan=fills)
        outcome = launch(ptx, "brings", 1, 32, [given, Output(words)])
        assert outcome.findings == ()
        assert set(words.view(bits.dtype)[64 // each :]) == {bits if fills else 0}
        assert (words[:16] == 1).all()


ROUNDED = dict(values("tf32.txt"))  # floats, by their bits


@pytest.mark.parametrize("type_", [DataType.TFLOAT32, DataType.TFLOAT32_FTZ, DataType.FLOAT32])
def test_what_is_brought_as_tf32_is_rounded(type_: DataType, tmp_path: Path) -> None:
    ptx = ptx_for((32,), (0,), tmp_path)
    tensor, words = np.array(list(ROUNDED), np.uint32), np.zeros(32, np.uint32)
    given = TensorMap(tensor, type_, (tensor.size,), (), (32,))
    outcome = launch(ptx, "brings", 1, 32, [given, Output(words)])
    assert outcome.findings == ()
    expected = list(ROUNDED) if type_ is DataType.FLOAT32 else list(ROUNDED.values())
    assert [hex(word) for word in words[: tensor.size]] == [hex(word) for word in expected]


def test_maps_may_lie_in_device_memory_and_tensors_behind_an_arrays_start(tmp_path: Path) -> None:
    text = ptx_for((32,), (0,), tmp_path).read_text()
    text = text.replace(".param .align 64 .b8 map[128]", ".param .u64 maps")
    text = text.replace(
        "mov.b64 %rd1, map;\n  cvta.param.u64 %rd2, %rd1;", "ld.param.u64 %rd2, [maps];"
    )
    text = text.replace(
        "  mov.u32 %r3, %tid.x;", "  add.u64 %rd2, %rd2, 128;\n  mov.u32 %r3, %tid.x;"
    )
    ptx = tmp_path / "maps.ptx"
    ptx.write_text(text)
    tensor = np.arange(64, dtype=np.float32)
    maps = [
        TensorMap(tensor, DataType.FLOAT32, (32,), (), (32,), offset=offset) for offset in (0, 128)
    ]
    words = np.zeros(32, np.float32)
    outcome = launch(ptx, "brings", 1, 32, [maps, Output(words)])
    assert outcome.findings == ()
    np.testing.assert_array_equal(words, tensor[32:])


# --- boxes of more bytes than 32 bits count


LOAD = (
    "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
    "[%r1], [%rd2, {%r3, %r3, %r3, %r3}], [%r2];"
)
STORE = "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%rd2, {%r3, %r3, %r3, %r3}], [%r1];"


@pytest.mark.parametrize(("moves", "access"), [(LOAD, "write"), (STORE, "read")])
@pytest.mark.parametrize("box", [(256, 256, 256, 256), (256, 256, 256, 255), (256, 256, 17, 1)])
def test_a_tile_that_no_block_has_room_for(
    moves: str, access: str, box: tuple[int, ...], tmp_path: Path
) -> None:
    ptx = tmp_path / "moves.ptx"
    ptx.write_text(kernels("giant_tiles.ptx", moves=moves))
    array = np.zeros(1 << 20, np.uint8)
    tensor = TensorMap(array, DataType.UINT8, (256, 256, 256, 256), (256, 1 << 16, 1 << 16), box)
    outcome = launch(ptx, "moves", 1, 1, [tensor])
    (found,) = [each for each in outcome.findings if each.event is Event.OUT_OF_BOUNDS]
    assert f"shared {access}" in sentence(found)
    assert "across the end of the 128-byte array tile" in sentence(found)
