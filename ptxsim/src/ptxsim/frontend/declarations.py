"""Declarations of PTX → ``Variable``, and constants: literals, integer expressions of literals."""

import operator
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ptxsim.frontend.records import SIZES, Address, Variable
from ptxsim.frontend.tokens import DOT, NUMBER, WORD, Tokens, Wanted, integer
from ptxsim.text import phrase

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
            raise tokens.saying("{text} cannot be part of an expression", text=text[:40])
    else:
        first = _factor(tokens, 0)
    return str(_expression(tokens, -first if sign else first, 1, 0))


def _literal(tokens: Tokens, text: str, negative: bool) -> str:
    """Return the number as written, but octal and binary ones in decimal."""
    if text[0] != "0" and text.isdigit() and len(text) < 20:
        return text
    if text[:2] in (*_FLOATS, *_DOUBLES):
        if negative:
            raise tokens.saying(
                "-{text}: the sign of such a number must be one of its bits", text=text
            )
        return text
    value = integer(text)
    if value is not None:
        return text.rstrip("U") if text[:2] in ("0x", "0X") else str(value)
    if "." not in text and "e" not in text.lower():
        raise tokens.saying("{text} does not fit into 64 bits", text=text[:40])
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
            raise tokens.saying("a shift by {amount}", amount=right)
        left = _wrapped(_COMPUTE[symbol](left, right))
    return left


def _factor(tokens: Tokens, depth: int) -> int:
    if depth > _MAX_DEPTH:
        raise tokens.saying("a constant expression nests deeper than {most}", most=_MAX_DEPTH)
    if tokens.accept("-"):
        return -_factor(tokens, depth + 1)
    if tokens.accept("~"):
        return ~_factor(tokens, depth + 1)
    if tokens.accept("("):
        inner = _expression(tokens, _factor(tokens, depth + 1), 1, depth + 1)
        tokens.expect(")")
        return inner
    return tokens.count(Wanted.INTEGER)


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
    """Return the bits of a floating-point value in the type ``kind``."""
    if kind == "f64":
        return int.from_bytes(struct.pack("<d", value), "little")
    if kind != "f32":
        raise ValueError(f"a floating-point constant cannot be .{kind}")
    try:
        return int.from_bytes(struct.pack("<f", value), "little")
    except OverflowError:
        return 0xFF800000 if value < 0 else 0x7F800000


_VECTORS = {".v2": 2, ".v4": 4}
_SPACES = (".global", ".shared", ".const", ".local")
_MAX_BYTES = 1 << 40
_MAX_ALIGN = 1 << 20
_MAX_DIMENSIONS = 8
_ALL = (1 << 64) - 1

_Values = list[tuple[int | Address, int]]


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """Type, vector length and alignment of a declaration."""

    type: str  # "f32"
    vector: int  # elements of .v2, .v4; else 1
    align: int  # bytes

    @property
    def size(self) -> int:
        return SIZES[self.type] * self.vector


def kind(tokens: Tokens) -> DeclaredType:
    """``.attribute(.managed) .align 16 .v4 .f32``."""
    if tokens.accept(".attribute"):
        for part in ("(", ".managed", ")"):
            tokens.expect(part)
    align = _alignment(tokens) if tokens.accept(".align") else 1
    vector = _VECTORS.get(tokens.value, 1)
    if vector > 1:
        tokens.advance()
    name = tokens.value[1:]
    if tokens.kind != DOT or name not in SIZES:
        raise tokens.unexpected(Wanted.TYPE)
    tokens.advance()
    return DeclaredType(name, vector, max(align, SIZES[name] * vector))


def _alignment(tokens: Tokens) -> int:
    align = tokens.count(phrase("an alignment"))
    if align > _MAX_ALIGN or align & (align - 1) or not align:
        raise tokens.saying(
            "{alignment} is no alignment: a power of two up to {most} is one",
            alignment=align,
            most=_MAX_ALIGN,
        )
    return align


def variables(tokens: Tokens, space: str, *, extern: bool = False) -> Iterator[Variable]:
    """The variables of a declaration, from behind its state space to its semicolon."""
    form = kind(tokens)
    while True:
        yield _variable(tokens, form, space, extern)
        if not tokens.accept(","):
            break
    tokens.expect(";")


