"""Kinds of operands as PTX writes them, and which of them each rule takes.

Every rule declares them; ``Rule.check`` is the one place that holds an instruction against them,
before the rule sees it. So a kind that a rule was not written for is an error when the program is
loaded, never a wrong value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from typing import TYPE_CHECKING

from ptxsim.frontend import Function, Instruction
from ptxsim.lowering.operation import CLOCKS, SPECIAL_REGISTERS, UnsupportedInstruction

if TYPE_CHECKING:
    from ptxsim.lowering.lower import Lowering


class Kind(Flag):
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


REGISTER, PREDICATE, NAME = Kind.REGISTER, Kind.PREDICATE, Kind.NAME
NUMBER, SPECIAL, ADDRESS, PAIR = Kind.NUMBER, Kind.SPECIAL, Kind.ADDRESS, Kind.PAIR
VECTOR, LIST = Kind.VECTOR, Kind.LIST
VALUE = Kind.REGISTER | Kind.NUMBER | Kind.NAME  # a name is the address of a variable
CONDITION = Kind.PREDICATE | Kind.NEGATED | Kind.NUMBER
TARGET = Kind.REGISTER | Kind.NOWHERE
_ELEMENT = VALUE | Kind.SPECIAL | Kind.NOWHERE  # of a vector

_WORDS = {
    Kind.REGISTER: "a register",
    Kind.PREDICATE: "a predicate",
    Kind.NEGATED: "a negated predicate",
    Kind.NUMBER: "a number",
    Kind.SPECIAL: "a special register",
    Kind.NAME: "a name",
    Kind.VECTOR: "such a vector",
    Kind.ADDRESS: "an address",
    Kind.PAIR: "two predicates",
    Kind.NOWHERE: "_",
    Kind.LIST: "a list",
}


_BY_FIRST = {"[": Kind.ADDRESS, "{": Kind.VECTOR, "(": Kind.LIST, "!": Kind.NEGATED}


def kind_of(text: str, function: Function) -> Kind:
    declared = function.register_type(text)
    if declared is not None:
        return Kind.PREDICATE if declared == "pred" else Kind.REGISTER
    first = text[0]
    if first in _BY_FIRST:
        return _BY_FIRST[first]
    if first.isdigit() or first == "-":
        return Kind.NUMBER
    if text == "_":
        return Kind.NOWHERE
    if "|" in text:
        return Kind.PAIR
    return Kind.SPECIAL if text in SPECIAL_REGISTERS or text in CLOCKS else Kind.NAME


@dataclass(frozen=True)
class Rule:
    """``takes``: by place. The last ``optional`` of them may be missing; any number of operands of
    the kind ``rest`` may follow."""

    lower: Callable[[Lowering, Instruction, list[str]], None]
    takes: tuple[Kind, ...] = ()
    optional: int = 0
    rest: Kind | None = None

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


def _parts_fit(kind: Kind, text: str, function: Function) -> bool:
    if kind is not Kind.VECTOR:
        return True
    parts = (kind_of(part.strip(), function) for part in text[1:-1].split(","))
    return all(part in _ELEMENT for part in parts)
