"""Instructions → engine operations.

Arithmetic goes by PTX's own names once modifiers that do not change the result are dropped
(rounding to nearest, flush-to-zero which nvcc does not ask for by default, ``.approx``: computed
exactly here). Memory, control and warp instructions have rules of their own in rules.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ptxsim.frontend import SIZES, Function, Instruction, Label, number
from ptxsim.lowering.operation import (
    SPECIAL_REGISTERS,
    WIDE_SPECIALS,
    Constant,
    Operand,
    Operation,
    Predicate,
    Register,
    Special,
    UnsupportedInstruction,
    fits,
    output_count,
)

_IGNORED = {"rn", "ftz", "approx", "full", "noftz", "uni"}
_FLOPS = {"fma": 2, "mad": 2, "add": 1, "sub": 1, "mul": 1, "div": 1, "sqrt": 1, "rcp": 1}
_SYMBOL = re.compile(r"([\w$.@]+)(?:\s*\+\s*(-?\w+))?$")
_ROUND = {"rni": "n", "rzi": "z", "rmi": "m", "rpi": "p"}

Rule = Callable[["Lowering", Instruction, list[str]], None]


class Lowering:
    """Lowers one function. Registers are numbered from ``first_register`` so that functions of
    one program never share slots: a call needs no saving."""

    def __init__(
        self,
        function: Function,
        shapes: Mapping[str, str],
        symbols: Mapping[str, Constant],
        rules: Mapping[str, Rule],
        prefix: str,
        registers: int,
        predicates: int,
    ) -> None:
        self.function = function
        self.shapes = shapes
        self.symbols = symbols  # addresses of variables and of .param storage
        self.rules = rules
        self.prefix = prefix  # makes labels unique in the program
        self.registers = registers
        self.predicates = predicates
        self.names: dict[str, Operand] = {}
        self.code: list[Operation | str] = []  # a str is a label
        self.current: Instruction | None = None

    def run(self) -> list[Operation | str]:
        for item in self.function.body:
            if isinstance(item, Label):
                self.code.append(self.prefix + item.name)
                continue
            self.current = item
            base, *mods = item.opcode.split(".")
            rule = self.rules.get(base)
            try:
                if rule is not None:
                    rule(self, item, mods)
                else:
                    self.plain(item, base, mods)
            except (
                IndexError,
                KeyError,
                ValueError,
            ):  # too few operands, an unknown type, no number
                raise self.unsupported_form() from None
        return self.code

    # --- operands

    def operand(self, text: str, kind: str) -> Operand:
        """``text`` as a register, constant, special register or address; ``kind`` its type."""
        found = self.names.get(text)
        if found is not None:
            return found
        if text[0] == "%" or text[0].isalpha() or text[0] in "_$":
            declared = self.function.register_type(text)
            if declared is not None:
                result: Operand = self._new(declared)
                self.names[text] = result
                return result
            if text in SPECIAL_REGISTERS:
                return Special(SPECIAL_REGISTERS.index(text))
            return self.symbol(text, 8 if SIZES.get(kind, 4) == 8 else 4)
        return Constant(number(text, kind), 8 if SIZES.get(kind, 4) == 8 else 4)

    def register_kind(self, text: str, otherwise: str) -> str:
        """The declared type of the register ``text``, ``!`` aside."""
        return self.function.register_type(text.lstrip("!")) or otherwise

    def _new(self, kind: str) -> Operand:
        if kind == "pred":
            return self.predicate()
        if SIZES[kind] > 8:
            raise self.unsupported()
        return self.register(8 if SIZES[kind] == 8 else 4)

    def register(self, width: int) -> Register:
        self.registers += 1
        return Register(self.registers - 1, width)

    def predicate(self) -> Predicate:
        self.predicates += 1
        return Predicate(self.predicates - 1)

    def symbol(self, text: str, width: int) -> Constant:
        match = _SYMBOL.match(text)
        if match and match[1] in self.symbols:
            offset = int(match[2], 0) if match[2] else 0
            return Constant(self.symbols[match[1]].value + offset, width)
        raise self.unsupported(f"{text} is not a variable or register the simulator knows")

    def source(self, text: str, kind: str) -> Operand:
        """An input; ``!%p`` and a register wider or narrower than its type are brought in line."""
        if text[0] == "!":
            if kind != "pred":
                raise self.unsupported_form()
            inverted = self.predicate()
            self.emit("not.pred", [inverted, self.operand(text[1:], "pred")])
            return inverted
        value = self.operand(text, kind)
        if kind == "pred" and isinstance(value, Constant):
            constant = self.predicate()
            self.emit("setp.ne.u32", [constant, value, Constant(0, 4)])
            return constant
        wide = SIZES[kind] == 8
        if (
            isinstance(value, Special)
            and wide
            and SPECIAL_REGISTERS[value.which] not in WIDE_SPECIALS
        ):
            return self.converted(value, "cvt.r.u64.u32", 8)
        if isinstance(value, Register) and kind != "pred":
            if value.width == 8 and not wide:
                return self.converted(value, "cvt.r.u32.u64", 4)
            if value.width == 4 and wide:
                return self.converted(value, "cvt.r.u64.u32", 8)
        return value

    def converted(self, value: Operand, name: str, width: int) -> Register:
        result = self.register(width)
        self.emit(name, [result, value])
        return result

    def target(self, text: str, kind: str) -> Operand:
        """An output; "_" throws the value away."""
        if text == "_":
            return self._new(kind)
        return self.operand(text, kind)

    def vector(self, text: str, kind: str, *, output: bool) -> list[Operand]:
        """``{a, b}`` or a single operand."""
        parts = [p.strip() for p in text.strip("{}").split(",")] if text[0] == "{" else [text]
        if output:
            return [self.target(part, kind) for part in parts]
        return [self.operand(part, kind) for part in parts]

    def address(self, text: str) -> tuple[Operand, int, int]:
        """``[base + offset]`` → base operand (None: absolute), its width, byte offset."""
        inner = text.strip("[] ").replace(" ", "")
        base, plus, offset = inner.partition("+")
        if self.function.register_type(base) is not None:
            register = self.operand(base, "b64")
            if not isinstance(register, Register):
                raise self.unsupported_form()
            return register, register.width, self.offset(int(offset, 0) if plus else 0)
        try:
            return None, 8, self.offset(int(inner, 0))
        except ValueError:
            return None, 8, self.offset(self.symbol(inner, 8).value)

    def offset(self, value: int) -> int:
        """As the engine adds it: 64 bits, signed."""
        if not -(1 << 63) <= value < 1 << 64:
            raise self.unsupported_form()
        return value - (1 << 64) if value >= 1 << 63 else value

    def branch_table(self, name: str) -> list[str]:
        return self.function.targets[name]

    # --- output

    def emit(self, name: str, operands: list[Operand], **fields: object) -> Operation:
        shape = self.shapes.get(name)
        if shape is None:
            raise self.unsupported()
        operation = Operation(name, operands, **fields)  # type: ignore[arg-type]
        operation.outputs = output_count(shape)
        if not fits(shape, operation):
            raise self.unsupported_form()
        operation.source = self.current
        self.code.append(operation)
        return operation

    def emit_guarded(self, name: str, operands: list[Operand], **fields: object) -> Operation:
        """As ``emit``, under the instruction's own guard."""
        operation = self.emit(name, operands, **fields)
        assert self.current is not None
        if self.current.guard is not None:
            guard = self.operand(self.current.guard, "pred")
            if not isinstance(guard, Predicate):
                raise self.unsupported_form()
            operation.guard, operation.negate = guard, self.current.negate
        return operation

    def unsupported(self, why: str = "") -> UnsupportedInstruction:
        assert self.current is not None
        return UnsupportedInstruction(self.current, why)

    def unsupported_form(self) -> UnsupportedInstruction:
        assert self.current is not None
        return UnsupportedInstruction.form(self.current)

    # --- arithmetic

    def plain(self, item: Instruction, base: str, mods: list[str]) -> None:
        """Destination first, then sources, all of the last type but where PTX says otherwise."""
        kept = [m for m in mods if m not in _IGNORED]
        if not kept:
            raise self.unsupported()
        kind = kept[-1]
        if kind not in SIZES:
            raise self.unsupported()
        kinds = _source_kinds(base, kept, kind)
        result = _result_kind(base, kept, kind)
        name = ".".join([base, *_canonical(base, kept)])
        if name not in self.shapes or (base == "prmt" and len(kept) > 1):
            raise self.unsupported()
        given, table = item.operands[1:], 0
        if base == "lop3":
            given, table = given[:3], int(item.operands[4], 0) & 255
        sources = [self.source(text, kinds[min(i, len(kinds) - 1)]) for i, text in enumerate(given)]
        target = self.target(item.operands[0], result)
        if isinstance(target, Register) and target.width == 8 and SIZES[result] < 8:
            raise self.unsupported()
        flops = _FLOPS.get(base, 0) * _pairs(kind) if kind[0] in "fb" and kind[0:2] != "b3" else 0
        self.emit_guarded(name, [target, *sources], imm=table, flops=flops)


