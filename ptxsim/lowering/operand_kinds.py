"""Kinds of operands as PTX writes them, and which of them each rule takes.

Every rule declares the kinds that it takes, and only ``Rule.check`` compares an instruction with
them, before the rule sees it. So a kind that a rule does not handle is an error when the program is
loaded, never a wrong value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from typing import TYPE_CHECKING

from ptxsim.frontend import Function, Instruction
from ptxsim.lowering.operation import CLOCKS, SPECIAL_REGISTERS, UnsupportedInstruction
from ptxsim.message import phrase, verbatim

if TYPE_CHECKING:
    from ptxsim.lowering.lower import Lowering


class OperandKind(Flag):
    REGISTER = auto()
    PREDICATE = auto()
    NEGATED = auto()  # !%p
    NUMBER = auto()
    SPECIAL = auto()  # %tid.x, %clock
    NAME = auto()  # of a variable, with an offset or without; of a label; of a function
    VECTOR = auto()  # {…} of registers, special registers and values
    ADDRESS = auto()  # […]
    PAIR = auto()  # %p|%q
    NOWHERE = auto()  # _
    LIST = auto()  # (…) of a call


REGISTER, PREDICATE, NAME = OperandKind.REGISTER, OperandKind.PREDICATE, OperandKind.NAME
NUMBER, SPECIAL, ADDRESS, PAIR = (
    OperandKind.NUMBER,
    OperandKind.SPECIAL,
    OperandKind.ADDRESS,
    OperandKind.PAIR,
)
VECTOR, LIST = OperandKind.VECTOR, OperandKind.LIST
VALUE = (
    OperandKind.REGISTER | OperandKind.NUMBER | OperandKind.NAME
)  # a name is the address of a variable
CONDITION = OperandKind.PREDICATE | OperandKind.NEGATED | OperandKind.NUMBER
TARGET = OperandKind.REGISTER | OperandKind.NOWHERE
_ELEMENT = VALUE | OperandKind.SPECIAL | OperandKind.NOWHERE  # of a vector

_WORDS = {
    OperandKind.REGISTER: phrase("a register"),
    OperandKind.PREDICATE: phrase("a predicate"),
    OperandKind.NEGATED: phrase("a negated predicate"),
    OperandKind.NUMBER: phrase("a number"),
    OperandKind.SPECIAL: phrase("a special register"),
    OperandKind.NAME: phrase("a name"),
    OperandKind.VECTOR: phrase("such a vector"),
    OperandKind.ADDRESS: phrase("an address"),
    OperandKind.PAIR: phrase("two predicates"),
    OperandKind.NOWHERE: verbatim("_"),
    OperandKind.LIST: phrase("a list"),
}


_BY_FIRST = {
    "[": OperandKind.ADDRESS,
    "{": OperandKind.VECTOR,
    "(": OperandKind.LIST,
    "!": OperandKind.NEGATED,
}


def kind_of(text: str, function: Function) -> OperandKind:
    declared = function.register_type(text)
    if declared is not None:
        return OperandKind.PREDICATE if declared == "pred" else OperandKind.REGISTER
    first = text[0]
    if first in _BY_FIRST:
        return _BY_FIRST[first]
    if first.isdigit() or first == "-":
        return OperandKind.NUMBER
    if text == "_":
        return OperandKind.NOWHERE
    if "|" in text:
        return OperandKind.PAIR
    return OperandKind.SPECIAL if text in SPECIAL_REGISTERS or text in CLOCKS else OperandKind.NAME


@dataclass(frozen=True)
class Rule:
    """``takes``: by place. The last ``optional`` of them may be missing; any number of operands of
    the kind ``rest`` may follow."""

    lower: Callable[[Lowering, Instruction, list[str]], None]
    takes: tuple[OperandKind, ...] = ()
    optional: int = 0
    rest: OperandKind | None = None

    def check(self, item: Instruction, function: Function) -> None:
        """Raises UnsupportedInstruction."""
        given, most = len(item.operands), len(self.takes)
        if given < most - self.optional or (given > most and self.rest is None):
            raise UnsupportedInstruction.form(item)
        for at, text in enumerate(item.operands):
            takes = self.takes[at] if at < most else self.rest
            kind = kind_of(text, function)
            if takes is None or kind not in takes or not _parts_fit(kind, text, function):
                raise UnsupportedInstruction.operand(item, text, _WORDS[kind])


def _parts_fit(kind: OperandKind, text: str, function: Function) -> bool:
    if kind is not OperandKind.VECTOR:
        return True
    parts = (kind_of(part.strip(), function) for part in text[1:-1].split(","))
    return all(part in _ELEMENT for part in parts)
