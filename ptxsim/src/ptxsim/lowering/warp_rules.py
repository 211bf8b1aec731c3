"""Lowering rules of what the threads of a warp or block do together."""

from ptxsim.frontend.records import SIZES, Instruction
from ptxsim.lowering.lower import Lowering
from ptxsim.lowering.operation import CROSS_LANE, DECIDES, OWN_TAINT, Constant, Operand
from ptxsim.text import phrase


def shuffle(low: Lowering, item: Instruction, mods: list[str]) -> None:
    if mods[0] != "sync":
        raise low.unsupported()
    values = [*_targets(low, item), *(low.source(text, "b32") for text in item.operands[1:5])]
    low.emit_guarded(f"shfl.{mods[1]}", values, flags=OWN_TAINT)


def _targets(low: Lowering, item: Instruction) -> list[Operand]:
    """The register and the predicate of ``%r|%p``."""
    value, _, predicate = item.operands[0].partition("|")
    return [low.target(value, "b32"), low.target(predicate, "pred") if predicate else None]


def vote(low: Lowering, item: Instruction, mods: list[str]) -> None:
    mode = mods[1]
    target = low.target(item.operands[0], "b32" if mode == "ballot" else "pred")
    values = [low.source(item.operands[1], "pred"), low.source(item.operands[2], "b32")]
    low.emit_guarded(f"vote.{mode}", [target, *values], flags=CROSS_LANE)


def match(low: Lowering, item: Instruction, mods: list[str]) -> None:
    name = f"match.{mods[0]}.b{SIZES[mods[-1]] * 8}"
    targets = _targets(low, item)
    values = [low.source(item.operands[1], mods[-1]), low.source(item.operands[2], "b32")]
    low.emit_guarded(name, [*targets, *values], flags=CROSS_LANE)


def reduce(low: Lowering, item: Instruction, mods: list[str]) -> None:
    values = [
        low.target(item.operands[0], "b32"),
        *(low.source(t, "b32") for t in item.operands[1:]),
    ]
    low.emit_guarded(f"redux.{mods[1]}.{mods[2]}", values, flags=CROSS_LANE)


def transpose(low: Lowering, item: Instruction, mods: list[str]) -> None:
    if mods != ["sync", "aligned", "m8n8", "trans", "b16"]:
        raise low.unsupported()
    values = [low.target(item.operands[0], "b32"), low.source(item.operands[1], "b32")]
    low.emit_guarded("movmatrix", values, flags=OWN_TAINT)


def elect(low: Lowering, item: Instruction, mods: list[str]) -> None:
    value, _, predicate = item.operands[0].partition("|")
    target = None if value == "_" else low.target(value, "b32")
    chosen, mask = low.target(predicate, "pred"), low.source(item.operands[1], "b32")
    low.emit_guarded("elect", [target, chosen, mask])


def active_mask(low: Lowering, item: Instruction, mods: list[str]) -> None:
    low.emit_guarded("activemask", [low.target(item.operands[0], "b32")])


def barrier(low: Lowering, item: Instruction, mods: list[str]) -> None:
    kinds = [m for m in mods if m not in {"cta", "aligned"}]
    if kinds[0] == "warp":
        low.emit_guarded("bar.warp.sync", [low.source(item.operands[0], "b32")])
        return
    if kinds[0] == "cluster":
        relaxed = ".relaxed" if "relaxed" in mods else ""
        low.emit_guarded(f"barrier.cluster.{kinds[1]}{relaxed}", [])
        return
    texts = list(item.operands)
    result: Operand = None
    vote: Operand = None
    if kinds[0] == "red":
        result = low.target(texts.pop(0), "u32" if kinds[1] == "popc" else "pred")
        vote = low.source(texts.pop(), "pred")
    elif kinds[0] not in {"sync", "arrive"}:
        raise low.unsupported()
    where = [low.source(t, "b32") for t in texts] or [Constant(0, 4)]
    if isinstance(where[0], Constant) and where[0].value > 15:
        why = phrase("barrier {number}: a block has barriers 0 to 15", number=texts[0])
        raise low.unsupported(why)
    low.emit_guarded(
        f"bar.{'.'.join(kinds[:2] if kinds[0] == 'red' else kinds[:1])}",
        [result, vote, *where],
        imm=_REDUCTIONS.index(kinds[1]) if kinds[0] == "red" else 0,
        flags=DECIDES,
    )


_REDUCTIONS = ("none", "popc", "and", "or")
