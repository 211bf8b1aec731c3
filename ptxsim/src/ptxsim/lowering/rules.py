"""Lowering rules of control flow and hints; the table of all rules."""

from ptxsim.frontend.module import SIMULATED_CALLS
from ptxsim.frontend.records import Instruction
from ptxsim.lowering import (
    arithmetic_rules,
    async_rules,
    memory_rules,
    mma_rules,
    texture_rules,
    video_rules,
    warp_rules,
    wmma_rules,
)
from ptxsim.lowering.called_functions import TARGET as CALL_TARGET
from ptxsim.lowering.lower import Lowering
from ptxsim.lowering.operation import (
    ADDRESS,
    CONDITION,
    DECIDES,
    LIST,
    NAME,
    NUMBER,
    OWN_TAINT,
    PAIR,
    PIECE,
    PREDICATE,
    REGISTER,
    SPECIAL,
    TARGET,
    VALUE,
    VECTOR,
    Constant,
    Operand,
    Rule,
)


def fence(low: Lowering, item: Instruction, mods: list[str]) -> None:
    if "proxy" in mods and any(m.startswith("async") for m in mods):
        low.emit_guarded("fence.proxy.async", [])  # which tells other threads of nothing
        return
    if "mbarrier_init" in mods:
        low.emit_guarded("fence.mbarrier_init", [])
    wide = "cta" not in mods or "proxy" in mods
    low.emit_guarded("fence" if wide else "fence.cta", [])


