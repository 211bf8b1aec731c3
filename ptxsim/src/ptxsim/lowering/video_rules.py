"""Lowering rules of the video instructions: arithmetic on bytes and halves of registers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ptxsim.frontend.records import Instruction
from ptxsim.lowering.lower import Lowering
from ptxsim.lowering.operation import Constant, Operand

# As arithmetic/video.cpp numbers them.
_WHAT = ("add", "sub", "absdiff", "min", "max", "avrg", "shl", "shr", "set")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_SECOND = ("merge", "add", "min", "max")
_WRAPS, _SATURATES, _SIGNED = 1 << 12, 1 << 13, 1 << 14
_MAD_SIGNED, _MINUS_PRODUCT, _MINUS_C, _PLUS_ONE, _MAD_SATURATES = 1, 2, 4, 8, 16
_MAD_SHIFT = 5
_SCALES = {"shr7": 7, "shr15": 15}
_SELECTOR = re.compile(r"(.+)\.([bh])([0-7]{1,4})$")
_BYTES = {"b": 1, "h": 2}

VIDEO = {
    *(f"v{what}" for what in (*_WHAT, "mad") if what != "avrg"),
    *(f"v{what}{count}" for what in _WHAT if what[0:2] != "sh" for count in (2, 4)),
}


@dataclass(frozen=True)
class _Selected:
    """An operand and its selector, ``%r1.h10``."""

    name: str
    bytes: int  # of a part; 4 without a selector
    parts: tuple[int, ...]  # of the lowest part of the result first; () without a selector

    @classmethod
    def read(cls, text: str) -> _Selected:
        match = _SELECTOR.match(text)
        if match is None:
            return cls(text, 4, ())
        return cls(match[1], _BYTES[match[2]], tuple(map(int, reversed(match[3]))))


def video(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """v{op}{2|4}.dtype.atype.btype{.sat}{.more} d{.sel}, a{.sel}, b{.sel}{, c}"""
    base = item.opcode.partition(".")[0]
    count = int(base[-1]) if base[-1] in "24" else 1
    what = base[1:].rstrip("24")
    types = [mod for mod in mods if mod in ("u32", "s32")]
    rest = [mod for mod in mods if mod not in types]
    if what == "set":
        types.insert(0, "u32")
    result, first, second = types
    compare = next((mod for mod in rest if mod in _COMPARISONS), "eq")
    combine = next((mod for mod in rest if mod in _SECOND), "merge")
    if set(rest) - {compare, combine, "sat", "wrap", "clamp"}:
        raise low.unsupported()
    d, a, b = (_Selected.read(text) for text in item.operands[:3])
    c: Operand = Constant(0, 4)
    if len(item.operands) > 3:
        c = low.source(item.operands[3], result)
    bytes_, place = (4 // count, 0) if count > 1 else (d.bytes, (*d.parts, 0)[0])
    written = sum(1 << part for part in d.parts) if count > 1 and d.parts else (1 << count) - 1
    flags = _WRAPS * ("wrap" in rest) | _SATURATES * ("sat" in rest) | _SIGNED * (result[0] == "s")
    low.emit_guarded(
        "video",
        [
            low.target(d.name, "u32"),
            low.source(a.name, first),
            low.source(b.name, second),
            c,
            _WHAT.index(what)
            | _COMPARISONS.index(compare) << 4
            | _SECOND.index(combine) << 8
            | flags,
            _selection(a, first, count, range(count)),
            _selection(b, second, count, range(count, 2 * count)),
            count | bytes_ << 3 | written << 6 | place << 10,
        ],
    )


def multiply(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """vmad.dtype.atype.btype{.po}{.sat}{.scale} d, {-}a{.sel}, {-}b{.sel}, {-}c"""
    types, rest = mods[:3], mods[3:]
    minus = [text[0] == "-" and not text[1:].isdigit() for text in item.operands]
    a, b = (
        _Selected.read(text[sign:])
        for text, sign in zip(item.operands[1:3], minus[1:3], strict=True)
    )
    c = item.operands[3][minus[3] :]
    minus_product = minus[1] != minus[2]
    is_signed = "s32" in types[1:] or minus_product or minus[3]
    shift = next((_SCALES[mod] for mod in rest if mod in _SCALES), 0)
    if set(rest) - {"po", "sat", *_SCALES}:
        raise low.unsupported()
    low.emit_guarded(
        "vmad",
        [
            low.target(item.operands[0], "u32"),
            low.source(a.name, types[1]),
            low.source(b.name, types[2]),
            low.source(c, "s32" if is_signed else "u32"),
            _MAD_SIGNED * is_signed
            | _MINUS_PRODUCT * minus_product
            | _MINUS_C * minus[3]
            | _PLUS_ONE * ("po" in rest)
            | _MAD_SATURATES * ("sat" in rest)
            | shift << _MAD_SHIFT,
            _selection(a, types[1], 1, range(1)),
            _selection(b, types[2], 1, range(1)),
        ],
    )


def _selection(operand: _Selected, kind: str, count: int, otherwise: range) -> int:
    """Return the parts of an operand, or of both together, that are taken."""
    bytes_ = 4 // count if count > 1 else operand.bytes
    parts = operand.parts or (otherwise if count > 1 else (0,))
    places = sum(part << 4 * at for at, part in enumerate(parts))
    return bytes_ | (kind[0] == "s") << 3 | places << 4
