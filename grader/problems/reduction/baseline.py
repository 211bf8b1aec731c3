"""CUB's DeviceReduce::Sum, compiled once for each GPU architecture from the toolchain's headers.

The library has the CUDA runtime linked in. Runtimes of one process share the GPU's primary context,
so it takes CuPy's pointers and streams.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_size_t, c_void_p
from pathlib import Path

from grader.errors import MachineError
from grader.problems.operands import Launch
from grader.toolchain.own_cuda import own_cuda

_SOURCE = Path(__file__).with_name("cub.cu")
_FLAGS = ("-O3", "-shared", "-Xcompiler=-fPIC", "-cudart=static")


def library(arch: str) -> Path:
    """The compiled library. Raises ToolchainError."""
    return own_cuda(_SOURCE, arch, _FLAGS, ".so")


class Cub:
    def __init__(self, path: Path, stream: int) -> None:
        """``stream``: a handle of the driver."""
        self._library = ctypes.CDLL(str(path))
        self._stream = stream

    @property
    def version(self) -> str:
        """Such as "3.0.1", whose number is 300001."""
        number = self._library.cub_version()
        return f"{number // 100000}.{number // 100 % 1000}.{number % 100}"

    def workspace_bytes(self, n: int) -> int:
        bytes_ = c_size_t()
        _check(self._library.cub_workspace(c_int(n), byref(bytes_)))
        return bytes_.value

    def sum(self, source: int, target: int, n: int, workspace: int, size: int) -> Launch:
        """All but ``n`` and ``size``, the workspace's bytes, are device pointers."""
        arguments = (
            c_void_p(workspace),
            c_size_t(size),
            c_void_p(source),
            c_void_p(target),
            c_int(n),
            c_void_p(self._stream),
        )
        return lambda: _check(self._library.cub_sum(*arguments))


def _check(error: int) -> None:
    if error:
        raise MachineError(f"CUB failed: CUDA error {error}")
