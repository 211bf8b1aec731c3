"""The checks that run on the GPU: generating and verifying inputs, poison, comparison."""

from __future__ import annotations

import math
from typing import Any

import cupy
import numpy as np

from grader.backends.gpu.checks import checks_cubin
from grader.backends.probe import first_gpu_arch
from grader.errors import MachineError
from grader.model import ErrorStats, Mismatch, Size
from grader.problems import product as verify
from grader.problems.inputs import fresh_key

# The reference is cuBLAS in FP32, with rounding errors of its own: two errors, twice the tolerance.
REFERENCE_MARGIN = 2.0

_NAMES = (
    *("fill", "changed", "head_start", "poison", "differs"),
    *("norms", "compare", "signed_columns", "rows_times"),
)
_THREADS = 256
_DOT_THREADS = 128  # as norms and rows_times in checks.cu are written
_COLUMN_CHUNKS = 64
_WORDS = 16  # elements that a thread of fill and changed generates at a time
_NONE = (1 << 64) - 1


class Kernels:
    """Loaded once per worker; every call is asynchronous on ``stream`` except for its result."""

    def __init__(self, stream: Any) -> None:
        arch = first_gpu_arch()
        if arch is None:
            raise MachineError("no NVIDIA GPU here")
        module = cupy.RawModule(path=str(checks_cubin(arch)))
        self._functions = {name: module.get_function(name) for name in _NAMES}
        self._stream = stream

    def _launch(self, name: str, grid: tuple[int, ...], threads: int, *arguments: Any) -> None:
        self._functions[name](grid, (threads,), arguments, stream=self._stream)

    def _over(self, name: str, count: int, *arguments: Any) -> None:
        blocks = max(1, min(4096, -(-count // _THREADS)))
        self._launch(name, (blocks,), _THREADS, *arguments)

    def fill(self, out: Any, key: bytes) -> None:
        """The elements that ``inputs.values`` gives for this key."""
        self._over("fill", -(-out.size // _WORDS), out, np.uint64(out.size), *_words(key))

    def poison(self, out: Any, bits: int = verify.POISON) -> None:
        self._over("poison", out.size, out, np.uint64(out.size), np.uint32(bits))

    def changed(self, *made: tuple[Any, bytes]) -> list[tuple[int, int]]:
        """For each matrix: how many elements differ from those of its key, and the first such."""
        with self._stream:
            results = cupy.array([[0, _NONE]] * len(made), dtype=cupy.uint64)
            for (matrix, key), result in zip(made, results, strict=True):
                count = np.uint64(matrix.size)
                threads = -(-matrix.size // _WORDS)
                self._over("changed", threads, matrix, count, *_words(key), result)
            return [(int(count), int(first)) for count, first in results.get()]

    def differs(self, words: Any, bits: int) -> tuple[int, int]:
        with self._stream:
            result = cupy.array([0, _NONE], dtype=cupy.uint64)
            self._over("differs", words.size, words, np.uint64(words.size), np.uint32(bits), result)
            count, first = (int(v) for v in result.get())
        return count, first

    def head_start(self, microseconds: float) -> None:
        """Keep the GPU busy for this long, so that the host gets ahead of it."""
        self._launch("head_start", (1,), 1, np.uint64(1000 * microseconds))

    def freivalds(self, size: Size, a: Any, b: Any, c: Any) -> float:
        """How far C·x is from A·(B·x) for one vector of random signs, in FP64.

        1 is product.py's bound for such a sum of errors. Rounding stays far below it; one wrong
        element exceeds it by far. NaN when C holds one. The signs come from a key that is drawn
        here, after C is complete.
        """
        m, n, k = size.m, size.n, size.k
        with self._stream:
            signs = cupy.empty(n, dtype=cupy.float32)
            self.fill(signs, fresh_key())
            bx = self._signed_columns(b, k, n, signs)
            abx = cupy.empty(m)
            self._launch("rows_times", (m,), _DOT_THREADS, a, np.int32(k), bx, abx)
            cx = self._signed_columns(c, m, n, signs)
            rows, columns = self._norms(a, m, k), self._norms(b, n, k)
            got, want = cx.get(), abx.get()
            bounds = verify.freivalds_bounds(k, rows.get(), columns.get())
        return float(np.max(np.abs(got - want) / bounds))

    def _signed_columns(self, matrix: Any, length: int, columns: int, signs: Any) -> Any:
        out = cupy.zeros(length)
        grid = (-(-length // _THREADS), min(columns, _COLUMN_CHUNKS))
        arguments = (matrix, np.int32(length), np.int32(columns), signs, out)
        self._launch("signed_columns", grid, _THREADS, *arguments)
        return out

    def _norms(self, vectors: Any, count: int, length: int) -> Any:
        out = cupy.empty(count)
        self._launch("norms", (count,), _DOT_THREADS, vectors, np.int32(length), out)
        return out

    def compare(self, size: Size, a: Any, b: Any, got: Any, want: Any) -> ErrorStats:
        """Compare C with the reference, by product.py's criterion with room for both errors."""
        tolerance = REFERENCE_MARGIN * verify.tolerance(size.k)
        with self._stream:
            rows, columns = self._norms(a, size.m, size.k), self._norms(b, size.n, size.k)
            result = cupy.array([0, _NONE, 0, 0], dtype=cupy.uint64)
            squares = cupy.zeros(1)
            self._over(
                "compare",
                got.size,
                got,
                want,
                rows,
                columns,
                np.int32(size.m),
                np.int32(size.n),
                np.float64(math.sqrt(size.k)),
                np.float64(tolerance),
                result,
                squares,
            )
            wrong, first, bad, largest = (int(v) for v in result.get())
            mean = float(squares.get()[0]) / (size.m * size.n)
        error = float(np.array([largest], np.uint64).view(np.float64)[0])
        stats = ErrorStats(
            max=None if bad else error,
            rms=None if bad else math.sqrt(mean),
            tolerance=tolerance,
            wrong=wrong,
            first_mismatch=None,
            tile_map=(),
            tile_edge=verify.tile_edge(size.m, size.n),
        )
        return stats if not wrong else self._located(size, stats, first, a, b, got, want)

    def _located(
        self, size: Size, stats: ErrorStats, first: int, a: Any, b: Any, got: Any, want: Any
    ) -> ErrorStats:
        """Add the first mismatch and the map of wrong tiles; only wrong answers cost this time."""
        row, column = divmod(first, size.n)
        host, reference = got.get(), want.get()
        rows = np.linalg.norm(a.get().reshape(size.m, size.k).astype(np.float64), axis=1)
        columns = np.linalg.norm(b.get().reshape(size.n, size.k).astype(np.float64), axis=1)
        scale = np.outer(columns, rows) / math.sqrt(size.k)
        with np.errstate(invalid="ignore"):
            error = np.abs(host.astype(np.float64) - reference).reshape(size.n, size.m) / scale
        place = row + column * size.m
        value = float(host[place])
        return ErrorStats(
            max=stats.max,
            rms=stats.rms,
            tolerance=stats.tolerance,
            wrong=stats.wrong,
            first_mismatch=Mismatch(
                row=row,
                col=column,
                got=value if math.isfinite(value) else None,
                want=float(reference[place]),
                got_text=f"{value:.9g}",
            ),
            tile_map=verify.tile_map(~(error <= stats.tolerance).T),
            tile_edge=stats.tile_edge,
        )


def _words(key: bytes) -> tuple[np.uint64, ...]:
    """A key in the form that ``fill`` and ``changed`` take."""
    return tuple(np.frombuffer(key, np.uint64))
