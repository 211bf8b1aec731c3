"""Lowering rules of addresses in the shared memory of a cluster."""

from __future__ import annotations

from ptxsim.frontend import Instruction
from ptxsim.lowering.lower import Lowering


def map_address(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """mapa[.shared::cluster].u32 d, address, rank"""
    kind = mods[-1]
    d, address, rank = item.operands
    values = [low.target(d, kind), low.source(address, kind), low.source(rank, "u32")]
    low.emit_guarded(f"mapa.{kind}", values)


def rank_of_address(low: Lowering, item: Instruction, mods: list[str]) -> None:
    kind = mods[-1]
    d, address = item.operands
    low.emit_guarded(f"getctarank.{kind}", [low.target(d, "u32"), low.source(address, kind)])
