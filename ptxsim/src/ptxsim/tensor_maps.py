"""Tensor maps for TMA, as cuTensorMapEncodeTiled makes them, in an encoding of our own."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ptxsim.engine import Engine

MAP_BYTES = 128
ENGINE_HEADERS = Path(__file__).parent / "engine"  # tensor_map.hpp, which says how they are encoded
MAGIC = b"tnsormap"  # what a map begins with


@dataclass(frozen=True)
class Output:
    """An array whose elements count as never written until the kernel writes them."""

    array: NDArray[Any]


class DataType(IntEnum):
    """Data types, numbered as CUtensorMapDataType numbers them."""

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    TFLOAT32 = 11
    TFLOAT32_FTZ = 12


class Swizzle(IntEnum):
    """Swizzles, numbered as CUtensorMapSwizzle numbers them."""

    NONE = 0
    BYTES_32 = 1
    BYTES_64 = 2
    BYTES_128 = 3


@dataclass(frozen=True)
class TensorMap:
    """Arguments of cuTensorMapEncodeTiled. The innermost dimension comes first."""

    array: NDArray[Any] | Output
    type: DataType
    extents: Sequence[int]  # globalDim: elements
    strides: Sequence[int]  # globalStrides: bytes, of all dimensions but the first
    box: Sequence[int]  # boxDim: elements
    steps: Sequence[int] = ()  # elementStrides; (): 1 in each dimension
    swizzle: Swizzle = Swizzle.NONE
    fills_nan: bool = False  # oobFill
    offset: int = 0  # bytes from the array's start to globalAddress


def encode(engine: Engine, request: TensorMap, address: int) -> bytes:
    """The map for an array at ``address``. Raises ValueError for what the driver would refuse."""
    rank = len(request.extents)
    steps = tuple(request.steps) or (1,) * rank
    if not len(request.strides) + 1 == len(request.box) == len(steps) == rank:
        raise ValueError("a tensor map has one extent, box and step per dimension, one stride less")
    made = ctypes.create_string_buffer(MAP_BYTES)
    why = engine.library.sim_tensor_map(
        made,
        request.type,
        rank,
        address + request.offset,
        (ctypes.c_uint64 * rank)(*request.extents),
        (ctypes.c_uint64 * rank)(*request.strides),
        (ctypes.c_uint32 * rank)(*request.box),
        (ctypes.c_uint32 * rank)(*steps),
        (ctypes.c_uint32 * 4)(0, request.swizzle, 0, request.fills_nan),
    )
    if why is not None:
        raise ValueError(f"cuTensorMapEncodeTiled: {why.decode()}")
    return made.raw
