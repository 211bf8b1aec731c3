"""The operations of a function → basic blocks, with marks on registers that are never set."""

from __future__ import annotations

from ptxsim.lowering.control_flow import Block, bits, liveness
from ptxsim.lowering.operation import (
    OWN_TAINT,
    Operation,
    Register,
    UnsupportedInstruction,
    inputs,
    outputs,
    registers,
)

_NEVER_FALLS_THROUGH = {"bra", "brx", "ret", "exit", "trap"}
_ENDS_BLOCK = {*_NEVER_FALLS_THROUGH, "call"}
_LONG_BLOCK = 64  # operations; a longer basic block counts as several in a warp's turn


def basic_blocks(
    lowered: list[Operation | str], function: str
) -> tuple[list[Operation], dict[str, int], list[Block]]:
    """Operations with block heads between them, label positions and blocks of one function, whose
    labels stand among its operations. It begins with marks on the registers that may have no value
    when they are read."""
    code, labels, blocks = _divided(lowered, function)
    if unset := _never_set(code, blocks):
        return _divided([*unset, *lowered], function)
    return code, labels, blocks


def _divided(
    lowered: list[Operation | str], function: str
) -> tuple[list[Operation], dict[str, int], list[Block]]:
    """Insert block heads; return operations, label positions and blocks of one function."""
    code: list[Operation] = [Operation("block", [])]
    labels = {f"{function}/": 0}
    blocks = [Block(0, 0)]
    fresh = True  # the last operation is a block head

    def head() -> None:
        nonlocal fresh
        if not fresh:
            blocks[-1].end = len(code)
            blocks.append(Block(len(code), 0))
            code.append(Operation("block", []))
            fresh = True

    for item in lowered:
        if isinstance(item, str):
            head()
            labels[item] = len(code) - 1
            continue
        if fresh and code[-1].source is None:
            code[-1].source = item.source
        code.append(item)
        fresh = False
        if item.name in _ENDS_BLOCK:
            head()
    code.append(Operation("exit", []))  # an entry may end without one
    blocks[-1].end = len(code)
    for block in blocks:
        code[block.start].vec = int(code[block.start + 1].name not in {"exit", "ret"})
        code[block.start].operands = [1 + (block.end - block.start) // _LONG_BLOCK, 0]
    at = {block.start: index for index, block in enumerate(blocks)}
    for index, block in enumerate(blocks):
        last = code[block.end - 1]
        targets = [] if last.label is None or last.name.startswith("call") else [last.label]
        targets += last.labels
        for name in targets:
            if name not in labels or name == f"{function}/":
                assert last.source is not None
                raise UnsupportedInstruction.form(last.source)  # a branch to no label
        block.successors = [at[labels[name]] for name in targets]
        falls = last.name not in _NEVER_FALLS_THROUGH or last.guard is not None
        if falls and index + 1 < len(blocks):
            block.successors.append(index + 1)
    return code, labels, blocks


def _never_set(code: list[Operation], blocks: list[Block]) -> list[Operation]:
    """An operation for every register that may be read before it is written: it has no value yet.

    Whether that does harm shows when the code runs.
    """
    found = []
    certain = [o.guard is None for o in code]
    for width, name in ((4, "never_set.narrow"), (8, "never_set.wide")):
        reads = [registers(inputs(o), width) for o in code]
        writes = [registers(outputs(o), width) for o in code]
        live_in, _ = liveness(blocks, reads, writes, certain)
        for number in bits(live_in[0]):
            use = next((at for at, read in enumerate(reads) if number in read), None)
            if use is None:  # nothing reads it: a write with a guard alone keeps it alive
                continue
            marker = Operation(name, [Register(number, width)], 1, flags=OWN_TAINT)
            marker.first_use = code[use].source
            found.append(marker)
    return found
