"""Slots for constants, special registers and, by live range, the registers of every function."""

from __future__ import annotations

from ptxsim.lowering.control_flow import Block, live_ranges, share_slots
from ptxsim.lowering.memory_layout import Frame
from ptxsim.lowering.operation import (
    SPECIAL_REGISTERS,
    Constant,
    Operand,
    Operation,
    Predicate,
    Register,
    Special,
    inputs,
    outputs,
    registers,
)


class Slots:
    """Slots for constants, special registers and, per function, registers by live range."""

    def __init__(self) -> None:
        self.registers = 0  # virtual registers numbered so far
        self.virtual: dict[int, int] = {}  # register number → slot within its width's area
        self.wide = 0  # 64-bit slots used so far
        self.narrow = 0
        self.constants: dict[Constant, int] = {}
        self.special: dict[int, int] = {}
        self.narrow_base = self.count = 0

    def assign(self, code: list[Operation], blocks: list[Block], frame: Frame) -> None:
        wide, narrow = self.wide, self.narrow
        for width in (8, 4):
            reads = [registers(inputs(o), width) for o in code]
            writes = [registers(outputs(o), width) for o in code]
            ranges = live_ranges(blocks, reads, writes, [o.guard is None for o in code])
            slots, count = share_slots(ranges)
            base = self.wide if width == 8 else self.narrow
            self.virtual |= {register: base + slot for register, slot in slots.items()}
            if width == 8:
                self.wide += count
            else:
                self.narrow += count
        frame.wide, frame.narrow = (wide, self.wide), (narrow, self.narrow)
        for operation in code:
            for operand in (*operation.operands, *operation.extra):
                if isinstance(operand, Constant):
                    self.constants.setdefault(operand, 0)
                elif isinstance(operand, Special):
                    self.special.setdefault(operand.which, 0)

    def finish(self) -> None:
        """Lay out: wide registers, wide constants, then everything of 32 bits."""
        at = 2 * self.wide
        for constant in self.constants:
            if constant.width == 8:
                self.constants[constant] = at
                at += 2
        self.narrow_base = at
        at += self.narrow
        for constant in self.constants:
            if constant.width == 4:
                self.constants[constant] = at
                at += 1
        for which in self.special:
            self.special[which] = at
            at += 1
        self.count = at

    def place(self, operand: Operand) -> int:
        if operand is None:
            return -1
        if isinstance(operand, Register):
            slot = self.virtual[operand.number]
            return 2 * slot if operand.width == 8 else self.narrow_base + slot
        if isinstance(operand, Predicate):
            return operand.number
        if isinstance(operand, Constant):
            return self.constants[operand]
        if isinstance(operand, Special):
            return self.special[operand.which]
        return operand

    def presets(self) -> list[tuple[int, int, int]]:
        return [(s, c.width, c.value & ((1 << 64) - 1)) for c, s in self.constants.items()]

    def specials(self) -> list[int]:
        return [self.special.get(w, -1) for w in range(len(SPECIAL_REGISTERS))]
