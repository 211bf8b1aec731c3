"""Declarations of PTX → ``Variable``: of modules, of functions, their parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxsim.frontend import expected
from ptxsim.frontend.constants import constant, expression, number
from ptxsim.frontend.records import SIZES, Address, Variable
from ptxsim.frontend.tokens import DOT, NUMBER, WORD, Tokens, integer
from ptxsim.message import phrase

_VECTORS = {".v2": 2, ".v4": 4}
_SPACES = (".global", ".shared", ".const", ".local")
_MAX_BYTES = 1 << 40
_MAX_ALIGN = 1 << 20
_MAX_DIMENSIONS = 8
_ALL = (1 << 64) - 1

_Values = list[tuple[int | Address, int]]


@dataclass(frozen=True, slots=True)
class Kind:
    """What stands before the names of a declaration."""

    type: str  # "f32"
    vector: int  # elements of .v2, .v4; else 1
    align: int  # bytes

    @property
    def size(self) -> int:
        return SIZES[self.type] * self.vector


def kind(tokens: Tokens) -> Kind:
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
        raise tokens.unexpected(expected.TYPE)
    tokens.advance()
    return Kind(name, vector, max(align, SIZES[name] * vector))


def _alignment(tokens: Tokens) -> int:
    align = tokens.count(expected.ALIGNMENT)
    if align > _MAX_ALIGN or align & (align - 1) or not align:
        raise tokens.error(
            phrase(
                "{alignment} is no alignment: a power of two up to {most} is one",
                alignment=align,
                most=_MAX_ALIGN,
            )
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


def _variable(tokens: Tokens, form: Kind, space: str, extern: bool) -> Variable:
    name = variable_name(tokens)
    if form.type == "pred":
        raise tokens.error(phrase("{name}: a predicate can only be a register", name=name))
    dims: list[int | None] = []  # None: [], as many as there are initial values
    while tokens.accept("["):
        dims.append(tokens.count(expected.ELEMENTS) if tokens.kind == NUMBER else None)
        tokens.expect("]")
        if len(dims) > _MAX_DIMENSIONS:
            raise tokens.error(
                phrase("{name} has more than {most} dimensions", name=name, most=_MAX_DIMENSIONS)
            )
    if None in dims[1:]:
        raise tokens.error(phrase("{name}: only the first dimension may be left open", name=name))
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
        raise tokens.error(
            phrase("{name} is larger than {most} GB", name=name, most=_MAX_BYTES >> 30)
        )
    return Variable(name, space, size, form.align, tuple(values), extern)


def variable_name(tokens: Tokens) -> str:
    name = tokens.word()
    if name[0] == "%" or name == "_":
        raise tokens.error(phrase("{name} is no name for a variable or function", name=name))
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
        raise tokens.error(
            phrase("{values} initial values where {room} belong", values=count, room=shape[0])
        )


def _initial(tokens: Tokens, type_: str) -> tuple[int | Address, int]:
    """``5``, ``name + 4``, ``generic(name) + 4`` or ``0xFF00(generic(name) + 4)``."""
    size = SIZES[type_]
    if tokens.kind == WORD:
        return _address(tokens, _ALL), size
    literal = constant(tokens)
    if not tokens.accept("("):
        return _bits(tokens, literal, type_), size
    address = _address(tokens, _bits(tokens, literal, "b64"))
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


def _bits(tokens: Tokens, literal: str, type_: str) -> int:
    """An integer is cut to its type, as ptxas does."""
    mask = (1 << 8 * SIZES[type_]) - 1
    if literal.isdigit():
        return int(literal) & mask
    try:
        if integer(literal.lstrip("-")) is None:
            return number(literal, type_)
        return number(literal, "b64") & mask
    except ValueError:
        raise tokens.error(
            phrase("{literal} cannot be the value of a .{type}", literal=literal, type=type_)
        ) from None