def parameters(tokens: Tokens) -> list[Variable]:
    """``(.param .u64 .ptr .global .align 16 a, .param .b32 b)`` of a function's header."""
    found: list[Variable] = []
    tokens.expect("(")
    while tokens.value != ")":
        if found:
            tokens.expect(",")
        tokens.expect(".param")
        form = kind(tokens)
        if tokens.accept(".ptr"):  # of the target; it says nothing about the parameter
            if tokens.value in _SPACES:
                tokens.advance()
            if tokens.accept(".align"):
                _alignment(tokens)
        found.append(_variable(tokens, form, "param", extern=False))
    tokens.advance()
    return found


def _variable(tokens: Tokens, form: DeclaredType, space: str, extern: bool) -> Variable:
    name = variable_name(tokens)
    if form.type == "pred":
        raise tokens.saying("{name}: a predicate can only be a register", name=name)
    dims: list[int | None] = []  # None: [], as many as there are initial values
    while tokens.accept("["):
        dims.append(tokens.count(Wanted.ELEMENTS) if tokens.kind == NUMBER else None)
        tokens.expect("]")
        if len(dims) > _MAX_DIMENSIONS:
            raise tokens.saying(
                "{name} has more than {most} dimensions", name=name, most=_MAX_DIMENSIONS
            )
    if None in dims[1:]:
        raise tokens.saying("{name}: only the first dimension may be left open", name=name)
    values: _Values = []
    if space in ("global", "const") and tokens.accept("="):
        shape = dims if form.vector == 1 else [*dims, form.vector]
        if not shape:
            values.append(_initial(tokens, form.type))
        else:
            _initials(tokens, form.type, shape, values)
            if dims and dims[0] is None:
                elements = len(values)
                for inner in shape[1:]:
                    elements //= inner or 1
                dims[0] = elements
    size = form.size
    for count in dims:
        size *= count or 0
    if size > _MAX_BYTES:
        raise tokens.saying("{name} is larger than {most} GB", name=name, most=_MAX_BYTES >> 30)
    kind = "" if dims else form.type
    return Variable(name, space, size, form.align, tuple(values), extern, kind)


def variable_name(tokens: Tokens) -> str:
    name = tokens.word()
    if name[0] == "%" or name == "_":
        raise tokens.saying("{name} is no name for a variable or function", name=name)
    return name


def _initials(
    tokens: Tokens, type_: str, shape: list[int | None], values: _Values, *, row: bool = False
) -> None:
    """``{1, 2}`` or, for more than one dimension, ``{{1, 2}, {3, 4}}``. Values may be missing at
    the end of the first dimension only: ptxas does not fill the rows of the others."""
    count = 0
    tokens.expect("{")
    while tokens.value != "}":
        if count:
            tokens.expect(",")
        if len(shape) > 1:
            _initials(tokens, type_, shape[1:], values, row=True)
        else:
            values.append(_initial(tokens, type_))
        count += 1
    tokens.advance()
    if shape[0] is not None and (count > shape[0] or (row and count < shape[0])):
        raise tokens.saying(
            "{values} initial values where {room} belong", values=count, room=shape[0]
        )


def _initial(tokens: Tokens, type_: str) -> tuple[int | Address, int]:
    """``5``, ``name + 4``, ``generic(name) + 4`` or ``0xFF00(generic(name) + 4)``."""
    size = SIZES[type_]
    if tokens.kind == WORD:
        return _address(tokens, _ALL), size
    literal = constant(tokens)
    if not tokens.accept("("):
        return _initial_bits(tokens, literal, type_), size
    address = _address(tokens, _initial_bits(tokens, literal, "b64"))
    tokens.expect(")")
    return address, size


def _address(tokens: Tokens, mask: int) -> Address:
    generic = tokens.accept("generic")
    if generic:
        tokens.expect("(")
    name = tokens.word()
    if generic:
        tokens.expect(")")
    return Address(name, expression(tokens) if tokens.accept("+") else 0, mask)


def _initial_bits(tokens: Tokens, literal: str, type_: str) -> int:
    """An integer is cut to its type, as ptxas does."""
    mask = (1 << 8 * SIZES[type_]) - 1
    if literal.isdigit():
        return int(literal) & mask
    try:
        if integer(literal.lstrip("-")) is None:
            return number(literal, type_)
        return number(literal, "b64") & mask
    except ValueError:
        raise tokens.saying(
            "{literal} cannot be the value of a .{type}", literal=literal, type=type_
        ) from None
