"""Kernels of Numba: its compiler makes their PTX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np

from ptxsim.adapters import Adapted
from ptxsim.launching import Argument, Module
from ptxsim.nvcc import CompileError
from ptxsim.tensor_maps import Output

_REMEDY = "pip install 'numba-cuda[cu13]' brings it, nvidia-cuda-nvrtc and nvidia-nvvm"
try:
    from cuda.pathfinder import DynamicLibNotFoundError
    from numba import cuda
except ImportError as error:
    raise type(error)(f"{error}; {_REMEDY}") from None


def kernel(
    function: Callable[..., None], signature: Any, capability: int = 80, **options: Any
) -> Adapted:
    """``kernel(function, signature)[blocks, threads](…)``; options: ``Module``'s. Raises
    CompileError where a library of Numba's is missing."""
    # Without a driver nothing else says for what GPU the device functions are.
    cc = divmod(capability, 10)
    device = SimpleNamespace(compute_capability=cc)
    try:
        with patch("numba.cuda.dispatcher.get_current_device", lambda: device):
            ptx, _ = cuda.compile_ptx(function, signature, cc=cc, lineinfo=True)
    except DynamicLibNotFoundError as error:
        raise CompileError(f"{str(error).splitlines()[0]}; {_REMEDY}") from None
    module = Module(ptx, **options)
    return Adapted(module.kernel(module.kernels[0]), lambda shape: shape, _parameters)


def _parameters(arguments: Sequence[Argument]) -> Iterator[Argument]:
    """For an array: its owners, size, element's size, data, shape and strides."""
    for each in arguments:
        array = each.array if isinstance(each, Output) else each
        if isinstance(array, np.ndarray):
            yield from (0, 0, array.size, array.itemsize, each, *array.shape, *array.strides)
        else:
            yield each