def _pairs(kind: str) -> int:
    return 2 if kind.endswith("x2") else 1


_BY_SIZE = {"mov", "and", "or", "xor", "not", "cnot", "selp", "shl"}
_SIGN_FREE_SOURCES = {"popc", "clz", "brev", "bfi", "shf", "prmt", "lop3"}


def _canonical(base: str, kept: list[str]) -> list[str]:
    """The type part of the engine's name: bit types where the sign does not matter."""
    kind = kept[-1]
    if base in _BY_SIZE:
        return ["pred"] if kind == "pred" else [f"b{SIZES[kind] * 8}"]
    if base in _SIGN_FREE_SOURCES:
        return [*kept[:-1], f"b{SIZES[kind] * 8}"]
    if base == "slct":
        return [f"b{SIZES[kept[0]] * 8}", kept[1]]
    if kind[0] == "b" and kind[:2] != "bf":
        kept = [*kept[:-1], f"u{SIZES[kind] * 8}"]
    if base in {"addc", "subc", "add", "sub"} and ("cc" in kept or base in {"addc", "subc"}):
        kept = [*kept[:-1], f"u{SIZES[kind] * 8}"]
    return kept


def _source_kinds(base: str, kept: list[str], kind: str) -> list[str]:
    if base in {"shl", "shr"}:
        return [kind, "u32"]
    if base == "selp":
        return [kind, kind, "pred"]
    if base == "slct":
        return [kept[0], kept[0], kept[1]]
    if base == "bfe":
        return [kind, "u32", "u32"]
    if base == "bfi":
        return [kind, kind, "u32", "u32"]
    if base == "mad" and "wide" in kept:
        return [kind, kind, _double(kind)]
    return [kind]


def _result_kind(base: str, kept: list[str], kind: str) -> str:
    if base in {"mul", "mad"} and "wide" in kept:
        return _double(kind)
    if base in {"popc", "clz", "bfind"}:
        return "u32"
    if base == "testp":
        return "pred"
    if base == "slct":
        return kept[0]
    return kind


def _double(kind: str) -> str:
    return f"{kind[0]}{SIZES[kind] * 16}"


def conversion_name(mods: list[str]) -> str:
    """The engine's name of ``cvt`` with these modifiers, e.g. "cvt.z.s32.f32"."""
    *rest, to, source = [m for m in mods if m not in {"ftz", "rn"}]
    if to in {"f16x2", "bf16x2", "tf32"}:
        return ".".join(["cvt", *(m for m in rest if m != "rna"), to, source])
    mode = _ROUND.get(rest[0], rest[0]) if rest else "r"
    rest = rest[1:]
    to = to.replace("b", "u") if to[0] == "b" and to != "bf16" else to
    return ".".join(["cvt", mode, to, source, *rest])
