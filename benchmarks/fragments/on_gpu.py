"""A kind's fragments on the GPU, with tensor maps from the driver."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fragments.kind import Kind, results
from ptxsim import TensorMap
from ptxsim.tensor_maps import MAP_BYTES

_MAP_ALIGNMENT = 64


def run(cubin: Path, kind: Kind) -> NDArray[Any]:
    """The results. Raises ValueError for tensor maps that the driver refuses."""
    import cupy  # there only with a GPU

    arguments = kind.arguments()
    copies: dict[int, Any] = {}  # of the arrays, by their identity

    def there(array: NDArray[Any]) -> Any:
        if id(array) not in copies:
            copies[id(array)] = cupy.asarray(array)
        return copies[id(array)]

    def passed(argument: Any) -> Any:
        if not isinstance(argument, list):
            return there(argument)
        addresses = [there(each.array).data.ptr for each in argument]
        return cupy.asarray(_encoded(argument, addresses))

    given = tuple(passed(argument) for argument in arguments)
    function = cupy.RawModule(path=str(cubin)).get_function(kind.kernel)
    function((kind.blocks,), (kind.threads,), given)
    result: NDArray[Any] = there(results(arguments)).get()
    return result


def _encoded(requests: list[TensorMap], addresses: list[int]) -> NDArray[np.uint8]:
    """The driver's maps, for arrays at these addresses."""
    driver = ctypes.CDLL("libcuda.so.1")
    maps = np.zeros((len(requests), MAP_BYTES), np.uint8)
    room = ctypes.create_string_buffer(MAP_BYTES + _MAP_ALIGNMENT)
    start = -ctypes.addressof(room) % _MAP_ALIGNMENT
    refused = []
    for number, (request, address) in enumerate(zip(requests, addresses, strict=True)):
        rank = len(request.extents)
        error = driver.cuTensorMapEncodeTiled(
            ctypes.byref(room, start),
            int(request.type),
            rank,
            ctypes.c_void_p(address + request.offset),
            (ctypes.c_uint64 * rank)(*request.extents),
            (ctypes.c_uint64 * rank)(*request.strides),
            (ctypes.c_uint32 * rank)(*request.box),
            (ctypes.c_uint32 * rank)(*(request.steps or (1,) * rank)),
            0,  # no interleaving
            int(request.swizzle),
            0,  # no promotion
            int(request.fills_nan),
        )
        maps[number] = np.frombuffer(room.raw, np.uint8)[start : start + MAP_BYTES]
        if error:
            refused.append(described(request))
    if refused:
        raise ValueError(f"the driver refuses {len(refused)} maps: {refused[:3]}")
    return maps


def described(request: TensorMap) -> str:
    """What it asks for, but for the array."""
    return str({name: value for name, value in vars(request).items() if name != "array"})
