"""The operations of a function → basic blocks, with marks on registers that are never set."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ptxsim.lowering import operation as ops
from ptxsim.lowering.control_flow import Block, bits, liveness, reachable

_NEVER_FALLS_THROUGH = {"bra", "brx", "ret", "exit", "trap"}
_ENDS_BLOCK = {*_NEVER_FALLS_THROUGH, "call"}
_LEAVES = {"ret", "exit"}
_LONG_BLOCK = 64  # operations; a longer basic block counts as several in a warp's turn


def basic_blocks(
    lowered: list[ops.Operation | str], function: str
) -> tuple[list[ops.Operation], dict[str, int], list[Block]]:
    """Operations with block heads between them, label positions and blocks of one function, whose
    labels stand among its operations. It begins with marks on the registers that may have no value
    when they are read."""
    code, labels, blocks = _divided(lowered, function)
    if unset := _never_set(code, blocks):
        return _divided([*unset, *lowered], function)
    return code, labels, blocks


def _divided(
    lowered: list[ops.Operation | str], function: str
) -> tuple[list[ops.Operation], dict[str, int], list[Block]]:
    """Insert block heads; return operations, label positions and blocks of one function."""
    code: list[ops.Operation] = [ops.Operation("block", [])]
    labels = {f"{function}/": 0}
    blocks = [Block(0, 0)]
    fresh = True  # the last operation is a block head

    def head() -> None:
        nonlocal fresh
        if not fresh:
            blocks[-1].end = len(code)
            blocks.append(Block(len(code), 0))
            code.append(ops.Operation("block", []))
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
    code.append(ops.Operation("exit", []))  # an entry may end without one
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
                raise ops.UnsupportedInstruction.form(last.source)  # a branch to no label
        block.successors = [at[labels[name]] for name in targets]
        falls = last.name not in _NEVER_FALLS_THROUGH or last.guard is not None
        if falls and index + 1 < len(blocks):
            block.successors.append(index + 1)
    return code, labels, blocks


def _never_set(code: list[ops.Operation], blocks: list[Block]) -> list[ops.Operation]:
    """An operation for every register that may be read before it is written: it has no value yet.

    Whether that does harm shows when the code runs.
    """
    found = []
    certain = [o.guard is None for o in code]
    for width, name in ((4, "never_set.narrow"), (8, "never_set.wide")):
        reads = [ops.registers(ops.inputs(o), width) for o in code]
        writes = [ops.registers(ops.outputs(o), width) for o in code]
        live_in, _ = liveness(blocks, reads, writes, certain)
        for number in bits(live_in[0]):
            use = next((at for at, read in enumerate(reads) if number in read), None)
            if use is None:  # nothing reads it: a write with a guard alone keeps it alive
                continue
            marker = ops.Operation(name, [ops.Register(number, width)], 1, flags=ops.OWN_TAINT)
            marker.first_use = code[use].source
            found.append(marker)
    return found


def mark_questions(
    code: Sequence[ops.Operation],
    blocks: Sequence[Block],
    loops: Sequence[set[int]],
    *,
    entry: bool,
) -> None:
    """Note in the order of synchronising loads and atomic operations what hangs on their values:
    whether a loop around them goes on (AWAITED), or what a function stores for its callers or for
    those that it calls, which may decide anything (PASSED_ON).
    """
    asking = [each for each in code if _may_ask(each)]
    if not asking:
        return
    for loop in loops:
        within = [op for index in loop for op in code[blocks[index].start : blocks[index].end]]
        if not any(_may_ask(op) for op in within):
            continue
        leading_out = (blocks[index] for index in loop if _leads_out(blocks[index], code, loop))
        ends = [code[block.end - 1] for block in leading_out]
        _mark(within, _deciding(within, ends), ops.AWAITED)
    passed = [op for op in code if op.name == "st" and op.space == ops.LOCAL]
    calls = not entry or any(op.name.startswith("call") for op in code)
    if calls:
        _mark(asking, _deciding(code, passed), ops.PASSED_ON)
    # A compiler may ask once ahead of the loop.
    awaited = {_address(each) for each in asking if _order(each) & ops.AWAITED}
    branches = [op for op in code if op.name in _ENDS_BLOCK]
    ahead = [each for each in asking if _address(each) in awaited]
    _mark(ahead, _deciding(code, branches), ops.AWAITED)


def mark_results(code: Sequence[ops.Operation], blocks: Sequence[Block]) -> None:
    """Note in the order of loads and atomic operations whether what they read goes into a value
    that is stored, or a store may follow there (RESULT), whether any change of the word may follow
    (UPDATED), and whether a compare-and-swap whose result nobody reads expects what was loaded from
    its address (EXPECTS_LOADED)."""
    common = [op for op in code if op.space in (ops.GLOBAL, ops.GENERIC)]
    atomics = [op for op in common if op.name.startswith("atom.")]
    stores = [op for op in code if op.name == "st" and op.space != ops.SHARED]
    strong = [op for op in stores if op.flags & ops.SYNCHRONISES]
    if not atomics and not strong:
        return
    stored = [value for op in stores for value in op.operands[:4]]
    stored += [value for op in atomics for value in op.operands[1:3]]
    results = _origins(code, stored)
    place = {id(op): at for at, op in enumerate(code)}
    block_of = [at for at, block in enumerate(blocks) for _ in range(block.start, block.end)]
    later = reachable(blocks)
    stores_at, changes_at = _by_address(strong), _by_address([*strong, *atomics])

    def precedes(op: ops.Operation, others: Sequence[ops.Operation]) -> bool:
        at = place[id(op)]
        here = block_of[at]
        return any(
            later[here] >> block_of[other] & 1 or (block_of[other] == here and other > at)
            for other in (place[id(each)] for each in others)
        )

    loads = [op for op in common if op.name == "ld"]
    for op in (*loads, *atomics):
        marks = 0
        # Whoever adds what may be 0 at times means to change the word, not to look at it.
        adds = op.name.startswith(("atom.add.", "atom.xor.")) and not isinstance(
            op.operands[1], ops.Constant
        )
        by_hand = not _order(op) & ops.AWAITED and precedes(op, stores_at[_address(op)])
        if not adds and (by_hand or not results.isdisjoint(ops.outputs(op))):
            marks = ops.RESULT
        if op.name == "ld" and precedes(op, changes_at[_address(op)]):
            marks |= ops.UPDATED
        if op.name.startswith("atom.cas.") and op.operands[0] is None:
            expected = _origins(code, [op.operands[1]])
            there = [each for each in (*loads, *atomics) if _address(each) == _address(op)]
            if any(not expected.isdisjoint(ops.outputs(each)) for each in there):
                marks |= ops.EXPECTS_LOADED
        op.operands[ops.ORDER_AT] = _order(op) | marks


def _by_address(code: Iterable[ops.Operation]) -> Mapping[object, list[ops.Operation]]:
    found: dict[object, list[ops.Operation]] = defaultdict(list)
    for op in code:
        found[_address(op)].append(op)
    return found


def _may_ask(operation: ops.Operation) -> bool:
    if operation.name == "ld":
        return bool(operation.flags & ops.SYNCHRONISES)
    return operation.name.startswith("atom.") and operation.operands[0] is not None


def _order(operation: ops.Operation) -> int:
    order = operation.operands[ops.ORDER_AT]
    assert isinstance(order, int)
    return order


def _leads_out(block: Block, code: Sequence[ops.Operation], loop: set[int]) -> bool:
    return code[block.end - 1].name in _LEAVES or not loop.issuperset(block.successors)


def _address(operation: ops.Operation) -> tuple[ops.Operand, int]:
    return operation.operands[ops.ORDER_AT - 2], operation.imm


def _deciding(code: Iterable[ops.Operation], ends: Iterable[ops.Operation]) -> set[ops.Operand]:
    """The registers and predicates from which those come that ``ends`` use, in ``code``."""
    return _origins(code, [used for op in ends for used in _used(op)])


def _origins(code: Iterable[ops.Operation], values: list[ops.Operand]) -> set[ops.Operand]:
    """``values``, and the registers and predicates from which they come in ``code``. What is
    loaded comes from memory, not from its address: from what ``code`` stores, in shared memory."""
    sources: dict[ops.Operand, list[ops.Operation]] = {}
    for op in code:
        for written in ops.outputs(op):
            sources.setdefault(written, []).append(op)
    stored = [
        used for op in code if op.name == "st" and op.space == ops.SHARED for used in _used(op)
    ]
    found: set[ops.Operand] = set()
    left = list(values)
    while left:
        value = left.pop()
        if value in found or not isinstance(value, (ops.Register, ops.Predicate)):
            continue
        found.add(value)
        for op in sources.get(value, ()):
            if op.name == "ld" and op.space == ops.SHARED:
                left += stored
            elif op.name != "ld" and not op.name.startswith("atom."):
                left += _used(op)
    return found


def _used(operation: ops.Operation) -> list[ops.Operand]:
    """Its guard and what it reads; of a store the values alone."""
    read = operation.operands[:4] if operation.name == "st" else ops.inputs(operation)
    return [operation.guard, *read]


def _mark(code: Iterable[ops.Operation], deciding: set[ops.Operand], mark: int) -> None:
    for op in code:
        if _may_ask(op) and not deciding.isdisjoint(ops.outputs(op)):
            op.operands[ops.ORDER_AT] = _order(op) | mark
