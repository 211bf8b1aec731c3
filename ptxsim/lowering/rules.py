"""Lowering rules of moves, comparisons, control flow; the table of all rules."""

from __future__ import annotations

from ptxsim.frontend import LIBRARY_CALLS, SIZES, Instruction
from ptxsim.lowering import mbarrier_rules, memory_rules, warp_rules
from ptxsim.lowering.lower import Lowering, Rule, conversion_name
from ptxsim.lowering.operation import (
    DECIDES,
    OWN_TAINT,
    SELECTS,
    Constant,
    Operand,
    Register,
)


def move(low: Lowering, item: Instruction, mods: list[str]) -> None:
    kind = mods[-1]
    target, source = item.operands
    if kind not in SIZES or SIZES[kind] > 8:
        raise low.unsupported()
    half = {"b64": "b32", "b32": "b16"}.get(kind, "b16")
    if source[0] == "{":
        parts = low.vector(source, half, output=False)
        if len(parts) != 2:
            raise low.unsupported()
        low.emit_guarded(f"pack.{kind}", [low.target(target, kind), *parts])
    elif target[0] == "{":
        names = [p.strip() for p in target.strip("{}").split(",")]
        if len(names) != 2:
            raise low.unsupported()
        outputs = [None if n == "_" else low.target(n, half) for n in names]
        low.emit_guarded(f"unpack.{kind}", [*outputs, low.source(source, kind)])
    else:
        bits = "pred" if kind == "pred" else f"b{SIZES[kind] * 8}"
        low.emit_guarded(f"mov.{bits}", [low.target(target, kind), low.source(source, kind)])


def convert(low: Lowering, item: Instruction, mods: list[str]) -> None:
    to, source = mods[-2], mods[-1]
    target_kind = "b32" if to in {"tf32", "f16x2", "bf16x2"} else to
    name = conversion_name(mods)
    values = [low.source(text, source) for text in item.operands[1:]]
    target = low.target(item.operands[0], target_kind)
    if isinstance(target, Register) and target.width == 8 and SIZES[target_kind] < 8:
        narrow = low.register(4)  # a narrow result in a wide register: extend it as its type says
        low.emit_guarded(name, [narrow, *values])
        wide = "cvt.r.s64.s32" if to[0] == "s" else "cvt.r.u64.u32"
        low.emit_guarded(wide, [target, narrow])
        return
    low.emit_guarded(name, [target, *values])


