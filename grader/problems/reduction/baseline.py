"""CUB's DeviceReduce::Sum, from the headers that come with nvcc."""

from __future__ import annotations

from ctypes import CDLL, byref, c_int, c_size_t, c_void_p

from grader.errors import MachineError
from grader.model import phrase
from grader.problems.operands import Launch


class Cub:
    def __init__(self, library: CDLL, stream: int) -> None:
        """``library``: cub.cu, compiled. ``stream``: a handle of the driver."""
        self._library = library
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
        raise MachineError(phrase("CUB failed: CUDA error {why}", why=str(error)))
