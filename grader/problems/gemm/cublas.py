"""cuBLAS: cublasSgemm or cublasGemmEx, and cublasLt's candidates, for one size and layout.

It calls the C interface of the libraries that CuPy loads: CUDA 12 and 13 have the same few
functions, and nothing needs to be compiled. FP32 products are without TF32. Where sums are in FP32,
parts of a sum meet in FP32 too, as the lab asks it of students. cuBLAS knows column-major matrices
only; ``Call`` says in its terms what a layout asks for.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_int32, c_int64, c_size_t, c_uint16, c_uint64, c_void_p

from grader.errors import MachineError
from grader.model import Record, Size, phrase
from grader.problems.gemm.layout import Layout
from grader.problems.gemm.numbers import Format, Sum
from grader.problems.operands import Launch

WORKSPACE_BYTES = 64 << 20
_CANDIDATES = 8
_OP_N, _OP_T = 0, 1
_PEDANTIC, _FULL_REDUCTIONS = 2, 16  # CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION
_DEFAULT_ALGORITHM = -1  # of cublasGemmEx
_DESC_TRANSA, _DESC_TRANSB = 3, 4
_PREFERENCE_WORKSPACE, _PREFERENCE_REDUCTIONS = 1, 3
_REDUCTIONS_IN_SUMS = 2  # CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
_HALF_ONE = 0x3C00

# cudaDataType_t and cublasComputeType_t
_DATA: dict[Format, int] = {"f32": 0, "f16": 2, "bf16": 14}
_COMPUTE: dict[Sum, int] = {"f32": 68, "f16": 64}


class Types(Record):
    """Of the matrices, the result and the sums, as cuBLAS numbers them."""

    inputs: int  # cudaDataType_t
    result: int
    compute: int  # cublasComputeType_t
    scale: int  # cudaDataType_t of the factors alpha and beta
    single: bool  # everything is FP32

    @property
    def math_mode(self) -> int:
        """Pedantic math would keep FP16 from the tensor cores."""
        return _PEDANTIC if self.single else _FULL_REDUCTIONS if self.scale == _DATA["f32"] else 0

    def factors(self) -> tuple[c_float | c_uint16, c_float | c_uint16]:
        """One and zero."""
        if self.scale == _DATA["f32"]:
            return c_float(1.0), c_float(0.0)
        return c_uint16(_HALF_ONE), c_uint16(0)


def types_for(inputs: Format, result: Format, sums: Sum) -> Types:
    return Types(
        inputs=_DATA[inputs],
        result=_DATA[result],
        compute=_COMPUTE[sums],
        scale=_DATA[sums],
        single=inputs == result == "f32",
    )


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
        phrase(
            "lib{name} cannot be loaded: install the CuPy extra with its CUDA libraries", name=name
        )
    )


class Cublas:
    """Handles bound to one stream, and a workspace.

    ``stream`` and ``workspace`` are device handles as integers. ``types``: of the products of
    ``candidates``. Import CuPy's cuBLAS first, so that the libraries are found. Raises MachineError
    when a call fails.
    """

    def __init__(self, stream: int, workspace: int, types: Types) -> None:
        self._blas = _library("cublas")
        self._lt = _library("cublasLt")
        self._stream = stream
        self._workspace = workspace
        self._types = types
        self._one, self._zero = types.factors()
        self._handle = c_void_p()
        self._lt_handle = c_void_p()
        self._call(self._blas.cublasCreate_v2, byref(self._handle))
        self._call(self._blas.cublasSetStream_v2, self._handle, c_void_p(stream))
        self._call(self._blas.cublasSetMathMode, self._handle, c_int(types.math_mode))
        self._call(self._lt.cublasLtCreate, byref(self._lt_handle))

    @staticmethod
    def _call(function: Callable[..., int], *arguments: object) -> None:
        status = function(*arguments)
        if status:
            raise MachineError(
                phrase(
                    "cuBLAS failed: {function}: {status}",
                    function=getattr(function, "__name__", "?"),
                    status=status,
                )
            )

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

    def gemm_ex(self, layout: Layout, size: Size, types: Types, a: int, b: int, c: int) -> Launch:
        """cublasGemmEx with these pointers."""
        call = call_for(layout, size)
        x, y = (b, a) if call.swapped else (a, b)
        one, zero = types.factors()
        arguments = (
            self._handle,
            *(c_int(_OP_T if flag else _OP_N) for flag in call.transposed),
            c_int(call.rows),
            c_int(call.columns),
            c_int(call.depth),
            byref(one),
            c_void_p(x),
            c_int(types.inputs),
            c_int(call.leading[0]),
            c_void_p(y),
            c_int(types.inputs),
            c_int(call.leading[1]),
            byref(zero),
            c_void_p(c),
            c_int(types.result),
            c_int(call.leading[2]),
            c_int(types.compute),
            c_int(_DEFAULT_ALGORITHM),
        )
        return lambda: self._call(self._blas.cublasGemmEx, *arguments)

    def candidates(self, layout: Layout, size: Size, a: int, b: int, c: int) -> dict[str, Launch]:
        """cublasLt's heuristic choices, best guess first, by the name the result gives them."""
        call = call_for(layout, size)
        description = c_void_p()
        self._call(
            self._lt.cublasLtMatmulDescCreate,
            byref(description),
            c_int(self._types.compute),
            c_int(self._types.scale),
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
        inputs, result = self._types.inputs, self._types.result
        layouts = [
            self._layout(inputs, call.rows, call.depth, call.leading[0], transposed=first),
            self._layout(inputs, call.depth, call.columns, call.leading[1], transposed=second),
            self._layout(result, call.rows, call.columns, call.leading[2], transposed=False),
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
        if not self._types.single and self._types.scale == _DATA["f32"]:
            scheme = c_int32(_REDUCTIONS_IN_SUMS)
            self._call(
                self._lt.cublasLtMatmulPreferenceSetAttribute,
                preference,
                c_int(_PREFERENCE_REDUCTIONS),
                byref(scheme),
                c_size_t(4),
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
        if status:  # no candidate at this size: only cuBLAS's own choice is left
            return {}
        x, y = (b, a) if call.swapped else (a, b)
        pointers = (c_void_p(x), c_void_p(y), c_void_p(c))
        return {
            f"cublasLt {index + 1}": self._product(description, layouts, pointers, found[index])
            for index in range(count.value)
            if found[index].state == 0
        }

    def _layout(
        self, data: int, rows: int, columns: int, leading: int, *, transposed: bool
    ) -> c_void_p:
        """rows, columns: after the operation; the descriptor has them as they are stored."""
        stored = (columns, rows) if transposed else (rows, columns)
        layout = c_void_p()
        self._call(
            self._lt.cublasLtMatrixLayoutCreate,
            byref(layout),
            c_int(data),
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
