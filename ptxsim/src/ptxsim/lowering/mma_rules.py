"""Lowering rules of mma, ldmatrix, stmatrix and wgmma."""

from ptxsim.frontend.records import Instruction
from ptxsim.lowering.lower import Lowering
from ptxsim.lowering.memory_rules import space_of
from ptxsim.lowering.operation import CROSS_LANE, OWN_TAINT, SHARED, SIGNED, Operand

ELEMENT_BITS = {
    **{"f64": 64, "f32": 32, "tf32": 32, "s32": 32, "f16": 16, "bf16": 16},
    **{"s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1},
}


# --- ldmatrix, stmatrix


def move_matrices(low: Lowering, item: Instruction, mods: list[str]) -> None:
    name, loads = item.opcode.partition(".")[0], item.opcode.startswith("ld")
    registers = low.vector(item.operands[1 - loads], "b32", output=loads)
    address = item.operands[int(loads)]
    count = next((int(m[1:]) for m in mods if m in {"x1", "x2", "x4"}), 0)
    if "m8n8" not in mods or not count or mods[-1] != "b16":
        raise low.unsupported()
    if len(registers) != count:
        raise low.unsupported_form()
    base, width, offset = low.address(address)
    operands = [*registers, *([None] * (4 - count)), base, width]
    space, flags = space_of(low, mods), OWN_TAINT | (SIGNED if "trans" in mods else 0)
    low.emit_guarded(name, operands, imm=offset, width=16, vec=count, space=space, flags=flags)


# --- mma

_EXACT = {"f64": "f64", "s8": "8", "u8": "8", "s4": "4", "u4": "4", "b1": "1"}  # engine's names
_ROUNDINGS = ("rn", "rz", "rm", "rp")
_A_SIGNED, _B_SIGNED, _SATURATES, _DIFFERS = 1, 2, 4, 8


def multiply_matrix(low: Lowering, item: Instruction, mods: list[str]) -> None:
    shape = next((m for m in mods if m.startswith("m")), "")
    types = [m for m in mods if m in ELEMENT_BITS]
    layouts = [m for m in mods if m in {"row", "col"}]
    if len(types) != 4 or len(layouts) != 2:
        raise low.unsupported()
    result, left, right, start = types
    extra = [
        operand
        for index, text in enumerate(item.operands)
        for operand in low.vector(text, "b64" if left == "f64" else "b32", output=index == 0)
    ]
    rows, depth = (int(shape[1:].partition(cut)[place]) for cut, place in (("n", 0), ("k", 2)))
    flops, flags = product_flops(result, rows, depth), OWN_TAINT
    if shape == "m8n8k4" and left == right == "f16":
        name = f"mma.{shape}.{'.'.join(layouts)}.{result}.{start}"
        flops, flags = 4 * flops, CROSS_LANE
    elif layouts != ["row", "col"] or result != start:
        raise low.unsupported()
    else:
        kind, form = product_kind(low, left, right, mods)
        name, extra = f"mma.{shape}.{result}.{kind}", [*extra, *form]
    low.emit_guarded(name, [], extra=extra, flags=flags, flops=flops)


def product_kind(low: Lowering, left: str, right: str, mods: list[str]) -> tuple[str, list[int]]:
    """The engine's name of a product of these types, and its last operand if they are doubles,
    integers or bits."""
    if _EXACT.get(left, left) != _EXACT.get(right, right):
        raise low.unsupported()
    if left not in _EXACT:
        return left, []
    signs = _A_SIGNED * (left[0] == "s") | _B_SIGNED * (right[0] == "s")
    form = signs | _SATURATES * ("satfinite" in mods) | _DIFFERS * ("xor" in mods)
    if left == "f64":
        form = next((_ROUNDINGS.index(m) for m in mods if m in _ROUNDINGS), 0)
    return _EXACT[left], [form]


def product_flops(result: str, rows: int, k: int) -> int:
    """Per lane, of one product of ``rows`` and 8 columns."""
    return 0 if result == "s32" else 2 * rows * 8 * k // 32


_DEPTH = {"f16": 16, "bf16": 16, "tf32": 8}  # K of one instruction
_TRANSPOSE_A, _TRANSPOSE_B, _NEGATE_A, _NEGATE_B = 1, 2, 4, 8


def wgmma(low: Lowering, item: Instruction, mods: list[str]) -> None:
    match mods[0]:
        case "fence" | "commit_group":
            low.emit_guarded(f"wgmma.{mods[0]}", [])
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
    name = f"wgmma.n{n}.{result}.{left}.{'rs' if from_registers else 'ss'}"
    extra, flops = [*d, *d, *a, b, adds, form], 2 * 16 * int(n) * int(k) // 32
    low.emit_guarded(name, [], extra=extra, vec=int(n) // 8, flags=OWN_TAINT, flops=flops)
