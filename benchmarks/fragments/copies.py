"""Bulk copies of random tiles, by tensor maps and without."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fragments.kind import FRAGMENTS, Arguments, Kind
from ptxsim import DataType, Swizzle, TensorMap

_THREADS, _WORDS = 128, 2048  # as in copies.cu
_TILE_BYTES = 4096  # at most
_TENSOR_BYTES = 1 << 18
_TARGET_BYTES = 1 << 14  # of each fragment that is stored
_SPANS = {Swizzle.BYTES_32: 32, Swizzle.BYTES_64: 64, Swizzle.BYTES_128: 128}
_SIZES = {DataType.UINT8: 1, DataType.UINT64: 8, DataType.INT64: 8, DataType.FLOAT64: 8}
_SIZES |= dict.fromkeys((DataType.UINT16, DataType.FLOAT16, DataType.BFLOAT16), 2)


@dataclass(frozen=True)
class Tiles:
    """What the tiles of a kind have in common."""

    rank: int
    type: DataType
    swizzle: Swizzle | None = Swizzle.NONE  # None: each has its own
    narrow: bool = False  # rows shorter than the swizzle's span
    strided: bool = False  # element strides other than 1
    uneven: bool = False  # strides that are no multiples of each other
    stored: bool = False
    fills: bool = True  # with NaN, half of the maps

    @property
    def name(self) -> str:
        swizzle = "" if self.swizzle is None else f" {self.swizzle.name.lower()}"
        form = " narrow" * self.narrow + " strided" * self.strided + " uneven" * self.uneven
        form += " filling" * (self.stored and self.fills)
        return f"{self.rank}d {self.type.name.lower()}{swizzle}{form}"


def _shape(
    rng: np.random.Generator, tiles: Tiles, swizzle: Swizzle, each: int
) -> tuple[int, list[int], list[int]]:
    """Of a tile in shared memory: bytes of a row; elements and element strides by dimension."""
    row = _SPANS.get(swizzle, 16 * int(rng.integers(1, 9)))
    rows = _TILE_BYTES // row
    if tiles.narrow:
        row = 16 * int(rng.integers(1, row // 16))
    counts, steps = [row // each], [1]
    for _ in range(1, tiles.rank):
        counts.append(int(rng.integers(1, max(2, min(rows, 32) + 1))))
        rows //= counts[-1]
        steps.append(int(rng.integers(1, 9)) if tiles.strided else 1)
    order = [0, *(1 + rng.permutation(tiles.rank - 1))]
    return row, [counts[d] for d in order], [steps[d] for d in order]


def tile(
    rng: np.random.Generator, tiles: Tiles, array: NDArray[Any], first: int, room: int
) -> tuple[TensorMap, list[int]]:
    """A random tensor in ``room`` bytes of the array from ``first`` on, and a copy of its tile.

    It begins at a multiple of 16 bytes, and within the tensor if it is stored: the GPU stops at
    other coordinates.
    """
    while True:
        swizzle = tiles.swizzle
        if swizzle is None:
            swizzle = list(_SPANS if tiles.narrow else Swizzle)[
                rng.integers(3 + (not tiles.narrow))
            ]
        each = _SIZES.get(tiles.type, 4)
        row, counts, steps = _shape(rng, tiles, swizzle, each)
        box = [
            (count - 1) * step + int(rng.integers(1, step + 1))
            for count, step in zip(counts, steps, strict=True)
        ]
        extents = [int(rng.integers(1, 2 * b + 1)) for b in box]
        strides, bytes_ = [], -(-extents[0] * each // 16) * 16 + 16 * int(rng.integers(3))
        for extent in extents[1:]:
            strides.append(bytes_ + 16 * tiles.uneven)
            bytes_ = strides[-1] * (extent + int(rng.integers(3)))
        offset = 16 * int(rng.integers(16))
        if max(box) <= 256 and offset + bytes_ <= room:
            break
    made = TensorMap(
        array,
        tiles.type,
        extents,
        strides,
        box,
        steps,
        swizzle,
        fills_nan=tiles.fills and tiles.type >= DataType.FLOAT16 and bool(rng.integers(2)),
        offset=first + offset,
    )
    beyond = 2 * (rng.integers(8) == 0)  # a tile may lie beyond the tensor altogether
    starts = [0 if tiles.stored else 1 - count - beyond for count in box]
    at = [int(rng.integers(s, e + beyond)) for s, e in zip(starts, extents, strict=True)]
    at[0] -= at[0] % (16 // each)
    size = int(np.prod(counts)) * each
    room_for_rows = size // row * _SPANS.get(swizzle, row)
    place = 128 * int(rng.integers((4 * _WORDS - room_for_rows) // 128 + 1))
    return made, [place, size, *at, *[0] * (5 - len(at)), int(rng.integers(1, 4))]


def _bring(tiles: Tiles, blocks: int, rng: np.random.Generator) -> Arguments:
    tensor = rng.integers(256, size=_TENSOR_BYTES, dtype=np.uint8)
    made = [tile(rng, tiles, tensor, 0, _TENSOR_BYTES) for _ in range(FRAGMENTS)]
    return [
        [tensor_map for tensor_map, _ in made],
        np.array([copy for _, copy in made], np.int32),
        np.zeros((blocks, _WORDS + 1), np.uint32),
    ]


def _take(tiles: Tiles, rng: np.random.Generator) -> Arguments:
    target = np.full((FRAGMENTS, _TARGET_BYTES), 0xA5, np.uint8)
    made = [
        tile(rng, tiles, target, fragment * _TARGET_BYTES, _TARGET_BYTES)
        for fragment in range(FRAGMENTS)
    ]
    return [
        [tensor_map for tensor_map, _ in made],
        np.array([copy for _, copy in made], np.int32),
        target,
    ]


def _plain(most: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Copies without a tensor map, from or to within ``most`` bytes."""
    size = 16 * rng.integers(1, _WORDS // 4 + 1, FRAGMENTS)
    place = rng.integers(4 * _WORDS - size + 1) // 16 * 16
    other = rng.integers(most - size + 1) // 16 * 16
    rest = np.zeros((FRAGMENTS, 5), np.int64)
    return np.column_stack([place, size, other, rest]).astype(np.int32)


def _bring_plain(rng: np.random.Generator) -> Arguments:
    source = rng.integers(256, size=_TENSOR_BYTES, dtype=np.uint8)
    return [source, _plain(_TENSOR_BYTES, rng), np.zeros((FRAGMENTS, _WORDS + 1), np.uint32)]


def _take_plain(rng: np.random.Generator) -> Arguments:
    target = np.full((FRAGMENTS, 4 * _WORDS), 0xA5, np.uint8)
    return [_plain(4 * _WORDS, rng), target]


_TYPES = (DataType.FLOAT16, DataType.FLOAT32)
_LOADED = [
    *(Tiles(rank, type_, s) for rank in range(1, 6) for type_ in _TYPES for s in Swizzle),
    *(Tiles(rank, type_, None, narrow=True) for rank in range(1, 6) for type_ in _TYPES),
    *(Tiles(rank, type_, None, strided=True) for rank in range(2, 6) for type_ in _TYPES),
    *(Tiles(2, type_, None) for type_ in DataType if type_ not in _TYPES),
    *(Tiles(rank, DataType.FLOAT32, None, uneven=True) for rank in (3, 5)),
]
_stored = partial(Tiles, swizzle=None, stored=True, fills=False)
_STORED = [
    *(_stored(rank, type_) for rank in range(1, 6) for type_ in _TYPES),
    *(_stored(rank, type_, narrow=True) for rank in range(1, 6) for type_ in _TYPES),
    *(_stored(rank, type_, strided=True) for rank in range(2, 6) for type_ in _TYPES),
    *(_stored(2, type_, fills=True) for type_ in _TYPES),
]

KINDS = [
    *(
        Kind(
            f"load {t.name}",
            "copies.cu",
            f"bring_{t.rank}",
            _THREADS,
            partial(_bring, t, FRAGMENTS),
        )
        for t in _LOADED
    ),
    *(
        Kind(f"store {t.name}", "copies.cu", f"take_{t.rank}", _THREADS, partial(_take, t))
        for t in _STORED
    ),
    *(
        Kind(
            f"multicast {tiles.name}",
            "copies.cu",
            "multicast",
            _THREADS,
            partial(_bring, tiles, 2 * FRAGMENTS),
            2 * FRAGMENTS,
        )
        for tiles in (Tiles(2, type_, None) for type_ in _TYPES)
    ),
    Kind("load plain", "copies.cu", "bring_plain", _THREADS, _bring_plain),
    Kind("store plain", "copies.cu", "take_plain", _THREADS, _take_plain),
]
