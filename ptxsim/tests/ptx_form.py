"""An instruction of PTX with the types of its operands and what it computes, in Python.

Values are bits as Python integers. Floating-point inputs are small multiples of a quarter, so that
every result is exact in its type, or is rounded once from an exact double.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

LANES = 32
Value = Callable[..., int | None]  # the operands' bits → the result's; None: not defined

_BITS = {"pred": 1, "f16x2": 32, "bf16x2": 32, "bf16": 16, "tf32": 32}
HALVES = {"f16x2": "f16", "bf16x2": "bf16"}


def bits_of(kind: str) -> int:
    return _BITS.get(kind) or int(kind[1:])


def mask(kind: str) -> int:
    return (1 << bits_of(kind)) - 1


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (value >> (bits - 1) << bits)


def integer(value: int, kind: str) -> int:
    """The number that bits of an integer type stand for."""
    return signed(value, bits_of(kind)) if kind[0] == "s" else value & mask(kind)


def real(value: int, kind: str) -> float:
    """The number that bits of a floating-point type stand for."""
    if kind == "bf16":
        return real(value << 16, "f32")
    layout = {"f16": "<H e", "f32": "<I f", "f64": "<Q d"}[kind].split(" ")
    return float(struct.unpack("<" + layout[1], struct.pack(layout[0], value & mask(kind)))[0])


def from_real(value: float, kind: str) -> int:
    """Bits of the number of type ``kind`` that is nearest to ``value``. Raises ValueError or
    OverflowError where that is beyond this oracle."""
    if not math.isfinite(value):
        raise ValueError("not a number")
    if kind == "bf16":
        bits = from_real(value, "f32")
        if real(bits, "f32") != value:
            raise ValueError("a bfloat is made of exact values only")
        return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    letters = {"f16": "He", "f32": "If", "f64": "Qd"}[kind]
    (bits,) = struct.unpack("<" + letters[0], struct.pack("<" + letters[1], value))
    return int(bits)


@dataclass(frozen=True)
class Form:
    opcode: str
    result: str  # type
    sources: tuple[str, ...]  # types
    value: Value
    text: str = ""  # the operands, where they do not just follow each other: "{d}|_, {0}"
    sm: int = 80

    def write(self, target: str, sources: tuple[str, ...]) -> str:
        if self.text:
            operands = self.text.format(*sources, d=target)
        else:
            operands = ", ".join((target, *sources))
        return f"{self.opcode} {operands};"


def of_ints(kind: str, f: Callable[..., int]) -> Value:
    """``f`` of the operands as numbers of one type."""
    return lambda *values: f(*(integer(v, kind) for v in values))


def of_reals(kind: str, f: Callable[..., float]) -> Value:
    """``f`` of the operands as numbers of one type; of pairs, for each half."""
    half = HALVES.get(kind)
    if half is None:
        return lambda *values: from_real(f(*(real(v, kind) for v in values)), kind)
    one = of_reals(half, f)
    return lambda *values: (
        (one(*(v & 0xFFFF for v in values)) or 0)
        | (one(*(v >> 16 & 0xFFFF for v in values)) or 0) << 16
    )
