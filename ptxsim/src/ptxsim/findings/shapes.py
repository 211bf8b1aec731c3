"""Indices of shared arrays of several dimensions. PTX has them flat; sources say their shape.

Sources are a stranger's, and are read outside of any cage: the work is linear in their length.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ptxsim.text import Message

_COMMENT = re.compile(r"//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)")
_CONSTANT = re.compile(
    r"\bconst(?:expr)?\s+(?:static\s+)?(?:unsigned|int|size_t|long)\s+(.+)", re.S
)
_MACRO = re.compile(r"\s*#\s*define\s+(\w+)\s+(.+)")
_ARRAY = re.compile(r"\b(\w{1,100})\s*((?:\[[^\[\]]+\]\s*){2,})")
_EXTENT = re.compile(r"\[([^\[\]]+)\]")
_ELEMENT = re.compile(r"\b(\w{1,100})\[(\d{1,15})\](?!\[)")
_LONGEST = 300  # characters of a declaration
_LARGEST = 1 << 20  # elements, and any number on the way to them
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
    # What ends here: a declaration, in its last characters.
    ends = [each[-_LONGEST:] for text in texts for each in text.split(";")]
    values: dict[str, set[str]] = {}
    for name, value in (*_macros(texts), *_constants(ends)):
        values.setdefault(name, set()).add(value)
    constants = _Constants({name: each.pop() for name, each in values.items() if len(each) == 1})
    shapes: dict[str, set[tuple[int, ...]]] = {}
    for declared in (each.partition("__shared__")[2] for each in ends):
        for name, extents in _ARRAY.findall(declared):
            found = (constants.value(each) for each in _EXTENT.findall(extents))
            shapes.setdefault(name, set()).add(tuple(each or 0 for each in found))
    agreed = {name: each.pop() for name, each in shapes.items() if len(each) == 1}
    return {name: shape for name, shape in agreed.items() if min(shape) > 0}


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
    shape, rest = shapes.get(found[1]), int(found[2])
    if shape is None:
        return found[0]
    places = []
    for at in range(1, len(shape)):
        place, rest = divmod(rest, math.prod(shape[at:]))
        places.append(place)
    return found[1] + "".join(f"[{each}]" for each in (*places, rest))


def _macros(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in (each for text in texts for each in text.split("\n") if "#" in each):
        if len(line) <= _LONGEST and (found := _MACRO.match(line)):
            yield found[1], found[2]


def _constants(ends: Iterable[str]) -> Iterator[tuple[str, str]]:
    for found in filter(None, map(_CONSTANT.search, ends)):
        for name, equals, value in (each.partition("=") for each in found[1].split(",")):
            if equals:
                yield name.strip(), value


class _Constants:
    """Names and the expressions that they stand for, each worked out once."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._known: dict[str, int | None] = {}

    def value(self, text: str) -> int | None:
        """None where an expression is more than integers and known names, or too large."""
        try:
            tree = ast.parse(text.strip().replace("/", "//"), mode="eval")
            return self._of(tree.body)
        except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
            return None

    def _of(self, node: ast.expr) -> int | None:
        found: object = None
        match node:
            case ast.Constant(value=found):
                pass
            case ast.Name(id=name) if name in self._texts:
                if name not in self._known:
                    self._known[name] = None  # what it is while it is worked out
                    self._known[name] = self.value(self._texts[name])
                found = self._known[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
                one, other = self._of(left), self._of(right)
                if one is not None and other is not None:
                    found = _OPERATIONS[type(op)](one, other)
        return found if isinstance(found, int) and abs(found) <= _LARGEST else None
