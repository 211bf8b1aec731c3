"""Lowering rules of wgmma."""

from __future__ import annotations

from ptxsim.frontend import Instruction
from ptxsim.lowering.lower import Lowering
from ptxsim.lowering.operation import OWN_TAINT, SHARED, Operand

_DEPTH = {"f16": 16, "bf16": 16, "tf32": 8}  # K of one instruction
_TRANSPOSE_A, _TRANSPOSE_B, _NEGATE_A, _NEGATE_B = 1, 2, 4, 8


def wgmma(low: Lowering, item: Instruction, mods: list[str]) -> None:
    match mods[0]:
        case "fence":
            low.emit_guarded("wgmma.fence", [])
        case "commit_group":
            low.emit_guarded("wgmma.commit_group", [])
        case "wait_group":
            low.emit_guarded("wgmma.wait_group", [], imm=int(item.operands[0], 0))
        case "mma_async":
            _multiply(low, item, mods)
        case _:
            raise low.unsupported()


def _multiply(low: Lowering, item: Instruction, mods: list[str]) -> None:
    """wgmma.mma_async.sync.aligned.m64nNkK.f32.f16.f16 d, a, b, scale-d, scale-a, scale-b, …"""
    shape, result, left, right = mods[3:7]
    n, _, k = shape.removeprefix("m64n").partition("k")
    if left != right or left not in _DEPTH or int(k) != _DEPTH[left]:
        raise low.unsupported()
    d = low.vector(item.operands[0], "b32", output=True)
    from_registers = item.operands[1][0] == "{"
    a: list[Operand] = (
        low.vector(item.operands[1], "b32", output=False)
        if from_registers
        else [low.source(item.operands[1], "b64")]
    )
    numbers = [int(text, 0) for text in item.operands[4:]]
    form = _NEGATE_A * (numbers[0] < 0) | _NEGATE_B * (numbers[1] < 0)
    # In registers A has one layout; other types than 16 bits have one in shared memory, too.
    transposed = numbers[2:] if from_registers else numbers[3:]
    if transposed:
        form |= _TRANSPOSE_B * transposed[0]
    if not from_registers and len(numbers) > 2:
        form |= _TRANSPOSE_A * numbers[2]
    b, adds = low.source(item.operands[2], "b64"), low.source(item.operands[3], "pred")
    low.emit("wgmma.operands", [], width=16, space=SHARED, flags=OWN_TAINT)
    low.emit_guarded(
        f"wgmma.n{n}.{result}.{left}.{'rs' if from_registers else 'ss'}",
        [],
        extra=[
            *d,
            *d,
            *a,
            b,
            adds,
            form,
        ],
        vec=int(n) // 8,
        flags=OWN_TAINT,
        flops=2 * 16 * int(n) * int(k) // 32,
    )
