"""cuBLAS as the baseline: the fastest of cublasSgemm and cublasLt's candidates for one size.

It calls the C interface of the libraries that CuPy loads: CUDA 12 and 13 have the same few
functions, and nothing needs to be compiled. All products are FP32 without TF32. In BLAS terms the
lab's layout is op T / op N with lda = ldb = K, ldc = M.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p

from grader.errors import MachineError
from grader.model import Mnk

WORKSPACE_BYTES = 64 << 20
_CANDIDATES = 8
_OP_N, _OP_T = 0, 1
_PEDANTIC = 2  # CUBLAS_PEDANTIC_MATH
_COMPUTE_32F, _REAL_32F = 68, 0
_DESC_TRANSA = 3
_PREFERENCE_WORKSPACE = 1

# Launches one product into C, on the stream given to Cublas.
Product = Callable[[], None]


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

    def sgemm(self, size: Mnk, a: int, b: int, c: int) -> Product:
        """cublasSgemm with these pointers."""
        arguments = (
            self._handle,
            c_int(_OP_T),
            c_int(_OP_N),
            c_int(size.m),
            c_int(size.n),
            c_int(size.k),
            byref(self._one),
            c_void_p(a),
            c_int(size.k),
            c_void_p(b),
            c_int(size.k),
            byref(self._zero),
            c_void_p(c),
            c_int(size.m),
        )
        return lambda: self._call(self._blas.cublasSgemm_v2, *arguments)

    def candidates(self, size: Mnk, a: int, b: int, c: int) -> dict[str, Product]:
        """cublasLt's heuristic choices, best guess first, by the name the result gives them."""
        description = c_void_p()
        self._call(
            self._lt.cublasLtMatmulDescCreate,
            byref(description),
            c_int(_COMPUTE_32F),
            c_int(_REAL_32F),
        )
        transpose = c_int32(_OP_T)
        self._call(
            self._lt.cublasLtMatmulDescSetAttribute,
            description,
            c_int(_DESC_TRANSA),
            byref(transpose),
            c_size_t(4),
        )
        layouts = [
            self._layout(size.k, size.m),
            self._layout(size.k, size.n),
            self._layout(size.m, size.n),
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
        pointers = (c_void_p(a), c_void_p(b), c_void_p(c))
        return {
            f"cublasLt {index + 1}": self._product(description, layouts, pointers, found[index])
            for index in range(count.value)
            if found[index].state == 0
        }

    def _layout(self, rows: int, columns: int) -> c_void_p:
        layout = c_void_p()
        self._call(
            self._lt.cublasLtMatrixLayoutCreate,
            byref(layout),
            c_int(_REAL_32F),
            c_uint64(rows),
            c_uint64(columns),
            c_int64(rows),
        )
        return layout

    def _product(
        self,
        description: c_void_p,
        layouts: list[c_void_p],
        pointers: tuple[c_void_p, c_void_p, c_void_p],
        choice: _Heuristic,
    ) -> Product:
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
