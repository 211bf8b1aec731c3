"""Lowering rules of mma, ldmatrix and stmatrix."""

from __future__ import annotations

from ptxsim.frontend import Instruction
from ptxsim.lowering.lower import Lowering
from ptxsim.lowering.memory_rules import space_of
from ptxsim.lowering.operation import CROSS_LANE, OWN_TAINT, SIGNED, Operand

ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "tf32": 4}


# --- ldmatrix, stmatrix


def load_matrix(low: Lowering, item: Instruction, mods: list[str]) -> None:
    targets = low.vector(item.operands[0], "b32", output=True)
    _matrices(low, "ldmatrix", mods, targets, item.operands[1])


def store_matrix(low: Lowering, item: Instruction, mods: list[str]) -> None:
    values = low.vector(item.operands[1], "b32", output=False)
    _matrices(low, "stmatrix", mods, values, item.operands[0])


def _matrices(
    low: Lowering, name: str, mods: list[str], registers: list[Operand], address: str
) -> None:
    count = next((int(m[1:]) for m in mods if m in {"x1", "x2", "x4"}), 0)
    if "m8n8" not in mods or not count or mods[-1] != "b16":
        raise low.unsupported()
    if len(registers) != count:
        raise low.unsupported_form()
    base, width, offset = low.address(address)
    low.emit_guarded(
        name,
        [*registers, *([None] * (4 - count)), base, width],
        imm=offset,
        width=16,
        vec=count,
        space=space_of(low, mods),
        flags=OWN_TAINT | (SIGNED if "trans" in mods else 0),
    )


# --- mma


def multiply_matrix(low: Lowering, item: Instruction, mods: list[str]) -> None:
    shape = next((m for m in mods if m.startswith("m")), "")
    types = [m for m in mods if m in ELEMENT_BYTES]
    layouts = [m for m in mods if m in {"row", "col"}]
    if len(types) != 4 or len(layouts) != 2:
        raise low.unsupported()
    if shape == "m8n8k4":
        name = f"mma.{shape}.{'.'.join(layouts)}.{types[0]}.{types[3]}"
        if types[1:3] != ["f16", "f16"]:
            raise low.unsupported()
        flops = 4 * 2 * 8 * 8 * 4 // 32
    else:
        name = f"mma.{shape}.{types[0]}.{types[1]}"
        if layouts != ["row", "col"] or types[0] != types[3] or types[1] != types[2]:
            raise low.unsupported()
        flops = m16n8_flops(int(shape.rpartition("k")[2]))
    parts = [low.vector(t, "b32", output=index == 0) for index, t in enumerate(item.operands)]
    low.emit_guarded(
        name,
        [],
        extra=[operand for part in parts for operand in part],
        flags=CROSS_LANE if shape == "m8n8k4" else OWN_TAINT,
        flops=flops,
    )


def m16n8_flops(k: int) -> int:
    """Per lane, of one m16n8 product."""
    return 2 * 16 * 8 * k // 32
