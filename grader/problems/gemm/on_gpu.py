"""The product on a GPU: cuBLAS as reference and baseline, Freivalds' check as its proof.

The reference is always FP32. Of inputs in FP16 or BF16 it is cublasGemmEx's, with sums and result
in FP32; the baselines round their results as a submission does, so they cannot stand in for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np
from cupy_backends.cuda.libs import cublas as _loads_the_libraries  # noqa: F401

from grader.base import ErrorStats, MachineError
from grader.problems.comparison import compare, tile_edge
from grader.problems.expected import Expected
from grader.problems.gemm.cublas import CANDIDATES, WORKSPACE_BYTES, Cublas, types_for
from grader.problems.gemm.gemm import CHECKS, REFERENCE_MARGIN, Gemm
from grader.problems.gemm.layout import tolerance
from grader.problems.gemm.products import freivalds_bounds
from grader.problems.inputs import fresh_key
from grader.problems.operands import Launcher, Operand, Steps, Tools
from ptxsim.plan import Size

_SGEMM, _GEMM_EX = "cublasSgemm", "cublasGemmEx"
# As checks.cu numbers the formats of a matrix, by NumPy's type.
_FORMATS = {"float32": np.int32(0), "float16": np.int32(1), "uint16": np.int32(2)}
_SIGNS = Steps(bits=0, least=1)
_THREADS = 256
_DOT_THREADS = 128  # as norms and rows_times in checks.cu are written
_COLUMN_CHUNKS = 64


class GemmOnGpu:
    def __init__(self, problem: Gemm, tools: Tools) -> None:
        self._problem = problem
        self._tools = tools
        self._kernels = tools.functions(CHECKS)
        self._workspace = cupy.empty(WORKSPACE_BYTES, dtype=cupy.uint8)
        kind = problem.kind
        self._types = types_for(kind, kind, problem.sums)
        self._into_floats = types_for(kind, "f32", "f32")
        self._cublas = Cublas(tools.stream.ptr, int(self._workspace.data.ptr), self._types)
        self._floats: Any = None  # the reference, where the outputs are not FP32
        self._load_cublas()

    def _load_cublas(self) -> None:
        """cuBLAS loads its code at its first product: here, while the submission is compiled."""
        size = Size.of(m=1, n=1, k=1)
        few = [cupy.zeros(1, each.element.dtype) for each in self._problem.operands(size)]
        self.refer(size, few[:2], few[2:])

    @property
    def baselines_are_right(self) -> bool:
        return self._types.single

    @property
    def library(self) -> str:
        # A candidate's name is its place in the list, which depends on what was asked for.
        asked = f"{CANDIDATES} candidates, {WORKSPACE_BYTES >> 20} MB"
        return f"cuBLAS {self._cublas.version}, {asked}"

    def baselines(
        self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> dict[str, Launcher]:
        pointers = _pointers(inputs, outputs)
        layout, admitted = self._problem.layout, self._problem.admitted
        found: dict[str, Launcher] = {}
        if admitted != "cublaslt" and self._types.single:
            found[_SGEMM] = self._cublas.sgemm(layout, size, *pointers)
        elif admitted != "cublaslt":
            found[_GEMM_EX] = self._cublas.gemm_ex(layout, size, self._types, *pointers)
        if admitted != "cublas":
            found |= self._cublas.candidates(layout, size, *pointers)
        if not found:
            raise MachineError.saying("cublasLt offers nothing for {size}", size=str(size))
        return found

    def refer(self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        layout = self._problem.layout
        if self._types.single:
            self._cublas.sgemm(layout, size, *_pointers(inputs, outputs))()
            return
        if self._floats is None or self._floats.size != outputs[0].size:
            self._floats = None  # its memory first
            self._floats = cupy.empty(outputs[0].size, dtype=cupy.float32)
        pointers = _pointers(inputs, (self._floats,))
        self._cublas.gemm_ex(layout, size, self._into_floats, *pointers)()

    def _reference(self, outputs: Sequence[Any]) -> Any:
        """Where ``refer`` left it."""
        return outputs[0] if self._types.single else self._floats

    def prove(self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]) -> float:
        """Freivalds: how far C·x is from A·(B·x) for one vector of random signs, in FP64.

        1 is ``freivalds_bounds``. Rounding stays far below it; one wrong element exceeds it by far.
        NaN when C holds one. The signs come from a key that is drawn here, after C is complete.
        """
        m, n, k = size.extents
        (a, b), c = inputs, self._reference(outputs)
        of_a, of_b, of_c = map(_strides, self._problem.operands(size))
        signs = cupy.empty(n, dtype=cupy.float32)
        self._tools.fill(signs, fresh_key(), _SIGNS)
        bx = self._signed_columns(b, (k, n), of_b, signs)
        abx = cupy.empty(m)
        arguments = (a, bx, abx, _format(a), np.int32(k), *of_a)
        self._launch("rows_times", (m,), _DOT_THREADS, *arguments)
        cx = self._signed_columns(c, (m, n), of_c, signs)
        rows, columns = self._norms(size, inputs)
        bounds = freivalds_bounds(tolerance(k, self._problem.numbers), k, rows.get(), columns.get())
        return float(np.max(np.abs(cx.get() - abx.get()) / bounds))

    def compare(
        self, size: Size, inputs: Sequence[Any], got: Sequence[Any], want: Sequence[Any]
    ) -> ErrorStats:
        """Compare by the problem's criterion, with room for the errors of both."""
        m, n, k = size.extents
        target, reference = self._problem.operands(size)[2], self._reference(want)
        most, rounded, fixed = self._problem.criterion(k, REFERENCE_MARGIN)
        rows, columns = self._norms(size, inputs)
        result, squares = cupy.zeros(3, dtype=cupy.uint64), cupy.zeros(1)
        blocks = max(1, min(4096, -(-m * n // _THREADS)))
        self._launch(
            "compare",
            (blocks,),
            _THREADS,
            *(got[0], reference, rows, columns, result, squares),
            *(_format(got[0]), np.int32(m), np.int32(n), *_strides(target)),
            *map(np.float64, (math.sqrt(k), fixed, rounded, most)),
        )
        wrong, bad, largest = (int(each) for each in result.get())
        if wrong:  # only wrong answers cost the time for a picture
            right = target.logical(reference).astype(np.float64)
            scale = cupy.outer(rows, columns) / math.sqrt(k) + rounded * cupy.abs(right)
            expected = Expected(want=right, scale=fixed or scale)
            return compare(cupy, target, got[0], expected, most)
        error = float(np.array([largest], np.uint64).view(np.float64)[0])
        return ErrorStats(
            max=None if bad else error,
            rms=None if bad else math.sqrt(float(squares.get()[0]) / (m * n)),
            tolerance=most,
            wrong=0,
            operand=target.name,
            shape=target.shape,
            first_mismatch=None,
            tile_map=(),
            tile_edge=tile_edge(target.shape),
        )

    def _norms(self, size: Size, inputs: Sequence[Any]) -> tuple[Any, Any]:
        """Return the norms of the rows of A and of the columns of B."""
        m, n, k = size.extents
        of_a, of_b, _ = map(_strides, self._problem.operands(size))
        rows, columns = cupy.empty(m), cupy.empty(n)
        a, b, length = *inputs, np.int32(k)
        self._launch("norms", (m,), _DOT_THREADS, a, rows, _format(a), length, *of_a)
        self._launch("norms", (n,), _DOT_THREADS, b, columns, _format(b), length, *of_b[::-1])
        return rows, columns

    def _signed_columns(
        self, matrix: Any, shape: tuple[int, int], strides: tuple[np.int64, np.int64], signs: Any
    ) -> Any:
        """The matrix times the signs."""
        rows, columns = shape
        out = cupy.zeros(rows)
        grid = (-(-rows // _THREADS), min(columns, _COLUMN_CHUNKS))
        extents = np.int32(rows), np.int32(columns)
        arguments = (matrix, signs, out, _format(matrix), *extents, *strides)
        self._launch("signed_columns", grid, _THREADS, *arguments)
        return out

    def _launch(self, name: str, grid: tuple[int, ...], threads: int, *arguments: Any) -> None:
        function = self._kernels.get_function(name)
        function(grid, (threads,), arguments, stream=self._tools.stream)


def _format(matrix: Any) -> np.int32:
    return _FORMATS[matrix.dtype.name]


def _strides(operand: Operand) -> tuple[np.int64, np.int64]:
    """From a row to the next, and from a column to the next, in elements."""
    rows, columns = operand.shape
    down, across = (columns, 1) if operand.order == "row" else (1, rows)
    return np.int64(down), np.int64(across)


def _pointers(inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[int, int, int]:
    a, b, c = (int(each.data.ptr) for each in (*inputs, *outputs))
    return a, b, c
