"""Kernels of Numba: its compiler makes their PTX."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import cuda

from ptxsim.launching import Argument, Module, Shape
from ptxsim.report import Report
from ptxsim.tensor_maps import Output


class Kernel:
    """``Kernel(function, signature)[blocks, threads](…)``; options: ``Module``'s."""

    def __init__(
        self, function: Callable[..., None], signature: Any, capability: int = 80, **options: Any
    ) -> None:
        ptx, _ = cuda.compile_ptx(function, signature, cc=divmod(capability, 10), lineinfo=True)
        module = Module(ptx, **options)
        self.kernel = module.kernel(module.kernels[0])

    def __getitem__(self, shape: Shape) -> Callable[..., Report]:
        def launch(*arguments: Argument, **options: Any) -> Report:
            given = (part for each in arguments for part in _parts(each))
            return self.kernel[shape](*given, **options)

        return launch


def _parts(argument: Argument) -> Iterator[Argument]:
    """The parameters that an array becomes: owners, size, element's size, data, shape, strides."""
    array = argument.array if isinstance(argument, Output) else argument
    if isinstance(array, np.ndarray):
        yield from (0, 0, array.size, array.itemsize, argument, *array.shape, *array.strides)
    else:
        yield argument
