"""The arguments of a problem's host function: vectors on the device, how they are to be read, and
what a GPU worker asks about them.

All arrays here may be NumPy's or CuPy's.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from ctypes import CDLL
from pathlib import Path
from typing import Any, Literal, Protocol

from grader.base import ErrorStats
from ptxsim.plan import Record, Size

Order = Literal["row", "col"]
Launcher = Callable[[], None]  # starts work on the GPU's stream and returns


class Element(Record):
    """The type of an operand's elements."""

    name: str  # in C++: "float"
    dtype: str  # in NumPy: "float32"
    bytes: int
    mangled: str  # in a C++ symbol: "f"
    upper: bool = False  # the bits are the upper half of an FP32 number, as BF16's are

    def wide(self, stored: Any) -> Any:
        """The values in float64."""
        if self.upper:
            stored = (stored.astype("uint32") << 16).view("float32")
        return stored.astype("float64")

    def packed(self, values: Any) -> Any:
        """Values that this type holds exactly, as they are stored."""
        if self.upper:
            values = values.astype("float32", copy=False).view("uint32") >> 16
        return values.astype(self.dtype, copy=False)

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers only."""
        return self.dtype.lstrip("u").startswith("int") and not self.upper


HALF = Element(name="__half", dtype="float16", bytes=2, mangled="6__half")
BF16 = Element(name="__nv_bfloat16", dtype="uint16", bytes=2, mangled="13__nv_bfloat16", upper=True)
FLOAT = Element(name="float", dtype="float32", bytes=4, mangled="f")
DOUBLE = Element(name="double", dtype="float64", bytes=8, mangled="d")
INT8 = Element(name="signed char", dtype="int8", bytes=1, mangled="a")
INT16 = Element(name="short", dtype="int16", bytes=2, mangled="s")
INT32 = Element(name="int", dtype="int32", bytes=4, mangled="i")
INT64 = Element(name="long long", dtype="int64", bytes=8, mangled="x")
UINT8 = Element(name="unsigned char", dtype="uint8", bytes=1, mangled="h")
UINT16 = Element(name="unsigned short", dtype="uint16", bytes=2, mangled="t")
UINT32 = Element(name="unsigned", dtype="uint32", bytes=4, mangled="j")
UINT64 = Element(name="unsigned long long", dtype="uint64", bytes=8, mangled="y")


class Scalar(Record):
    """One argument of the host function behind the dimensions. A recording holds its value, so one
    size has one."""

    name: str  # "alpha"
    element: Element
    value: float  # which the element's type holds exactly

    @property
    def word(self) -> int:
        """Its bytes, in a whole number of 64 bits."""
        import numpy as np  # a lab is read without it

        return int.from_bytes(self.element.packed(np.array([self.value])).tobytes(), "little")


class Exposing(Record, tag="exposing"):
    """FP32 values ±[0.5, 1.5) that expose a lower precision: ``inputs.py`` has the bits."""


class Steps(Record, tag="steps"):
    """±(least + r) · 2^exponent, with r uniform in 0 … 2^bits - 1. Exact in the element's type if
    that holds ``least + 2^bits`` exactly. With ``bits = 0`` and ``least = 1``: random signs."""

    bits: int
    least: int = 0
    exponent: int = 0
    signed: bool = True

    def __post_init__(self) -> None:
        """FP32 must hold every step."""
        if not (0 <= self.bits <= 24 and 0 <= self.least <= (1 << 24) - (1 << self.bits)):
            raise ValueError(f"least + 2^bits must be at most 2^24: {self}")


Course = Literal["random", "equal", "rising", "falling", "rows", "ragged", "gaps", "power"]


class Whole(Record, tag="whole"):
    """(least + r) · 2^exponent, with whole numbers r below ``below``: bytes, keys, bins, columns;
    or, in steps of a power of two, values of any range. Exact in the element's type if that holds
    all of these.

    ``often`` of 256 elements lie among the ``few`` numbers from ``first`` on: a histogram's worst
    case, or, the other way round, a range with tails.

    Along the operand r is random, or the same number everywhere (equal), or it rises or falls. Or
    the elements are where the rows of a sparse matrix begin, from 0 to ``below``: rows of one
    length (rows), of any up to twice that (ragged), three of four empty (gaps), or the longest
    first, the i-th about i^(-3/4) times as long (power).
    """

    below: int  # at most 2^32
    least: int = 0
    exponent: int = 0
    often: int = 0
    first: int = 0
    few: int = 1
    course: Course = "random"

    def __post_init__(self) -> None:
        """The GPU computes r in 64 bits, of which a word of the key stream gives 32."""
        sound = 1 <= self.below <= 1 << 32 and -(1 << 31) <= self.least < 1 << 31
        sound = sound and 0 <= self.often <= 256 and self.few >= 1
        if not (sound and 0 <= self.first <= self.below - self.few):
            raise ValueError(f"numbers below ``below``, at most 2^32, were expected: {self}")


Values = Exposing | Steps | Whole
EXPOSING = Exposing()


class Operand(Record):
    """One vector of the host function, at one size."""

    name: str  # in messages: "A"
    role: Literal["in", "inout", "out"]  # "inout": it is given, and changed in place
    shape: tuple[int, ...]  # (1,): a scalar, (n,): a vector, (rows, columns): a matrix
    order: Order = "row"  # which index of a matrix counts; consecutive columns for "row"
    element: Element = FLOAT
    values: Values = EXPOSING  # of what is given

    @property
    def given(self) -> bool:
        """Whether a call finds values in it."""
        return self.role != "out"

    @property
    def written(self) -> bool:
        """Whether a call leaves a result in it."""
        return self.role != "in"

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.count * self.element.bytes

    def logical(self, flat: Any) -> Any:
        """The memory as an array of ``shape``; a view."""
        return flat.reshape(self.shape) if self.order == "row" else flat.reshape(self.shape[::-1]).T

    def wide(self, flat: Any) -> Any:
        """The memory as float64 values of ``shape``."""
        return self.element.wide(self.logical(flat))

    def flat(self, logical: Any) -> Any:
        """The opposite: an array of ``shape`` in the order of the memory; a copy if need be."""
        return (logical if self.order == "row" else logical.T).reshape(-1)

    def index(self, place: Any) -> tuple[Any, ...]:
        """The indices of the element at ``place`` in memory; of many, an array for each index."""
        shape = self.shape if self.order == "row" else self.shape[::-1]
        found: list[Any] = []
        for extent in reversed(shape):
            place, at = divmod(place, extent)
            found.insert(0, at)
        return tuple(found if self.order == "row" else reversed(found))

    def named(self, index: tuple[int, ...]) -> str:
        """An element as messages name it: "A[row 3, column 5]", "in[7]", "out"."""
        if self.count == 1:
            return self.name
        if len(index) == 2:
            return f"{self.name}[row {index[0]}, column {index[1]}]"
        return f"{self.name}[{', '.join(map(str, index))}]"


# --- on a GPU ----------------------------------------------------------------------------------

# All arrays are CuPy's, flat, in the order of the memory. Everything runs on ``Tools.stream``.


class Tools(Protocol):
    """Tools that the GPU's worker lends to a problem."""

    @property
    def stream(self) -> Any: ...  # CuPy's; it is the current one

    def functions(self, source: Path) -> Any:
        """A CuPy module: CUDA C++ compiled for this GPU by nvcc, once, and kept in the cache."""

    def library(self, source: Path) -> CDLL:
        """The same for host functions behind a C interface; they bring the CUDA runtime along."""

    def fill(self, out: Any, key: bytes, values: Values, element: Element = FLOAT) -> None:
        """The elements that ``inputs.values`` gives for this key."""


class OnGpu(Protocol):
    """One problem on one GPU, at any size."""

    @property
    def library(self) -> str:
        """Name and version of what the baselines call: their choice is kept for these."""

    @property
    def baselines_are_right(self) -> bool:
        """Whether the outputs of a baseline may serve as the reference."""

    def baselines(
        self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launcher]:
        """Return the launches that the lab admits as baselines, by name. Raises MachineError if
        there is none."""

    def refer(self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Launch the reference into ``outputs``."""

    def prove(self, size: Size, inputs: Sequence[Any], outputs: Sequence[Any]) -> float:
        """How far the reference is from being right, by another way to compute it: 1 is what
        rounding explains. NaN is wrong."""

    def compare(
        self, size: Size, inputs: Sequence[Any], got: Sequence[Any], want: Sequence[Any]
    ) -> ErrorStats:
        """The submission's outputs against the reference's."""
