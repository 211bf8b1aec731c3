"""Control flow of one function: basic blocks, their order, and which registers share a slot."""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ptxsim.lowering import operation as ops
from ptxsim.lowering.memory_layout import Frame

_MAX_NESTING = 64  # loops in loops


@dataclass(slots=True)
class Block:
    """Operations [start, end) of a function, entered only at the top."""

    start: int
    end: int
    successors: list[int] = field(default_factory=list)
    rank: int = 0  # its place in the order of ``ranks``


class TooDeep(Exception):  # noqa: N818 - a fact about the code, not a fault
    """Too many nested loops: ordering the blocks takes one pass for each level."""

    def __init__(self, depth: int) -> None:
        super().__init__(f"loops are nested {depth} deep")
        self.depth = depth


def ranks(blocks: Sequence[Block]) -> tuple[list[int], list[set[int]]]:
    """The topological position of every block, and the loops: the blocks of each, outer ones first.

    A join comes after both sides of its branch, the code behind a loop after the whole loop. The
    group of lanes with the lowest rank runs first, so groups reconverge where the program does.
    Raises TooDeep.
    """
    order: list[int] = []
    loops: list[set[int]] = []
    _arrange(list(range(len(blocks))), 0, [b.successors for b in blocks], order, loops)
    rank = [0] * len(blocks)
    for place, block in enumerate(order):
        rank[block] = blocks[block].rank = place
    return rank, loops


def _backwards(blocks: Sequence[Block]) -> list[int]:
    """An order of the blocks in which a backward data-flow analysis needs few passes."""
    return sorted(range(len(blocks)), key=lambda b: (blocks[b].rank, b), reverse=True)


def reachable(blocks: Sequence[Block]) -> list[int]:
    """For every block the set (as bits) of blocks that may run after it."""
    reach = [0] * len(blocks)
    order = _backwards(blocks)
    changed = True
    while changed:
        changed = False
        for b in order:
            after = reach[b]
            for successor in blocks[b].successors:
                after |= 1 << successor | reach[successor]
            if after != reach[b]:
                reach[b], changed = after, True
    return reach


def _arrange(
    nodes: list[int],
    entry: int,
    successors: list[list[int]],
    order: list[int],
    loops: list[set[int]],
    depth: int = 0,
) -> None:
    """Append ``nodes`` to ``order``: strongly connected parts in topological order, each part
    again arranged without the edges back to its own entry. Such parts are ``loops``."""
    if depth > _MAX_NESTING:
        raise TooDeep(depth)
    inside = set(nodes)
    for part in _components(nodes, entry, successors, inside):
        members = set(part)
        if len(part) > 1 or part[0] in successors[part[0]]:
            loops.append(members)
        if len(part) == 1:
            order.append(part[0])
            continue
        heads = {n for p in nodes if p not in members for n in successors[p] if n in members}
        if entry in members:
            heads.add(entry)
        if not heads:  # unreachable code
            heads.add(min(members))
        # A loop may be entered at several places, one leading to the next: what jumps back to
        # them is the rest of the loop.
        back = members - heads
        if not any(n in heads for p in back for n in successors[p]):
            heads, back = {min(heads)}, members
        cut = list(successors)
        for node in back:
            cut[node] = [n for n in successors[node] if n not in heads]
        head = min(heads, key=lambda h: (any(h in cut[p] for p in members), h))
        _arrange(sorted(part), head, cut, order, loops, depth + 1)