def compare(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """setp.cmp[.bool].type p[|q], a, b[, c]"""
    kept = [m for m in mods if m != "ftz"]
    cmp, kind = kept[0], kept[-1]
    combine = kept[1] if len(kept) == 3 else None
    cmp = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(cmp, cmp)
    if kind[0] == "b" and kind != "bf16":
        kind = f"u{SIZES[kind] * 8}"
    values = [low.source(text, kind) for text in item.operands[1:3]]
    first, _, second = item.operands[0].partition("|")
    name = f"setp.{cmp}.{kind}"
    if combine is None and not second:
        low.emit_guarded(name, [low.target(first, "pred"), *values])
        return
    outcome, opposite = low.predicate(), low.predicate()
    low.emit(name, [outcome, *values])
    low.emit("not.pred", [opposite, outcome])
    other = low.source(item.operands[3], "pred") if combine else None
    held = low.predicate()  # p may be the very predicate that is combined with
    for text, value in ((first, outcome), (second, opposite)):
        if not text or text == "_":
            continue
        if combine:
            if text == first and second:
                low.emit("mov.pred", [held, other])
                other = held
            low.emit_guarded(f"{combine}.pred", [low.target(text, "pred"), value, other])
        else:
            low.emit_guarded("mov.pred", [low.target(text, "pred"), value])


def select(low: Lowering, item: Instruction, mods: list[str]) -> None:
    kind = mods[-1]
    a, b, p = item.operands[1:]
    values: list[Operand] = [low.source(a, kind), low.source(b, kind), low.source(p, "pred")]
    low.emit_guarded(
        f"selp.b{SIZES[kind] * 8}",
        [low.target(item.operands[0], kind), *values],
        flags=SELECTS,
    )


def set_register(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """set.cmp.dtype.stype d, a, b: all ones or 1.0f where the comparison holds."""
    kept = [m for m in mods if m != "ftz"]
    if len(kept) != 3:
        raise low.unsupported()
    cmp, to, kind = kept
    outcome = low.predicate()
    low.emit(f"setp.{cmp}.{kind}", [outcome, *(low.source(t, kind) for t in item.operands[1:])])
    true = 0x3F800000 if to == "f32" else 0xFFFFFFFF
    low.emit_guarded(
        "selp.b32",
        [low.target(item.operands[0], to), Constant(true, 4), Constant(0, 4), outcome],
        flags=SELECTS,
    )


def fence(low: Lowering, item: Instruction, mods: list[str]) -> None:
    wide = "cta" not in mods or "proxy" in mods
    low.emit_guarded("fence" if wide else "fence.cta", [])


def nothing(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """Hints: they change when things happen, not what happens."""


def cache_policy(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """A hint for the L2; its value is passed to loads, which ignore it."""
    low.emit_guarded("mov.b64", [low.target(item.operands[0], "b64"), Constant(0, 8)])


def branch(low: Lowering, item: Instruction, mods: list[str]) -> None:
    if mods and mods[0] == "idx":
        names = low.branch_table(item.operands[1])
        low.emit_guarded(
            "brx",
            [None, low.source(item.operands[0], "u32")],
            labels=[low.prefix + name for name in names],
            flags=DECIDES | OWN_TAINT,
        )
        return
    low.emit_guarded("bra", [], label=low.prefix + item.operands[0], flags=DECIDES)


def leave(low: Lowering, item: Instruction, mods: list[str]) -> None:
    name = "ret" if item.opcode.startswith("ret") else "exit"
    low.emit_guarded(name, [], flags=DECIDES)


def trap(low: Lowering, item: Instruction, mods: list[str]) -> None:
    low.emit_guarded("trap", [])


def call(low: Lowering, item: Instruction, mods: list[str]) -> None:
    name = next((t for t in item.operands if t[0] != "("), "")
    if name in LIBRARY_CALLS:
        where: list[Operand] = [low.symbols[f"{name}#{k}"].value for k in range(3)]
        low.emit_guarded(f"call.{name}", where)
        return
    low.emit_guarded("call", [], label=name, flags=DECIDES)


RULES: dict[str, Rule] = {
    "ld": memory_rules.load,
    "ldu": memory_rules.load,
    "st": memory_rules.store,
    "atom": memory_rules.atomic,
    "red": memory_rules.atomic,
    "mov": move,
    "cvt": convert,
    "cvta": memory_rules.convert_address,
    "isspacep": memory_rules.is_space,
    "setp": compare,
    "set": set_register,
    "selp": select,
    "shfl": warp_rules.shuffle,
    "vote": warp_rules.vote,
    "match": warp_rules.match,
    "redux": warp_rules.reduce,
    "elect": warp_rules.elect,
    "activemask": warp_rules.active_mask,
    "bar": warp_rules.barrier,
    "barrier": warp_rules.barrier,
    "mbarrier": mbarrier_rules.mbarrier,
    "createpolicy": cache_policy,
    "membar": fence,
    "fence": fence,
    "prefetch": nothing,
    "prefetchu": nothing,
    "nanosleep": nothing,
    "discard": nothing,
    "applypriority": nothing,
    "pmevent": nothing,
    "setmaxnreg": nothing,
    "griddepcontrol": nothing,
    "bra": branch,
    "brx": branch,
    "ret": leave,
    "exit": leave,
    "trap": trap,
    "brkpt": trap,
    "call": call,
    "cp": memory_rules.copy,
    "ldmatrix": memory_rules.load_matrix,
    "mma": warp_rules.multiply_matrix,
}
