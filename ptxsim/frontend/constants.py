"""Constants of PTX: literals, and integer expressions of literals."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable

from ptxsim.frontend import expected
from ptxsim.frontend.records import SIZES
from ptxsim.frontend.tokens import NUMBER, Tokens, integer
from ptxsim.message import phrase

_MAX_DEPTH = 16  # of parentheses and signs
_BITS_64 = (1 << 64) - 1
_FLOATS = ("0f", "0F")
_DOUBLES = ("0d", "0D")
_COMPUTE: dict[str, Callable[[int, int], int]] = {
    "*": operator.mul,
    "+": operator.add,
    "-": operator.sub,
    "<<": operator.lshift,
    "&": operator.and_,
    "^": operator.xor,
    "|": operator.or_,
}
_BINDING = {"*": 6, "+": 5, "-": 5, "<<": 4, "&": 3, "^": 2, "|": 1}  # in decreasing precedence


def constant(tokens: Tokens) -> str:
    """The current constant as one literal: an expression becomes its decimal value."""
    sign = "-" if tokens.accept("-") else ""
    if tokens.kind == NUMBER:
        text = tokens.advance()
        if tokens.value not in _BINDING:
            return sign + _literal(tokens, text, bool(sign))
        first = integer(text)
        if first is None:
            raise tokens.error(phrase("{text} cannot be part of an expression", text=text[:40]))
    else:
        first = _factor(tokens, 0)
    return str(_expression(tokens, -first if sign else first, 1, 0))


def _literal(tokens: Tokens, text: str, negative: bool) -> str:
    """As written, but octal and binary numbers in decimal."""
    if text[0] != "0" and text.isdigit() and len(text) < 20:
        return text
    if text[:2] in (*_FLOATS, *_DOUBLES):
        if negative:
            raise tokens.error(
                phrase("-{text}: the sign of such a number must be one of its bits", text=text)
            )
        return text
    value = integer(text)
    if value is not None:
        return text.rstrip("U") if text[:2] in ("0x", "0X") else str(value)
    if "." not in text and "e" not in text.lower():
        raise tokens.error(phrase("{text} does not fit into 64 bits", text=text[:40]))
    return text


def expression(tokens: Tokens) -> int:
    """An integer expression of literals, as ptxas computes it: in 64 bits, with sign."""
    return _expression(tokens, _factor(tokens, 0), 1, 0)


def _expression(tokens: Tokens, left: int, least: int, depth: int) -> int:
    """The expression that begins with ``left``, up to an operator of lower precedence."""
    while (level := _BINDING.get(tokens.value, 0)) >= least:
        symbol = tokens.advance()
        right = _expression(tokens, _factor(tokens, depth), level + 1, depth)
        if symbol == "<<" and not 0 <= right < 64:
            raise tokens.error(phrase("a shift by {amount}", amount=right))
        left = _wrapped(_COMPUTE[symbol](left, right))
    return left


def _factor(tokens: Tokens, depth: int) -> int:
    if depth > _MAX_DEPTH:
        raise tokens.error(
            phrase("a constant expression nests deeper than {most}", most=_MAX_DEPTH)
        )
    if tokens.accept("-"):
        return -_factor(tokens, depth + 1)
    if tokens.accept("~"):
        return ~_factor(tokens, depth + 1)
    if tokens.accept("("):
        inner = _expression(tokens, _factor(tokens, depth + 1), 1, depth + 1)
        tokens.expect(")")
        return inner
    return tokens.count(expected.INTEGER)


def _wrapped(value: int) -> int:
    low = value & _BITS_64
    return value if -(1 << 63) <= value <= _BITS_64 else low - (low >> 63 << 64)


def number(text: str, kind: str) -> int:
    """The bits of a literal for an operand of type ``kind``. Raises ValueError.

    As ptxas: 0f… gives its bits to any type of 32 or 64 bits, 0d… and decimals are rounded to .f32.
    """
    negative, body = text[:1] == "-", text.lstrip("-")
    size = SIZES.get(kind, 8)
    if body[:2] in _FLOATS and len(body) == 10 and size in (4, 8):
        bits = int(body[2:], 16)
        return bits ^ 0x80000000 if negative else bits
    if body[:2] in _DOUBLES and len(body) == 18:
        bits = int(body[2:], 16) ^ (negative << 63)
        if size == 8:
            return bits
        return _bits(struct.unpack("<d", struct.pack("<Q", bits))[0], kind)
    value = integer(body)
    if value is None:
        return _bits(-float(body) if negative else float(body), kind)
    value = -value if negative else value
    width = 8 * size
    if width < 32 and not -(1 << (width - 1)) <= value < 1 << width:
        raise ValueError(f"{text} does not fit into .{kind}")
    return value & ((1 << max(width, 32)) - 1)


def _bits(value: float, kind: str) -> int:
    """Of a floating-point value in the type ``kind``."""
    if kind == "f64":
        return int.from_bytes(struct.pack("<d", value), "little")
    if kind != "f32":
        raise ValueError(f"a floating-point constant cannot be .{kind}")
    try:
        return int.from_bytes(struct.pack("<f", value), "little")
    except OverflowError:
        return 0xFF800000 if value < 0 else 0x7F800000
