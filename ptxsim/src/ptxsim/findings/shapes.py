"""Indices of shared arrays of several dimensions. PTX has them flat; sources say their shape."""

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ptxsim.text import Message

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CONSTANT = re.compile(
    r"\b(?:constexpr|const)\s+(?:static\s+)?(?:unsigned|int|size_t|long)\s+([^;]*);"
    r"|^[ \t]*#[ \t]*define[ \t]+(\w+[ \t]+[^\n]+)$",
    re.MULTILINE,
)
_SHARED = re.compile(r"__shared__\s([^;]*);")
_ARRAY = re.compile(r"(\w+)\s*((?:\[[^\[\]]+\]\s*){2,})")
_ELEMENT = re.compile(r"(\w+)\[(\d+)\]")
_LONGEST = 200  # characters of an expression
_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def declared_shapes(sources: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Return, by name, the extents of shared arrays of several dimensions, where constants of the
    sources give them and all declarations of the name agree."""
    texts = [_COMMENT.sub(" ", each) for each in sources]
    constants: dict[str, set[str]] = {}
    for found in (each for text in texts for each in _CONSTANT.finditer(text)):
        parts = found[1].split(",") if found[1] else [re.sub(r"\s+", "=", found[2], count=1)]
        for name, equals, value in (part.partition("=") for part in parts):
            if equals:
                constants.setdefault(name.strip(), set()).add(value)
    known = {name: values.pop() for name, values in constants.items() if len(values) == 1}
    shapes: dict[str, set[tuple[int, ...] | None]] = {}
    for statement in (each[1] for text in texts for each in _SHARED.finditer(text)):
        for name, extents in _ARRAY.findall(statement):
            values = [_value(each, known, 8) for each in re.findall(r"\[([^\]]+)\]", extents)]
            whole = tuple(each for each in values if each)
            shapes.setdefault(name, set()).add(whole if len(whole) == len(values) else None)
    agreed = {name: each.pop() for name, each in shapes.items() if len(each) == 1}
    return {name: shape for name, shape in agreed.items() if shape}


def with_indices(message: Message, shapes: Mapping[str, tuple[int, ...]]) -> Message:
    """A message about shared memory with an index for each dimension: As[1][7], not As[139]. Other
    memory may have the same names."""

    def indexed(value: Any) -> Any:
        if isinstance(value, Message):
            args = {name: indexed(each) for name, each in value.args.items()}
            return msgspec.structs.replace(value, args=args)
        if isinstance(value, str):
            return _ELEMENT.sub(lambda found: _indexed(found, shapes), value)
        return value

    about = str(message) if shapes else ""
    found: Message = indexed(message) if "shared" in about and "global" not in about else message
    return found


def _indexed(found: re.Match[str], shapes: Mapping[str, tuple[int, ...]]) -> str:
    shape, rest = shapes.get(found[1], ()), int(found[2])
    if not shape or found.string[found.end() : found.end() + 1] == "[":
        return found[0]
    places = []
    for at in range(1, len(shape)):
        step = math.prod(shape[at:])
        places.append(rest // step)
        rest %= step
    return found[1] + "".join(f"[{each}]" for each in (*places, rest))


def _value(text: str, known: Mapping[str, str], depth: int) -> int | None:
    """The value of a constant expression; None where it is more than integers and known names."""
    if depth == 0 or len(text) > _LONGEST:
        return None

    def of(node: ast.expr) -> int | None:
        match node:
            case ast.Constant(value=int() as value):
                return value
            case ast.Name(id=name) if name in known:
                return _value(known[name], known, depth - 1)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
                one, other = of(left), of(right)
                if one is not None and other is not None:
                    return _OPERATIONS[type(op)](one, other)
        return None

    try:
        return of(ast.parse(text.strip().replace("/", "//"), mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None
