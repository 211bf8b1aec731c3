"""cuBLAS: cublasSgemm and cublasLt's candidates for one size and layout.

It calls the C interface of the libraries that CuPy loads: CUDA 12 and 13 have the same few
functions, and nothing needs to be compiled. All products are FP32 without TF32. cuBLAS knows
column-major matrices only; ``Call`` says in its terms what a layout asks for.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p

from grader.errors import MachineError
from grader.model import Record, Size
from grader.problems.gemm.layout import Layout
from grader.problems.operands import Launch

WORKSPACE_BYTES = 64 << 20
_CANDIDATES = 8
_OP_N, _OP_T = 0, 1
_PEDANTIC = 2  # CUBLAS_PEDANTIC_MATH
_COMPUTE_32F, _REAL_32F = 68, 0
_DESC_TRANSA, _DESC_TRANSB = 3, 4
_PREFERENCE_WORKSPACE = 1


class Call(Record):
    """One product of column-major matrices: ``op(X)·op(Y)``, ``rows`` × ``columns``.

    A row-major matrix is its transpose to cuBLAS. So an input needs op T where its order is not
    column-major, and a row-major C is Bᵀ·Aᵀ: X is B then, and every op is the other one.
    """

    swapped: bool  # X is B, and Y is A
    transposed: tuple[bool, bool]  # op(X), op(Y)
    rows: int  # of the result
    columns: int
    depth: int
    leading: tuple[int, int, int]  # of X, Y and the result


def call_for(layout: Layout, size: Size) -> Call:
    m, n, k = size.extents
    a = layout.A == "row", k if layout.A == "row" else m
    b = layout.B == "row", n if layout.B == "row" else k
    if layout.C == "col":
        return Call(
            swapped=False,
            transposed=(a[0], b[0]),
            rows=m,
            columns=n,
            depth=k,
            leading=(a[1], b[1], m),
        )
    return Call(
        swapped=True,
        transposed=(not b[0], not a[0]),
        rows=n,
        columns=m,
        depth=k,
        leading=(b[1], a[1], n),
    )


class _Heuristic(ctypes.Structure):
    _fields_ = (
        ("algorithm", c_uint64 * 8),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    )


def _library(name: str) -> ctypes.CDLL:
    for version in (13, 12):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(f"lib{name}.so.{version}")
    raise MachineError(
        f"lib{name} cannot be loaded: install the CuPy extra with its CUDA libraries"
    )


class Cublas:
    """Handles bound to one stream, and a workspace.

    ``stream`` and ``workspace`` are device handles as integers. Import CuPy's cuBLAS first, so that
    the libraries are found. Raises MachineError when a call fails.
    """

    def __init__(self, stream: int, workspace: int) -> None:
        self._blas = _library("cublas")
        self._lt = _library("cublasLt")
        self._stream = stream
        self._workspace = workspace
        self._one, self._zero = c_float(1.0), c_float(0.0)
        self._handle = c_void_p()
        self._lt_handle = c_void_p()
        self._call(self._blas.cublasCreate_v2, byref(self._handle))
        self._call(self._blas.cublasSetStream_v2, self._handle, c_void_p(stream))
        self._call(self._blas.cublasSetMathMode, self._handle, c_int(_PEDANTIC))
        self._call(self._lt.cublasLtCreate, byref(self._lt_handle))

    @staticmethod
    def _call(function: Callable[..., int], *arguments: object) -> None:
        status = function(*arguments)
        if status:
            raise MachineError(f"cuBLAS failed: {getattr(function, '__name__', '?')}: {status}")

    @property
    def version(self) -> str:
        """cublasLt's version number, such as "130100"."""
        self._lt.cublasLtGetVersion.restype = c_size_t
        return str(self._lt.cublasLtGetVersion())

    def sgemm(self, layout: Layout, size: Size, a: int, b: int, c: int) -> Launch:
        """cublasSgemm with these pointers."""
        call = call_for(layout, size)
        x, y = (b, a) if call.swapped else (a, b)
        arguments = (
            self._handle,
            *(c_int(_OP_T if flag else _OP_N) for flag in call.transposed),
            c_int(call.rows),
            c_int(call.columns),
            c_int(call.depth),
            byref(self._one),
            c_void_p(x),
            c_int(call.leading[0]),
            c_void_p(y),
            c_int(call.leading[1]),
            byref(self._zero),
            c_void_p(c),
            c_int(call.leading[2]),
        )
        return lambda: self._call(self._blas.cublasSgemm_v2, *arguments)

    def candidates(self, layout: Layout, size: Size, a: int, b: int, c: int) -> dict[str, Launch]:
        """cublasLt's heuristic choices, best guess first, by the name the result gives them."""
        call = call_for(layout, size)
        description = c_void_p()
        self._call(
            self._lt.cublasLtMatmulDescCreate,
            byref(description),
            c_int(_COMPUTE_32F),
            c_int(_REAL_32F),
        )
        for attribute, flag in zip((_DESC_TRANSA, _DESC_TRANSB), call.transposed, strict=True):
            operation = c_int32(_OP_T if flag else _OP_N)
            self._call(
                self._lt.cublasLtMatmulDescSetAttribute,
                description,
                c_int(attribute),
                byref(operation),
                c_size_t(4),
            )
        first, second = call.transposed
        layouts = [
            self._layout(call.rows, call.depth, call.leading[0], transposed=first),
            self._layout(call.depth, call.columns, call.leading[1], transposed=second),
            self._layout(call.rows, call.columns, call.leading[2], transposed=False),
        ]
        preference = c_void_p()
        self._call(self._lt.cublasLtMatmulPreferenceCreate, byref(preference))
        limit = c_size_t(WORKSPACE_BYTES)
        self._call(
            self._lt.cublasLtMatmulPreferenceSetAttribute,
            preference,
            c_int(_PREFERENCE_WORKSPACE),
            byref(limit),
            c_size_t(8),
        )
        found = (_Heuristic * _CANDIDATES)()
        count = c_int(0)
        status = self._lt.cublasLtMatmulAlgoGetHeuristic(
            self._lt_handle,
            description,
            layouts[0],
            layouts[1],
            layouts[2],
            layouts[2],
            preference,
            c_int(_CANDIDATES),
            found,
            byref(count),
        )
        if status:  # no candidate at this size: only cublasSgemm is left
            return {}
        x, y = (b, a) if call.swapped else (a, b)
        pointers = (c_void_p(x), c_void_p(y), c_void_p(c))
        return {
            f"cublasLt {index + 1}": self._product(description, layouts, pointers, found[index])
            for index in range(count.value)
            if found[index].state == 0
        }

    def _layout(self, rows: int, columns: int, leading: int, *, transposed: bool) -> c_void_p:
        """rows, columns: after the operation; the descriptor has them as they are stored."""
        stored = (columns, rows) if transposed else (rows, columns)
        layout = c_void_p()
        self._call(
            self._lt.cublasLtMatrixLayoutCreate,
            byref(layout),
            c_int(_REAL_32F),
            c_uint64(stored[0]),
            c_uint64(stored[1]),
            c_int64(leading),
        )
        return layout

    def _product(
        self,
        description: c_void_p,
        layouts: list[c_void_p],
        pointers: tuple[c_void_p, c_void_p, c_void_p],
        choice: _Heuristic,
    ) -> Launch:
        a, b, c = pointers
        arguments = (
            self._lt_handle,
            description,
            byref(self._one),
            a,
            layouts[0],
            b,
            layouts[1],
            byref(self._zero),
            c,
            layouts[2],
            c,
            layouts[2],
            byref(choice),
            c_void_p(self._workspace),
            c_size_t(choice.workspace),
            c_void_p(self._stream),
        )
        return lambda: self._call(self._lt.cublasLtMatmul, *arguments)
