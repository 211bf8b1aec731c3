"""A kind's fragments on the GPU, with tensor maps from the driver."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fragments.kind import Arguments, Kind, results
from ptxsim.tensor_maps import MAP_BYTES, TensorMap


def run(cubin: Path, kind: Kind, arguments: Arguments) -> NDArray[Any]:
    """The results; the arguments stay as they are."""
    import cupy  # there only with a GPU

    copies: dict[int, Any] = {}

    def there(array: NDArray[Any]) -> Any:
        return copies.setdefault(id(array), cupy.asarray(array))

    def passed(argument: Any) -> Any:
        if not isinstance(argument, list):
            return there(argument)
        return there(np.stack([_encoded(each, there(each.array).data.ptr) for each in argument]))

    given = tuple(passed(argument) for argument in arguments)
    function = cupy.RawModule(path=str(cubin)).get_function(kind.kernel)
    function((kind.blocks,), (kind.threads,), given)
    result: NDArray[Any] = there(results(arguments)).get()
    return result


def _encoded(request: TensorMap, address: int) -> NDArray[np.uint8]:
    """The driver's map."""
    rank = len(request.extents)
    steps = tuple(request.steps) or (1,) * rank
    made = np.zeros(MAP_BYTES + 64, np.uint8)
    made = made[-made.ctypes.data % 64 :][:MAP_BYTES]
    error = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled(
        ctypes.c_void_p(made.ctypes.data),
        int(request.type),
        rank,
        ctypes.c_void_p(address + request.offset),
        (ctypes.c_uint64 * rank)(*request.extents),
        (ctypes.c_uint64 * rank)(*request.strides),
        (ctypes.c_uint32 * rank)(*request.box),
        (ctypes.c_uint32 * rank)(*steps),
        0,  # no interleaving
        int(request.swizzle),
        0,  # no promotion
        int(request.fills_nan),
    )
    if error:
        raise ValueError(f"cuTensorMapEncodeTiled returned {error} for {request}")
    return made
