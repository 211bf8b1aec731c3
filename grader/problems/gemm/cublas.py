"""cuBLAS: cublasSgemm or cublasGemmEx, and cublasLt's candidates, for one size and layout.

It calls the C interface of the libraries that CuPy loads: CUDA 12 and 13 have the same few
functions, and nothing needs to be compiled. FP32 products are without TF32. Where sums are in FP32,
parts of a sum meet in FP32 too, as the lab asks it of students. cuBLAS knows column-major matrices
only; ``ColumnMajorProduct`` says in its terms what a layout asks for.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_int32, c_int64, c_size_t, c_uint16, c_uint64, c_void_p

from grader.base import MachineError
from grader.problems.gemm.layout import Format, Layout, Sum
from grader.problems.operands import Launcher
from ptxsim.plan import Record, Size

WORKSPACE_BYTES = 256 << 20
CANDIDATES = 16  # as many are asked for; of eight, the last was the best at times
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
    """Types of the matrices, the result and the sums, as cuBLAS numbers them."""

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


class ColumnMajorProduct(Record):
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

    @property
    def operations(self) -> tuple[int, int]:
        first, second = self.transposed
        return _OP_T if first else _OP_N, _OP_T if second else _OP_N

    def inputs(self, a: int, b: int) -> tuple[c_void_p, c_void_p]:
        """X and Y."""
        return (c_void_p(b), c_void_p(a)) if self.swapped else (c_void_p(a), c_void_p(b))


def call_for(layout: Layout, size: Size) -> ColumnMajorProduct:
    m, n, k = size.extents
    a, b = layout.A == "row", layout.B == "row"
    swapped = layout.C == "row"
    rows, columns = (n, m) if swapped else (m, n)
    leading = k if a else m, n if b else k
    return ColumnMajorProduct(
        swapped=swapped,
        transposed=(not b, not a) if swapped else (a, b),
        rows=rows,
        columns=columns,
        depth=k,
        leading=(*(leading[::-1] if swapped else leading), rows),
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
    raise MachineError.saying(
        "lib{name} cannot be loaded: install the CuPy extra with its CUDA libraries", name=name
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
            raise MachineError.saying(
                "cuBLAS failed: {function}: {status}",
                function=getattr(function, "__name__", "?"),
                status=status,
            )

    @property
    def version(self) -> str:
        """cublasLt's version number, such as "130100"."""
        self._lt.cublasLtGetVersion.restype = c_size_t
        return str(self._lt.cublasLtGetVersion())

    def sgemm(self, layout: Layout, size: Size, a: int, b: int, c: int) -> Launcher:
        """cublasSgemm with these pointers."""
        call = call_for(layout, size)
        x, y = call.inputs(a, b)
        of_x, of_y, of_c = map(c_int, call.leading)
        arguments = (
            self._handle,
            *map(c_int, (*call.operations, call.rows, call.columns, call.depth)),
            *(byref(self._one), x, of_x, y, of_y, byref(self._zero), c_void_p(c), of_c),
        )
        return lambda: self._call(self._blas.cublasSgemm_v2, *arguments)

    def gemm_ex(self, layout: Layout, size: Size, types: Types, a: int, b: int, c: int) -> Launcher:
        """cublasGemmEx with these pointers."""
        call = call_for(layout, size)
        x, y = call.inputs(a, b)
        of_x, of_y, of_c = map(c_int, call.leading)
        one, zero = types.factors()
        arguments = (
            self._handle,
            *map(c_int, (*call.operations, call.rows, call.columns, call.depth)),
            *(byref(one), x, c_int(types.inputs), of_x, y, c_int(types.inputs), of_y),
            *(byref(zero), c_void_p(c), c_int(types.result), of_c),
            *(c_int(types.compute), c_int(_DEFAULT_ALGORITHM)),
        )
        return lambda: self._call(self._blas.cublasGemmEx, *arguments)

    def candidates(self, layout: Layout, size: Size, a: int, b: int, c: int) -> dict[str, Launcher]:
        """cublasLt's heuristic choices, best guess first, by the name the result gives them."""
        call, types = call_for(layout, size), self._types
        description = self._made(
            self._lt.cublasLtMatmulDescCreate, c_int(types.compute), c_int(types.scale)
        )
        for attribute, operation in zip((_DESC_TRANSA, _DESC_TRANSB), call.operations, strict=True):
            self._set(
                self._lt.cublasLtMatmulDescSetAttribute, description, attribute, c_int32(operation)
            )
        # Layouts have rows and columns as they are stored, before the operation.
        stored = (
            (types.inputs, call.rows, call.depth, call.transposed[0]),
            (types.inputs, call.depth, call.columns, call.transposed[1]),
            (types.result, call.rows, call.columns, False),
        )
        x_layout, y_layout, c_layout = (
            self._made(
                self._lt.cublasLtMatrixLayoutCreate,
                c_int(data),
                *map(c_uint64, (columns, rows) if transposed else (rows, columns)),
                c_int64(leading),
            )
            for (data, rows, columns, transposed), leading in zip(stored, call.leading, strict=True)
        )
        preference = self._made(self._lt.cublasLtMatmulPreferenceCreate)
        prefer = self._lt.cublasLtMatmulPreferenceSetAttribute
        self._set(prefer, preference, _PREFERENCE_WORKSPACE, c_size_t(WORKSPACE_BYTES))
        if not types.single and types.scale == _DATA["f32"]:
            self._set(prefer, preference, _PREFERENCE_REDUCTIONS, c_int32(_REDUCTIONS_IN_SUMS))
        found, count = (_Heuristic * CANDIDATES)(), c_int(0)
        status = self._lt.cublasLtMatmulAlgoGetHeuristic(
            *(self._lt_handle, description, x_layout, y_layout, c_layout, c_layout, preference),
            *(c_int(CANDIDATES), found, byref(count)),
        )
        if status:  # no candidate at this size: only cuBLAS's own choice is left
            return {}

        def product(choice: _Heuristic) -> Launcher:
            x, y = call.inputs(a, b)
            arguments = (
                *(self._lt_handle, description, byref(self._one), x, x_layout, y, y_layout),
                *(byref(self._zero), c_void_p(c), c_layout, c_void_p(c), c_layout, byref(choice)),
                *(c_void_p(self._workspace), c_size_t(choice.workspace), c_void_p(self._stream)),
            )
            return lambda: self._call(self._lt.cublasLtMatmul, *arguments)

        usable = (at for at in range(count.value) if found[at].state == 0)
        return {f"cublasLt {at + 1}": product(found[at]) for at in usable}

    def _made(self, create: Callable[..., int], *arguments: object) -> c_void_p:
        """Return the handle that one of cublasLt's functions creates."""
        handle = c_void_p()
        self._call(create, byref(handle), *arguments)
        return handle

    def _set(
        self,
        function: Callable[..., int],
        handle: c_void_p,
        name: int,
        value: ctypes._SimpleCData[int],
    ) -> None:
        """Set one attribute of a description or a preference."""
        size = c_size_t(ctypes.sizeof(value))
        self._call(function, handle, c_int(name), byref(value), size)
