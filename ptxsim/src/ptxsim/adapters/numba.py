"""Kernels of Numba: its compiler makes their PTX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numba import cuda

from ptxsim.adapters import Adapted
from ptxsim.launching import Argument, Module
from ptxsim.tensor_maps import Output


def kernel(
    function: Callable[..., None], signature: Any, capability: int = 80, **options: Any
) -> Adapted:
    """``kernel(function, signature)[blocks, threads](…)``; options: ``Module``'s."""
    ptx, _ = cuda.compile_ptx(function, signature, cc=divmod(capability, 10), lineinfo=True)
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
