"""Instructions → engine operations: what the rules of rules.py have in common."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ptxsim.frontend.declarations import number
from ptxsim.frontend.records import SIZES, Function, Instruction, Label
from ptxsim.lowering import operation as ops
from ptxsim.text import Message, phrase

_WORD = re.compile(r"[\w$%.@]+")
_SYMBOL = re.compile(r"([\w$.@%]+)(?:\s*\+\s*(-?\w+))?$")


@dataclass
class Lowering:
    """Lowers one function. Registers are numbered from ``registers`` on, so that functions of
    one program never share slots: a call needs no saving."""

    function: Function
    shapes: Mapping[str, str]
    symbols: Mapping[str, ops.Constant]  # addresses of variables and of .param storage
    rules: Mapping[str, ops.Rule]
    prefix: str  # makes labels unique in the program
    registers: int
    predicates: int
    names: dict[str, ops.Operand] = field(default_factory=dict)
    code: list[ops.Operation | str] = field(default_factory=list)  # a str is a label
    current: Instruction | None = None

    def run(self) -> list[ops.Operation | str]:
        for item in self.function.body:
            if isinstance(item, Label):
                self.code.append(self.prefix + item.name)
                continue
            self.current = item
            base, *mods = item.opcode.split(".")
            rule = self.rules.get(base, self.rules[""])
            try:
                rule.check(item, self.function)
                rule.lower(self, item, mods)
            except (LookupError, ValueError):  # too few operands, an unknown type, no number
                raise self.unsupported_form() from None
        return self.code

    # --- operands

    def operand(self, text: str, kind: str) -> ops.Operand:
        """``text`` as a register, constant, special register or address; ``kind`` its type."""
        found = self.names.get(text)
        if found is not None:
            return found
        if text[0] == "%" or text[0].isalpha() or text[0] in "_$":
            declared = self.function.register_type(text)
            if declared is not None:
                result: ops.Operand = self._new(declared)
                self.names[text] = result
                return result
            if text in ops.CLOCKS:
                return self.clock(text)
            if text in ops.SPECIAL_REGISTERS:
                return ops.Special(ops.SPECIAL_REGISTERS.index(text))
            return self.symbol(text, 8 if SIZES.get(kind, 4) == 8 else 4)
        return ops.Constant(number(text, kind), 8 if SIZES.get(kind, 4) == 8 else 4)

    def is_never_read(self, text: str) -> bool:
        """Whether the register ``text``, which an instruction sets, stands nowhere else."""
        return self._mentions[text] == 1

    @cached_property
    def _mentions(self) -> Counter[str]:
        """How often each word stands among the operands of the function."""
        return Counter(
            word
            for item in self.function.instructions
            for text in item.operands
            for found in _WORD.findall(text)
            for word in {found, found.partition(".")[0]}
        )

    def clock(self, text: str) -> ops.Register:
        """Emit the reading of a clock and return its register."""
        part = ops.CLOCKS[text]
        width = 4 if part == "short" else 8
        whole = self.result(f"clock.b{8 * width}", width)
        if part not in ("low", "high"):
            return whole
        half = self.register(4)
        self.emit("unpack.b64", [half, None, whole] if part == "low" else [None, half, whole])
        return half

    def register_kind(self, text: str, otherwise: str) -> str:
        """The declared type of the register ``text``, ``!`` aside."""
        return self.function.register_type(text.lstrip("!")) or otherwise

    def _new(self, kind: str) -> ops.Operand:
        if kind == "pred":
            return self.predicate()
        if SIZES[kind] > 8:
            raise self.unsupported()
        return self.register(8 if SIZES[kind] == 8 else 4)

    def register(self, width: int) -> ops.Register:
        self.registers += 1
        return ops.Register(self.registers - 1, width)

    def predicate(self) -> ops.Predicate:
        self.predicates += 1
        return ops.Predicate(self.predicates - 1)

    def symbol(self, text: str, width: int) -> ops.Constant:
        match = _SYMBOL.match(text)
        if match and match[1] in self.symbols:
            offset = int(match[2], 0) if match[2] else 0
            return ops.Constant(self.symbols[match[1]].value + offset, width)
        raise self.unsupported(
            phrase("{name} is not a variable or register the simulator knows", name=text)
        )

    def source(self, text: str, kind: str) -> ops.Operand:
        """An input: also ``!%p``, and a register wider or narrower than its type."""
        if text[0] == "!":
            if kind != "pred":
                raise self.unsupported_form()
            inverted = self.predicate()
            self.emit("not.pred", [inverted, self.operand(text[1:], "pred")])
            return inverted
        value = self.operand(text, kind)
        if kind == "pred" and isinstance(value, ops.Constant):
            constant = self.predicate()
            self.emit("setp.ne.u32", [constant, value, ops.Constant(0, 4)])
            return constant
        if kind != "pred" and isinstance(value, (ops.Register, ops.Special)):
            given = value.width if isinstance(value, ops.Register) else 4
            width = 8 if SIZES[kind] == 8 else 4
            if given != width:
                return self.result(f"cvt.r.u{8 * width}.u{8 * given}", width, value)
        return value

    def result(self, name: str, width: int, *values: ops.Operand) -> ops.Register:
        """A new register of ``width`` bytes that this operation sets."""
        result = self.register(width)
        self.emit(name, [result, *values])
        return result

    def target(self, text: str, kind: str) -> ops.Operand:
        """An output; "_" discards the value."""
        if text == "_":
            return self._new(kind)
        return self.operand(text, kind)

    def vector(self, text: str, kind: str, *, output: bool) -> list[ops.Operand]:
        """``{a, b}`` or a single operand."""
        parts = [p.strip() for p in text.strip("{}").split(",")] if text[0] == "{" else [text]
        if output:
            return [self.target(part, kind) for part in parts]
        return [self.operand(part, kind) for part in parts]

    def address(self, text: str) -> tuple[ops.Operand, int, int]:
        """``[base + offset]`` → base operand (None: absolute), its width, byte offset."""
        inner = text.strip("[] ").replace(" ", "")
        base, plus, offset = inner.partition("+")
        if self.function.register_type(base) is not None:
            register = self.operand(base, "b64")
            if not isinstance(register, ops.Register):
                raise self.unsupported_form()
            return register, register.width, self.offset(int(offset, 0) if plus else 0)
        try:
            return None, 8, self.offset(int(inner, 0))
        except ValueError:
            return None, 8, self.offset(self.symbol(inner, 8).value)

    def offset(self, value: int) -> int:
        """Return ``value`` as the engine adds it: 64 bits, signed."""
        if not -(1 << 63) <= value < 1 << 64:
            raise self.unsupported_form()
        return value - (1 << 64) if value >= 1 << 63 else value

    # --- output

    def emit(self, name: str, operands: list[ops.Operand], **fields: object) -> ops.Operation:
        shape = self.shapes.get(name)
        if shape is None:
            raise self.unsupported()
        operation = ops.Operation(name, operands, **fields)  # type: ignore[arg-type]
        operation.outputs = ops.output_count(shape)
        if not ops.fits(shape, operation):
            raise self.unsupported_form()
        operation.source = self.current
        self.code.append(operation)
        return operation

    def emit_guarded(
        self, name: str, operands: list[ops.Operand], **fields: object
    ) -> ops.Operation:
        """Emit like ``emit``, under the instruction's own guard."""
        operation = self.emit(name, operands, **fields)
        assert self.current is not None
        if self.current.guard is not None:
            guard = self.operand(self.current.guard, "pred")
            if not isinstance(guard, ops.Predicate):
                raise self.unsupported_form()
            operation.guard, operation.negate = guard, self.current.negate
        return operation

    def unsupported(self, why: Message | None = None) -> ops.UnsupportedInstruction:
        assert self.current is not None
        return ops.UnsupportedInstruction(self.current, why)

    def unsupported_form(self) -> ops.UnsupportedInstruction:
        assert self.current is not None
        return ops.UnsupportedInstruction.form(self.current)
