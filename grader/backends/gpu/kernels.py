"""What runs on the GPU for every problem: inputs are made and checked, memory is poisoned."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import CDLL
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from grader.backends.gpu.checks import checks_cubin, host_library
from grader.backends.probe import first_gpu_arch
from grader.errors import MachineError
from grader.model import phrase
from grader.problems.comparison import POISON
from grader.problems.operands import EXPOSING, Exposing, Operand, Values

_NAMES = ("fill", "changed", "head_start", "poison", "differs")
_THREADS = 256
CHECKS = Path(__file__).with_name("checks.cu")
_WORDS = 16  # elements that a thread of fill and changed generates at a time
# What an array holds, by its type in NumPy; only BF16 is stored as whole numbers.
_FORMATS = {"float32": 0, "float16": 1, "uint16": 2}
_NONE = (1 << 64) - 1


class Kernels:
    """Loaded once per worker; every call is asynchronous on ``stream`` except for its result."""

    def __init__(self, stream: Any) -> None:
        arch = first_gpu_arch()
        if arch is None:
            raise MachineError(phrase("no NVIDIA GPU here"))
        self._arch = arch
        self.stream = stream
        module = self.functions(CHECKS)
        self._functions = {name: module.get_function(name) for name in _NAMES}

    def functions(self, source: Path) -> Any:
        """A module: CUDA C++ of ours, compiled for this GPU."""
        return cupy.RawModule(path=str(checks_cubin(self._arch, source)))

    def library(self, source: Path) -> CDLL:
        return CDLL(str(host_library(self._arch, source)))

    def _launch(self, name: str, grid: tuple[int, ...], threads: int, *arguments: Any) -> None:
        self._functions[name](grid, (threads,), arguments, stream=self.stream)

    def _over(self, name: str, count: int, *arguments: Any) -> None:
        blocks = max(1, min(4096, -(-count // _THREADS)))
        self._launch(name, (blocks,), _THREADS, *arguments)

    def fill(self, out: Any, key: bytes, values: Values = EXPOSING) -> None:
        """The elements that ``inputs.values`` gives for this key."""
        target = out if out.dtype.name in _FORMATS else cupy.empty(out.size, cupy.float32)
        threads = -(-out.size // _WORDS)
        kind = (*_kind(values), _format(target))
        self._over("fill", threads, target, np.uint64(out.size), *_words(key), *kind)
        if target is not out:
            out[:] = target.astype(out.dtype)

    def poison(self, out: Any, bits: int = POISON) -> None:
        self._over("poison", out.size, out, np.uint64(out.size), np.uint32(bits))

    def changed(
        self, operands: Sequence[Operand], arrays: Sequence[Any], keys: Sequence[bytes]
    ) -> list[tuple[int, int]]:
        """For each input: how many elements differ from those of its key, and the first such."""
        with self.stream:
            results = cupy.array([[0, _NONE]] * len(keys), dtype=cupy.uint64)
            for operand, array, key, result in zip(operands, arrays, keys, results, strict=True):
                if array.dtype.name in _FORMATS:
                    kind = (*_kind(operand.values), _format(array))
                    arguments = (*_words(key), *kind, result)
                    threads = -(-array.size // _WORDS)
                    self._over("changed", threads, array, np.uint64(array.size), *arguments)
                else:
                    self._changed(operand, array, key, result)
            return [(int(count), int(first)) for count, first in results.get()]

    def _changed(self, operand: Operand, array: Any, key: bytes, result: Any) -> None:
        """The same for elements of other formats."""
        original = cupy.empty_like(array)
        self.fill(original, key, operand.values)
        bits = f"u{array.itemsize}"
        differs = array.view(bits) != original.view(bits)
        result[0] = differs.sum()
        result[1] = cupy.where(differs.any(), differs.argmax(), _NONE)

    def differs(self, words: Any, bits: int) -> tuple[int, int]:
        with self.stream:
            result = cupy.array([0, _NONE], dtype=cupy.uint64)
            self._over("differs", words.size, words, np.uint64(words.size), np.uint32(bits), result)
            count, first = (int(v) for v in result.get())
        return count, first

    def head_start(self, microseconds: float) -> None:
        """Keep the GPU busy for this long, so that the host gets ahead of it."""
        self._launch("head_start", (1,), 1, np.uint64(1000 * microseconds))


def _format(array: Any) -> np.uint32:
    return np.uint32(_FORMATS[array.dtype.name])


def _kind(values: Values) -> tuple[Any, ...]:
    """What ``Kind`` in checks.cu holds, but for the format."""
    if isinstance(values, Exposing):
        return np.uint32(0), np.uint32(0), np.uint32(0), np.float32(0), np.uint32(0)
    return (
        np.uint32(1),
        np.uint32((1 << values.bits) - 1),
        np.uint32(values.least),
        np.float32(2.0**values.exponent),
        np.uint32(values.signed),
    )


def _words(key: bytes) -> tuple[np.uint64, ...]:
    """A key in the form that ``fill`` and ``changed`` take."""
    return tuple(np.frombuffer(key, np.uint64))
