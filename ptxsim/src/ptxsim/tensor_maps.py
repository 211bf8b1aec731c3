"""Arguments that describe arrays: texture objects, and tensor maps for TMA.

NVIDIA documents the bytes of neither, so these are our own.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxsim.engine import Engine
from ptxsim.engine_header import TEXTURE, TEXTURE_MAGIC

MAP_BYTES = 128
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


# --- textures


class AddressMode(IntEnum):
    """Modes of reads outside a texture, numbered as cudaTextureAddressMode numbers them."""

    WRAP = 0
    CLAMP = 1
    MIRROR = 2
    BORDER = 3  # 0


_TYPES = {"u": 0, "i": 1, "f": 2}  # by NumPy's letter


@dataclass(frozen=True)
class Texture:
    """A texture object with the fields of cudaTextureDesc. ``array`` has one to three axes, x last,
    before them one for layers, and behind them one for 2 or 4 channels."""

    array: NDArray[Any]
    channels: int = 1
    address: AddressMode = AddressMode.WRAP  # CLAMP unless coordinates are normalized, as in CUDA
    linear: bool = False  # filterMode
    normalized: bool = False  # normalizedCoords: they count from 0 to 1
    reads_normalized: bool = False  # readMode: integers of 8 or 16 bits are read as 0 to 1
    layered: bool = False

    def encoded(self, address: int) -> bytearray:
        """Return the object for an array at ``address``. Raises ValueError for what
        cudaCreateTextureObject would refuse."""
        kind, element = self.array.dtype.kind, self.array.itemsize
        shape = self.array.shape if self.channels == 1 else self.array.shape[:-1]
        if self.channels not in (1, 2, 4) or shape + (self.channels,) * (self.channels > 1) != (
            self.array.shape
        ):
            raise ValueError("a texture has 1, 2 or 4 channels, the last axis of its array")
        layers, shape = (shape[0], shape[1:]) if self.layered else (0, shape)
        if not 1 <= len(shape) <= (2 if layers else 3) or self.array.size > 1 << 30:
            raise ValueError("a texture has one to three dimensions and at most 2^30 texels")
        if kind not in _TYPES or element not in ((2, 4) if kind == "f" else (1, 2, 4)):
            raise ValueError(f"no texture has elements of type {self.array.dtype}")
        if self.reads_normalized and (kind == "f" or element == 4):
            raise ValueError("only integers of 8 or 16 bits are read as 0 to 1")
        if self.linear and kind != "f" and not self.reads_normalized:
            raise ValueError("linear filtering takes floats, or integers read as 0 to 1")
        made = np.zeros((), TEXTURE)
        made["magic"], made["address"] = TEXTURE_MAGIC, address
        made["extents"] = (*reversed(shape), 1, 1)[:3]
        made["layers"], made["pitch"] = layers, shape[-1] * self.channels * element
        made["dimensions"], made["channels"] = len(shape), self.channels
        made["element"], made["type"] = element, _TYPES[kind]
        made["modes"][: len(shape)] = self.address
        for name in ("linear", "normalized", "reads_normalized"):
            made[name] = getattr(self, name)
        return bytearray(made.tobytes())
