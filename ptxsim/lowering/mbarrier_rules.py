"""Lowering rules of mbarrier objects."""

from __future__ import annotations

from ptxsim.frontend import Instruction
from ptxsim.lowering.lower import Lowering
from ptxsim.lowering.operation import OWN_TAINT, SHARED, Operand


def mbarrier(low: Lowering, item: Instruction, mods: list[str]) -> None:
    texts = list(item.operands)
    kind = mods[0]
    relaxed = ".relaxed" if "relaxed" in mods else ""
    if kind == "inval":
        _at(low, "mbarrier.inval", texts[0], [None, None, None])
    elif kind in {"init", "expect_tx", "complete_tx"}:
        _at(low, f"mbarrier.{kind}", texts[0], [low.source(texts[1], "u32"), None, None])
    elif kind in {"arrive", "arrive_drop"} and "noComplete" not in mods:
        state = None if texts[0] == "_" else low.target(texts[0], "b64")
        last = low.source(texts[2], "u32") if len(texts) > 2 else None
        expects = "expect_tx" in mods
        operands = [state, None, last] if expects else [state, last, None]
        _at(low, f"mbarrier.{kind}{relaxed}", texts[1], operands)
    elif kind in {"test_wait", "try_wait"}:
        parity = "parity" in mods
        name = f"mbarrier.test_wait{'.parity' if parity else ''}{relaxed}"
        over = low.target(texts[0], "pred")
        _at(low, name, texts[1], [over, low.source(texts[2], "u32" if parity else "b64"), None])
    else:
        raise low.unsupported()


def arrive_after_copies(low: Lowering, item: Instruction, mods: list[str]) -> None:
    name = "cp.async.mbarrier.arrive" + (".noinc" if "noinc" in mods else "")
    _at(low, name, item.operands[0], [None, None, None])


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