def bare(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """Instructions without operands; no debugger waits for a breakpoint."""
    low.emit_guarded(item.opcode.replace("brkpt", "trap"), [])


def nothing(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """Hints: they change when things happen, not what happens."""


def sleep(low: Lowering, item: Instruction, mods: list[str]) -> None:
    low.emit_guarded("nanosleep", [None, low.source(item.operands[0], "u32")])


def cache_policy(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """A hint for the L2; its value is passed to loads, which ignore it."""
    low.emit_guarded("mov.b64", [low.target(item.operands[0], "b64"), Constant(0, 8)])


def branch(low: Lowering, item: Instruction, mods: list[str]) -> None:
    low.emit_guarded("bra", [], label=low.prefix + item.operands[0], flags=DECIDES)


def indexed_branch(low: Lowering, item: Instruction, mods: list[str]) -> None:
    labels = [low.prefix + name for name in low.function.targets[item.operands[1]]]
    index = low.source(item.operands[0], "u32")
    low.emit_guarded("brx", [None, index], labels=labels, flags=DECIDES | OWN_TAINT)


def leave(low: Lowering, item: Instruction, mods: list[str]) -> None:
    name = "ret" if item.opcode.startswith("ret") else "exit"
    low.emit_guarded(name, [], flags=DECIDES)


def call(low: Lowering, item: Instruction, mods: list[str]) -> None:
    name = next((t for t in item.operands if t[0] != "("), "")
    if name in SIMULATED_CALLS:
        kinds = (*range(SIMULATED_CALLS[name]), "result")
        places: list[Operand] = [low.symbols[f"{name}#{kind}"].value for kind in kinds]
        low.emit_guarded(f"call.{name}", places)
        return
    low.emit_guarded("call", [], label=name, flags=DECIDES)


def call_target(low: Lowering, item: Instruction, mods: list[str]) -> None:
    index, pointer, first, count = item.operands
    operands = [low.target(index, "b32"), low.source(pointer, "b64"), int(count)]
    low.emit_guarded("call.target", operands, imm=int(first), flags=OWN_TAINT)


_ANY = VALUE | CONDITION | ADDRESS | VECTOR
_HINT = Rule(nothing, rest=_ANY)
_FENCE = Rule(fence)
_LOAD = Rule(memory_rules.load, (TARGET | VECTOR, ADDRESS, REGISTER), optional=1)
_BARE = Rule(bare)
_LEAVE = Rule(leave)
_PART = VALUE | PIECE
_VIDEO = Rule(video_rules.video, (TARGET | PIECE, _PART, _PART, VALUE), optional=1)
_BARRIER = Rule(warp_rules.barrier, rest=VALUE | CONDITION)

RULES: dict[str, Rule] = {
    # what no other rule is for
    "": Rule(arithmetic_rules.arithmetic, (TARGET | PREDICATE,), rest=VALUE | CONDITION),
    # moves, conversions, comparisons
    "mov": Rule(
        arithmetic_rules.move, (TARGET | PREDICATE | VECTOR, VALUE | CONDITION | SPECIAL | VECTOR)
    ),
    "cvt": Rule(arithmetic_rules.convert, (TARGET, VALUE | SPECIAL, VALUE), optional=1),
    "setp": Rule(arithmetic_rules.compare, (PREDICATE | PAIR, VALUE, VALUE, CONDITION), optional=1),
    "set": Rule(arithmetic_rules.set_register, (TARGET, VALUE, VALUE, CONDITION), optional=1),
    "selp": Rule(arithmetic_rules.select, (TARGET, VALUE, VALUE, CONDITION)),
    **dict.fromkeys(video_rules.VIDEO, _VIDEO),
    "vmad": Rule(video_rules.multiply, (TARGET, _PART, _PART, _PART)),
    # memory
    "ld": _LOAD,
    "ldu": _LOAD,
    "st": Rule(memory_rules.store, (ADDRESS, VALUE | VECTOR, REGISTER | ADDRESS), optional=1),
    "atom": Rule(
        memory_rules.atomic, (TARGET | VECTOR, ADDRESS, VALUE | VECTOR, VALUE, REGISTER), optional=2
    ),
    "red": Rule(memory_rules.atomic, (ADDRESS, VALUE | VECTOR, REGISTER | ADDRESS), optional=1),
    "tex": Rule(texture_rules.texture, (VECTOR, ADDRESS, VALUE | VECTOR, VECTOR), optional=2),
    "suld": Rule(texture_rules.surface, (VECTOR, ADDRESS)),
    "sust": Rule(texture_rules.surface, (ADDRESS, VECTOR)),
    "cvta": Rule(memory_rules.convert_address, (TARGET, VALUE)),
    "isspacep": Rule(memory_rules.is_space, (PREDICATE, VALUE)),
    "cp": Rule(memory_rules.copy, rest=ADDRESS | VALUE | CONDITION),
    "ldmatrix": Rule(mma_rules.move_matrices, (VECTOR | REGISTER, ADDRESS)),
    "stmatrix": Rule(mma_rules.move_matrices, (ADDRESS, VECTOR | REGISTER)),
    "createpolicy": Rule(cache_policy, (TARGET,), rest=VALUE | ADDRESS),
    # threads of a warp or block together
    "movmatrix": Rule(warp_rules.transpose, (TARGET, VALUE)),
    "shfl": Rule(warp_rules.shuffle, (TARGET | PAIR, VALUE, VALUE, VALUE, VALUE)),
    "vote": Rule(warp_rules.vote, (TARGET | PREDICATE, CONDITION, VALUE)),
    "match": Rule(warp_rules.match, (TARGET | PAIR, VALUE, VALUE)),
    "redux": Rule(warp_rules.reduce, (TARGET, VALUE, VALUE)),
    "elect": Rule(warp_rules.elect, (PAIR, VALUE)),
    "activemask": Rule(warp_rules.active_mask, (TARGET,)),
    "bar": _BARRIER,
    "barrier": _BARRIER,
    "mbarrier": Rule(async_rules.mbarrier, rest=TARGET | PREDICATE | VALUE | ADDRESS),
    # tensor cores
    "mma": Rule(mma_rules.multiply_matrix, (VECTOR, VECTOR, VECTOR, VECTOR)),
    "wmma": Rule(
        wmma_rules.wmma, (VECTOR | ADDRESS, VECTOR | ADDRESS, VALUE | VECTOR, VECTOR), optional=2
    ),
    "wgmma": Rule(mma_rules.wgmma, rest=VECTOR | VALUE | PREDICATE),
    # clusters
    "mapa": Rule(async_rules.map_address, (TARGET, VALUE, VALUE)),
    "getctarank": Rule(async_rules.rank_of_address, (TARGET, VALUE)),
    # order and time
    "membar": _FENCE,
    "fence": Rule(fence, rest=ADDRESS | NUMBER),
    "griddepcontrol": _BARE,
    "nanosleep": Rule(sleep, (VALUE,)),
    # hints
    "prefetch": _HINT,
    "prefetchu": _HINT,
    "discard": _HINT,
    "applypriority": _HINT,
    "pmevent": _HINT,
    "setmaxnreg": _HINT,
    # control flow
    "bra": Rule(branch, (NAME,)),
    "brx": Rule(indexed_branch, (VALUE, NAME)),
    "ret": _LEAVE,
    "exit": _LEAVE,
    "trap": _BARE,
    "brkpt": _BARE,
    "call": Rule(call, rest=NAME | LIST),
    CALL_TARGET: Rule(call_target, (REGISTER, REGISTER, NUMBER, NUMBER)),
}
