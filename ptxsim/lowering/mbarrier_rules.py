"""Lowering rules of mbarrier objects and the copies that complete on them."""

from __future__ import annotations

from ptxsim.frontend import Instruction
from ptxsim.lowering.lower import Lowering
from ptxsim.lowering.operation import OWN_TAINT, SHARED, Operand


def mbarrier(low: Lowering, item: Instruction, mods: list[str]) -> None:
    if "shared::cluster" in mods:
        raise low.unsupported()
    texts = list(item.operands)
    kind = mods[0]
    if kind == "inval":
        return
    if kind in {"init", "expect_tx", "complete_tx"}:
        _at(low, f"mbarrier.{kind}", texts[0], [low.source(texts[1], "u32"), None, None])
    elif kind == "arrive":
        state = None if texts[0] == "_" else low.target(texts[0], "b64")
        last = low.source(texts[2], "u32") if len(texts) > 2 else None
        expects = "expect_tx" in mods
        operands = [state, None, last] if expects else [state, last, None]
        _at(low, "mbarrier.arrive", texts[1], operands)
    elif kind in {"test_wait", "try_wait"}:
        parity = "parity" in mods
        name = "mbarrier.test_wait.parity" if parity else "mbarrier.test_wait"
        over = low.target(texts[0], "pred")
        _at(low, name, texts[1], [over, low.source(texts[2], "u32" if parity else "b64"), None])
    else:
        raise low.unsupported()


def arrive_after_copies(low: Lowering, item: Instruction, mods: list[str]) -> None:
    name = "cp.async.mbarrier.arrive" + (".noinc" if "noinc" in mods else "")
    _at(low, name, item.operands[0], [None, None, None])


def bulk_copy(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """cp.async.bulk.shared.global.mbarrier::complete_tx::bytes [to], [from], size, [barrier]"""
    if "mbarrier::complete_tx::bytes" not in mods or "tensor" in mods or "global" not in mods[2:]:
        raise low.unsupported()
    target, target_width, target_offset = low.address(item.operands[0])
    source, source_width, source_offset = low.address(item.operands[1])
    barrier, barrier_width, barrier_offset = low.address(item.operands[3])
    if source is None or source_width != 8:
        raise low.unsupported()
    if barrier is None:
        barrier, barrier_offset = low.source(str(barrier_offset), "u32"), 0
    elif barrier_width != 4:
        raise low.unsupported()
    size = low.source(item.operands[2], "u32")
    low.emit_guarded(
        "cp.async.bulk",
        [source, size, barrier, source_offset, target, target_width, barrier_offset],
        imm=target_offset,
        width=16,
        space=SHARED,
        flags=OWN_TAINT,
    )


def _at(low: Lowering, name: str, address: str, operands: list[Operand]) -> None:
    base, width, offset = low.address(address)
    low.emit_guarded(
        name,
        [*operands, None, base, width],
        imm=offset,
        width=8,
        space=SHARED,
        flags=OWN_TAINT,
    )
