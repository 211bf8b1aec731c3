"""Machine code joined with the simulator's counts: how often each instruction runs.

ptxas records the PTX line of every machine instruction. The simulator says how often each PTX
instruction ran and with which addresses. If one basic block of PTX became one block of machine
code, the counts carry over. If ptxas unrolled a loop or copied a block, the copies share them: the
longest copy runs as often as the code before it allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from grader.model import KernelCounts, OpcodeCount, TensorCount
from grader.performance.accesses import accesses, traffic
from grader.performance.conservation import conserve
from grader.performance.divergence import splits
from grader.performance.sass import Function, Instruction, Product
from grader.performance.serial import warp_cycles
from grader.problems.work import Work
from ptxsim.findings.row_counts import RowCount
from ptxsim.sampling import LaunchSample

_ANCHORS = ("FFMA", "LDG", "LDS", "STG", "STS", "LDGSTS", "BAR", "LDL", "STL", "LDSM", "STSM")
_FLOATS = ("FFMA", "FADD", "FMUL")
_OFF = "predicated off"  # accesses whose predicate is off for all lanes of the warp


def count(function: Function, sample: LaunchSample, work: Work) -> KernelCounts:
    """The counts of all launches of this kind together, scaled up from the sampled blocks."""
    rows = {row.row: row for row in sample.rows}
    factor = scale(sample, work)
    runs = executions(function, rows)
    moving = {each.item.address: each for each in accesses(function, rows, runs)}
    mix: Counter[str] = Counter()
    products: Counter[Product] = Counter()
    floats = 0.0
    for index, times in enumerate(runs):
        for item in function.of_block(index):
            done = moving[item.address].requests if item.address in moving else times
            mix[item.kind] += round(done * factor)
            mix[_OFF] += round((times - done) * factor)
            floats += times * (item.base in _FLOATS)
            product = item.product
            if product is not None:
                products[product] += round(times * factor)
    moved = traffic(moving.values(), factor)
    return KernelCounts(
        name=function.name,
        grid=sample.grid,
        block=sample.block,
        shared_bytes=sample.shared_bytes,
        times=sample.times,
        complete=sample.complete,
        instructions=sum(mix.values()),
        floats=round(floats * factor),
        flops=round(sample.flops * factor),
        warp_cycles=_alone(function, sample, runs, factor),
        mix=tuple(
            OpcodeCount(kind=kind, count=number)
            for kind, number in sorted(mix.items(), key=lambda pair: (-pair[1], pair[0]))
            if number
        ),
        global_loads=moved["LDG"],
        global_stores=moved["STG"],
        global_copies=moved["LDGSTS"],
        shared_loads=moved["LDS"],
        shared_stores=moved["STS"],
        shared_copies=moved["copied"],
        splits=splits(function, sample, runs, factor),
        tensor=_tensor(products),
        matrix_loads=moved["LDSM"],
        matrix_stores=moved["STSM"],
        bulk_loads=moved["UTMALDG"],
        bulk_stores=moved["UTMASTG"],
        bulk_shared=moved["bulk"],
    )


def _tensor(products: Mapping[Product, int]) -> tuple[TensorCount, ...]:
    """By kind, the most operations first."""
    kinds: dict[tuple[str, str, bool], list[int]] = {}
    for each, count in products.items():
        sums = kinds.setdefault((each.kind, each.sums, each.by_warpgroup), [0, 0, 0])
        for place, amount in enumerate((1, each.flops, each.shared_bytes)):
            sums[place] += count * amount
    found = (
        TensorCount(
            kind=kind,
            sums=sums,
            by_warpgroup=by_warpgroup,
            count=count,
            flops=flops,
            shared_bytes=read,
        )
        for (kind, sums, by_warpgroup), (count, flops, read) in kinds.items()
    )
    return tuple(sorted(found, key=lambda each: -each.flops))


def scale(sample: LaunchSample, work: Work) -> float:
    """The factor from the sampled blocks to all launches of their kind.

    A sample that ran out of time is scaled by its share of the operations that the task needs, as
    if the kernel did all of it.
    """
    if not sample.complete and sample.flops and work.operations:
        return work.operations / sample.flops
    return sample.all_blocks * sample.times / sample.blocks


def _alone(function: Function, sample: LaunchSample, runs: Sequence[float], factor: float) -> float:
    """Cycles of one warp of one block. Adds the time that an incomplete sample lacks."""
    warps = sample.warps * sample.all_blocks * sample.times
    return warp_cycles(function, runs) * factor / warps


# --- how often the blocks run -----------------------------------------------------------------


def executions(function: Function, rows: Mapping[int, RowCount]) -> list[float]:
    """Executions by a warp of every basic block of ``function``."""
    anchored = [_anchors(function.of_block(index), rows) for index in range(len(function.blocks))]
    found: list[float | None] = [None] * len(function.blocks)
    by_head: dict[int, list[int]] = {}
    for index, anchors in enumerate(anchored):
        if anchors:
            by_head.setdefault(_head(anchors, rows), []).append(index)
    heads = sorted({row.head for row in rows.values()})
    warps = {row.head: row.warps for row in rows.values()}
    for head, members in by_head.items():
        for group in _copies(members, anchored):
            entries = _entries(head, heads, warps)
            for index, times in _shared(
                function, group, anchored, warps[head], entries, head, rows
            ):
                found[index] = times
    return conserve(function, found, [_vote(function, b, rows) for b in range(len(found))])


def _anchors(code: Sequence[Instruction], rows: Mapping[int, RowCount]) -> Counter[int]:
    """PTX lines of instructions that ptxas neither duplicates nor merges, with their copies.

    Where ptxas made predicates of branches, the PTX blocks behind these run less often than the
    machine's block: what has a guard counts only if nothing else does.
    """
    anchors = [
        (item, row)
        for item in code
        if (item.base in _ANCHORS or item.product is not None) and not item.never
        if (row := rows.get(item.ptx_line or 0)) is not None and row.parts == 1
    ]
    always = [row for item, row in anchors if item.guard is None]
    return Counter(row.row for row in always or [row for _, row in anchors])


def _head(anchors: Counter[int], rows: Mapping[int, RowCount]) -> int:
    """The PTX block behind most of a machine block; other blocks may add a load or two."""
    votes: Counter[int] = Counter()
    for line, copies in anchors.items():
        votes[rows[line].head] += copies
    return votes.most_common(1)[0][0]


def _copies(members: Sequence[int], anchored: Sequence[Counter[int]]) -> list[list[int]]:
    """Machine blocks in groups: those that share a PTX line are copies of each other."""
    groups: list[tuple[set[int], list[int]]] = []
    for index in members:
        lines = set(anchored[index])
        touching = [group for group in groups if group[0] & lines]
        merged = lines.union(*(group[0] for group in touching))
        together = [number for group in touching for number in group[1]]
        groups = [group for group in groups if group not in touching]
        groups.append((merged, [*together, index]))
    return [group[1] for group in groups]


def _entries(head: int, heads: Sequence[int], warps: Mapping[int, int]) -> int:
    """How often the loop that begins at ``head`` is entered: as often as the code before it runs,
    the nearest that runs less often."""
    before = [h for h in heads if h < head and 0 < warps[h] < warps[head]]
    return warps[before[-1]] if before else warps[head]


def _shared(
    function: Function,
    group: Sequence[int],
    anchored: Sequence[Counter[int]],
    times: int,
    entries: int,
    head: int,
    rows: Mapping[int, RowCount],
) -> list[tuple[int, float]]:
    """Divide the executions of one PTX block among the machine blocks that are copies of it."""
    flops = sum(
        32 * row.flops / row.active for row in rows.values() if row.head == head and row.active
    )
    unrolled = {
        index: _by_products(function.of_block(index), flops)
        or _unrolled(copies for line, copies in anchored[index].items() if rows[line].head == head)
        for index in group
    }
    if len(group) == 1 or not entries:
        return [(index, times / unrolled[index]) for index in group]
    loops = {index: _loops_by_itself(function, index, anchored, rows, head) for index in group}
    order = sorted(group, key=lambda index: (-unrolled[index], loops[index], index))
    left, found = times / entries, []
    for index in order[:-1]:
        runs = left // unrolled[index]
        runs = runs if loops[index] else min(1.0, runs)
        left -= runs * unrolled[index]
        found.append((index, runs * entries))
    found.append((order[-1], max(left, 0.0) / unrolled[order[-1]] * entries))
    return found


def _by_products(code: Sequence[Instruction], flops: float) -> int:
    """How many copies of a PTX block that does ``flops`` a block holds, by its tensor-core
    instructions; 0 without any. Of several that stand together, nvdisasm gives all one line."""
    done = sum(item.product.flops for item in code if item.product is not None)
    return max(round(done / flops), 1) if done and flops else 0


def _unrolled(copies: Iterable[int]) -> int:
    """How many copies most PTX lines have in a block; a single line may become several loads."""
    votes = Counter(copies)
    return max(votes, key=lambda number: (votes[number], number), default=1)


def _loops_by_itself(
    function: Function,
    index: int,
    anchored: Sequence[Counter[int]],
    rows: Mapping[int, RowCount],
    head: int,
) -> bool:
    """The innermost loop round this block repeats it alone, not code around it too."""
    around = [loop for loop in function.loops if index in loop.blocks]
    if not around:
        return False
    inner = min(around, key=lambda loop: len(loop.blocks))
    return all(not anchored[b] or _head(anchored[b], rows) == head for b in inner.blocks)


def _vote(function: Function, index: int, rows: Mapping[int, RowCount]) -> float:
    """For blocks without an anchor: the count of most of their PTX lines.

    Before a loop, ptxas also computes values that an outer loop could compute, so the line that
    runs most often counts there.
    """
    said = Counter(
        rows[item.ptx_line].warps
        for item in function.of_block(index)
        if item.ptx_line is not None and item.ptx_line in rows
    )
    if not said:
        return 0.0
    into = function.blocks[index].successors
    before = any(into == (loop.head,) and index not in loop.blocks for loop in function.loops)
    return float(max(said) if before else said.most_common(1)[0][0])