def _components(
    nodes: list[int], entry: int, successors: list[list[int]], inside: set[int]
) -> list[list[int]]:
    """Strongly connected components in topological order (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in [entry, *(n for n in nodes if n != entry)]:
        if root in index:
            continue
        work = [(root, iter(_within(successors[root], inside)))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, children = work[-1]
            child = next(children, None)
            if child is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        part.append(member)
                        if member == node:
                            break
                    found.append(part)
            elif child not in index:
                index[child] = low[child] = len(index)
                stack.append(child)
                on_stack.add(child)
                work.append((child, iter(_within(successors[child], inside))))
            elif child in on_stack:
                low[node] = min(low[node], index[child])
    return found[::-1]


def _within(targets: Iterable[int], inside: set[int]) -> list[int]:
    # The later block first: topological order then keeps the text's order where it is free.
    return sorted((t for t in targets if t in inside), reverse=True)


def liveness(
    blocks: Sequence[Block],
    reads: Sequence[Sequence[int]],
    writes: Sequence[Sequence[int]],
    certain: Sequence[bool],
) -> tuple[list[int], list[int]]:
    """The registers, as bits, that are live before and after every block.

    ``reads[i]``, ``writes[i]``: registers of operation i. ``certain[i]``: it writes whenever it
    is reached (it has no guard), so that older values die there.
    """
    use, kill = [], []
    for block in blocks:
        used = killed = 0
        for op in range(block.start, block.end):
            for register in reads[op]:
                if not killed >> register & 1:
                    used |= 1 << register
            for register in writes[op]:
                if certain[op]:
                    killed |= 1 << register
                elif not killed >> register & 1:
                    used |= 1 << register
        use.append(used)
        kill.append(killed)
    live_in = list(use)
    live_out = [0] * len(blocks)
    order = _backwards(blocks)
    changed = True
    while changed:
        changed = False
        for b in order:
            out = 0
            for successor in blocks[b].successors:
                out |= live_in[successor]
            if out != live_out[b]:
                live_out[b] = out
                live_in[b] = use[b] | (out & ~kill[b])
                changed = True
    return live_in, live_out


def live_ranges(
    blocks: Sequence[Block],
    reads: Sequence[Sequence[int]],
    writes: Sequence[Sequence[int]],
    certain: Sequence[bool],
) -> dict[int, tuple[int, int]]:
    """First and last operation at which each register must keep its value; as for ``liveness``."""
    live_in, live_out = liveness(blocks, reads, writes, certain)
    ranges: dict[int, tuple[int, int]] = {}

    def extend(register: int, at: int) -> None:
        first, last = ranges.get(register, (at, at))
        ranges[register] = (min(first, at), max(last, at))

    for b, block in enumerate(blocks):
        for op in range(block.start, block.end):
            for register in reads[op]:
                extend(register, op)
            for register in writes[op]:
                extend(register, op)
        for register in bits(live_in[b]):
            extend(register, block.start)
        for register in bits(live_out[b]):
            extend(register, block.end)
    return ranges


def bits(mask: int) -> list[int]:
    """The positions of the set bits, lowest first."""
    text = bin(mask)[:1:-1]
    return [i for i, bit in enumerate(text) if bit == "1"]


def share_slots(ranges: dict[int, tuple[int, int]]) -> tuple[dict[int, int], int]:
    """Give registers with disjoint live ranges the same slot; returns slots and their number.

    A register may take over the slot of one that is read last by the very operation that writes
    it: every handler reads a lane's sources before it writes that lane.
    """
    slots: dict[int, int] = {}
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    count = 0
    for register, (first, last) in sorted(ranges.items(), key=lambda item: item[1]):
        while busy and busy[0][0] <= first:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            slot = heapq.heappop(free)
        else:
            slot, count = count, count + 1
        slots[register] = slot
        heapq.heappush(busy, (max(last, first + 1), slot))
    return slots, count


class Slots:
    """Slots for constants, special registers and, per function, registers by live range."""

    def __init__(self) -> None:
        self.registers = 0  # virtual registers numbered so far
        self.virtual: dict[int, int] = {}  # register number → slot within its width's area
        self.wide = 0  # 64-bit slots used so far
        self.narrow = 0
        self.constants: dict[ops.Constant, int] = {}
        self.special: dict[int, int] = {}
        self.narrow_base = self.count = 0

    def assign(self, code: list[ops.Operation], blocks: list[Block], frame: Frame) -> None:
        wide, narrow = self.wide, self.narrow
        for width in (8, 4):
            reads = [ops.registers(ops.inputs(o), width) for o in code]
            writes = [ops.registers(ops.outputs(o), width) for o in code]
            ranges = live_ranges(blocks, reads, writes, [o.guard is None for o in code])
            slots, count = share_slots(ranges)
            base = self.wide if width == 8 else self.narrow
            self.virtual |= {register: base + slot for register, slot in slots.items()}
            if width == 8:
                self.wide += count
            else:
                self.narrow += count
        frame.wide, frame.narrow = (wide, self.wide), (narrow, self.narrow)
        for operation in code:
            for operand in (*operation.operands, *operation.extra):
                if isinstance(operand, ops.Constant):
                    self.constants.setdefault(operand, 0)
                elif isinstance(operand, ops.Special):
                    self.special.setdefault(operand.which, 0)

    def finish(self) -> None:
        """Lay out: wide registers, wide constants, then everything of 32 bits."""
        at = 2 * self.wide
        for constant in self.constants:
            if constant.width == 8:
                self.constants[constant] = at
                at += 2
        self.narrow_base = at
        at += self.narrow
        for constant in self.constants:
            if constant.width == 4:
                self.constants[constant] = at
                at += 1
        for which in self.special:
            self.special[which] = at
            at += 1
        self.count = at

    def place(self, operand: ops.Operand) -> int:
        if operand is None:
            return -1
        if isinstance(operand, ops.Register):
            slot = self.virtual[operand.number]
            return 2 * slot if operand.width == 8 else self.narrow_base + slot
        if isinstance(operand, ops.Predicate):
            return operand.number
        if isinstance(operand, ops.Constant):
            return self.constants[operand]
        if isinstance(operand, ops.Special):
            return self.special[operand.which]
        return operand

    def presets(self) -> list[tuple[int, int, int]]:
        return [(s, c.width, c.value & ((1 << 64) - 1)) for c, s in self.constants.items()]

    def specials(self) -> list[int]:
        return [self.special.get(w, -1) for w in range(len(ops.SPECIAL_REGISTERS))]
