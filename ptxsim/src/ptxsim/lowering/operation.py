"""Operands as PTX writes them, and the operations that program.py packs for the engine.

Every rule declares the kinds of operands that it takes, and only ``Rule.check`` compares an
instruction with them, before the rule sees it. So a kind that a rule does not handle is an error
when the program is loaded, never a wrong value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ptxsim.frontend.records import Function, Instruction
from ptxsim.text import Message, phrase, verbatim

if TYPE_CHECKING:
    from ptxsim.lowering.lower import Lowering

# Spaces, flags and registers; engine_header.py passes these tables on to the engine.
SPACES = ("GLOBAL", "SHARED", "LOCAL", "PARAM", "CONST", "GENERIC")
GLOBAL, SHARED, LOCAL, PARAM, CONST, GENERIC = range(len(SPACES))
FLAG_BITS = {
    "SIGNED": 1,  # sign-extend the loaded value
    "SYNCHRONISES": 2,  # volatile, relaxed, acquire, release, atomic: no plain access
    "CROSS_LANE": 4,  # an undefined source lane makes every lane undefined
    "OWN_TAINT": 8,  # the handler tracks undefined values itself
    "SELECTS": 16,  # selp: taint follows the chosen operand
    "DECIDES": 32,  # branch, exit, barrier: an undefined guard is a finding
}
SIGNED, SYNCHRONISES, CROSS_LANE, OWN_TAINT, SELECTS, DECIDES = FLAG_BITS.values()
# What ld, st and atom have to do with order between threads: the operand behind their address.
ORDER_BITS = {
    "VOLATILE": 1,
    "ACQUIRES": 2,
    "RELEASES": 4,
    "BLOCK_SCOPE": 8,  # it synchronises the threads of a block only
    "AWAITED": 16,  # what it reads decides whether a loop around it goes on
    "PASSED_ON": 32,  # other functions get what it reads
    "READ_ONLY": 64,  # ld.global.nc, ld.const: nobody may write there in this launch
    "RESULT": 128,  # what it reads goes into a value that is stored
    # A compare-and-swap of what was loaded from the same address, and nobody reads its result.
    "EXPECTS_LOADED": 256,
    "UPDATED": 512,  # of ld: an atomic operation or a store that synchronises has its address, too
}
VOLATILE, ACQUIRES, RELEASES, BLOCK_SCOPE, AWAITED, *_more = ORDER_BITS.values()
PASSED_ON, READ_ONLY, RESULT, EXPECTS_LOADED, UPDATED = _more
ORDER_AT = 6  # its place among their operands
FUNCTION_STEP = 16  # bytes from a function's address to the next one's

SPECIAL_REGISTERS = (
    *(f"%{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"),
    *("%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid"),
    *(f"%lanemask_{relation}" for relation in ("eq", "lt", "le", "gt", "ge")),
    *("%dynamic_smem_size", "%total_smem_size", "%gridid"),
    # The address of the grid's workspace, its high half first; 0 unless a launch is cooperative.
    *("%envreg1", "%envreg2"),
    *(f"%{name}.{axis}" for name in ("cluster_ctaid", "cluster_nctaid") for axis in "xyz"),
    *(f"%{name}.{axis}" for name in ("clusterid", "nclusterid") for axis in "xyz"),
    *("%cluster_ctarank", "%cluster_nctarank"),
)
# Special registers that change while a thread runs, and how much of the time each shows.
CLOCKS = {
    **{"%clock": "short", "%clock_hi": "high", "%clock64": "whole"},
    **{"%globaltimer": "whole", "%globaltimer_lo": "low", "%globaltimer_hi": "high"},
}


class Register(NamedTuple):
    """A virtual register: its number within the program and its width in bytes (4 or 8)."""

    number: int
    width: int


class Predicate(NamedTuple):
    number: int


class Constant(NamedTuple):
    value: int
    width: int  # 4 or 8


class Special(NamedTuple):
    which: int  # index into SPECIAL_REGISTERS


Operand: TypeAlias = Register | Predicate | Constant | Special | int | None


@dataclass(slots=True)
class Operation:
    """One engine instruction before slots are known.

    ``operands`` fill Ins::o in order; the first ``outputs`` of them are written. Plain ints are
    passed through. ``extra`` goes to the pool behind the taint lists.
    """

    name: str
    operands: list[Operand]
    outputs: int = 0  # Lowering.emit takes it from the operation's shape
    imm: int = 0
    label: str | None = None  # branch target, resolved into imm
    labels: list[str] = field(default_factory=list)  # brx.idx targets
    guard: Predicate | None = None
    negate: bool = False
    width: int = 0
    vec: int = 1
    space: int = 0
    flags: int = 0
    dwidth: int = 4
    extra: list[Operand] = field(default_factory=list)
    source: Instruction | None = None
    first_use: Instruction | None = None  # of never_set: what reads the register first
    flops: int = 0  # per lane


def registers(operands: list[Operand], width: int) -> list[int]:
    """The numbers of the registers of ``width`` bytes among them."""
    return [o.number for o in operands if isinstance(o, Register) and o.width == width]


def outputs(operation: Operation) -> list[Operand]:
    """The operands an operation writes."""
    return (operation.extra or operation.operands)[: operation.outputs]


def inputs(operation: Operation) -> list[Operand]:
    """The operands an operation reads, its guard aside."""
    return (operation.extra or operation.operands)[operation.outputs :]


def output_count(shape: str) -> int:
    return shape.lstrip("*").index(">")


def fits(shape: str, operation: Operation) -> bool:
    """Whether the operands are those that ``shape`` (see operations.hpp) asks for."""
    outputs, _, inputs = shape.lstrip("*").partition(">")
    operands = list(operation.extra if shape[0] == "*" else operation.operands)
    for kind in outputs + inputs:
        if not operands:
            if not kind.isupper() and kind != "-":
                return False
            continue
        operand = operands.pop(0)
        if kind == "a":
            if not operands or not _is_address(operand, operands.pop(0)):
                return False
        elif not _is(kind.lower(), operand, operation.dwidth, may_be_absent=kind.isupper()):
            return False
    return all(operand is None for operand in operands) and _writable(outputs, operation)


def _is(kind: str, operand: Operand, width: int, *, may_be_absent: bool) -> bool:
    if operand is None:
        return may_be_absent or kind == "-"
    if kind == "p":
        return isinstance(operand, Predicate)
    if kind == "i":
        return isinstance(operand, int) and -(1 << 31) <= operand < 1 << 31
    if kind == "-":
        return False
    width = {"n": 4, "w": 8}.get(kind, width)
    if isinstance(operand, Special):
        return width == 4
    return isinstance(operand, (Register, Constant)) and operand.width == width


def _is_address(base: Operand, width: Operand) -> bool:
    if base is None:
        return width in (4, 8)
    return isinstance(base, Register) and base.width == width


def _writable(kinds: str, operation: Operation) -> bool:
    written = (operation.extra or operation.operands)[: len(kinds)]
    return not any(isinstance(operand, (Constant, Special)) for operand in written)


class UnsupportedInstruction(Exception):  # noqa: N818 - a fact about the PTX, not a fault
    """An instruction the simulator does not know."""

    def __init__(self, instruction: Instruction, why: Message | None = None) -> None:
        self.why = why or phrase(
            "the simulator does not know the PTX instruction {opcode}", opcode=instruction.opcode
        )
        self.instruction = instruction
        super().__init__(self.why)

    @classmethod
    def operand(cls, instruction: Instruction, text: str, what: Message) -> UnsupportedInstruction:
        return cls(
            instruction,
            phrase(
                "line {row} of the PTX: the simulator does not support {what} as an operand of "
                "{opcode} ({operand})",
                row=instruction.row,
                what=what,
                opcode=instruction.opcode[:40],
                operand=text[:40],
            ),
        )

    @classmethod
    def form(cls, instruction: Instruction) -> UnsupportedInstruction:
        words = f"{instruction.opcode} {', '.join(instruction.operands)}".strip()
        if len(words) > 120:
            words = words[:117] + "..."
        return cls(
            instruction,
            phrase(
                "line {row} of the PTX: the simulator does not support this form of {opcode} "
                "({words})",
                row=instruction.row,
                opcode=instruction.opcode[:40],
                words=words,
            ),
        )


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
    PIECE = auto()  # %r1.h0, -%r1, of a video instruction


REGISTER, PREDICATE, NEGATED, NUMBER, SPECIAL, NAME, *_FURTHER = OperandKind
VECTOR, ADDRESS, PAIR, NOWHERE, LIST, PIECE = _FURTHER
VALUE = REGISTER | NUMBER | NAME  # a name is the address of a variable
CONDITION = PREDICATE | NEGATED | NUMBER
TARGET = REGISTER | NOWHERE
_ELEMENT = VALUE | SPECIAL | NOWHERE  # of a vector

_WORDS = {
    REGISTER: phrase("a register"),
    PREDICATE: phrase("a predicate"),
    NEGATED: phrase("a negated predicate"),
    NUMBER: phrase("a number"),
    SPECIAL: phrase("a special register"),
    NAME: phrase("a name"),
    VECTOR: phrase("such a vector"),
    ADDRESS: phrase("an address"),
    PAIR: phrase("two predicates"),
    NOWHERE: verbatim("_"),
    LIST: phrase("a list"),
    PIECE: phrase("part of a register"),
}


_BY_FIRST = {"[": ADDRESS, "{": VECTOR, "(": LIST, "!": NEGATED}


def kind_of(text: str, function: Function) -> OperandKind:
    declared = function.register_type(text)
    if declared is not None:
        return PREDICATE if declared == "pred" else REGISTER
    register, _, piece = text.lstrip("-").partition(".")
    if (piece or text[0] == "-") and function.register_type(register) is not None:
        return PIECE
    first = text[0]
    if first in _BY_FIRST:
        return _BY_FIRST[first]
    if first.isdigit() or first == "-":
        return NUMBER
    if text == "_":
        return NOWHERE
    if "|" in text:
        return PAIR
    return SPECIAL if text in SPECIAL_REGISTERS or text in CLOCKS else NAME


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
    if kind is not VECTOR:
        return True
    parts = (kind_of(part.strip(), function) for part in text[1:-1].split(","))
    return all(part in _ELEMENT for part in parts)
