"""Machine code joined with the simulator's counts: how often each instruction runs.

ptxas records the PTX line of every machine instruction. The simulator says how often each PTX
instruction ran and with which addresses. If one basic block of PTX became one block of machine
code, the counts carry over. If ptxas unrolled a loop or copied a block, the copies share them: the
longest copy runs as often as the code before it allows.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from grader.build import Loop, Product, SassFunction, SassInstruction
from grader.model.accesses import (
    SECTOR,
    MemoryAccess,
    accesses,
    added_up,
    changes,
    traffic,
    turns_in_l2,
)
from grader.model.blocks import conserve, splits, warp_cycles
from grader.model.main_loop import opcode_counts
from grader.model.records import KernelCounts, TensorCount
from grader.model.units import unit_of
from grader.model.waits import takes_work, waits, with_one_look
from grader.problems import Work
from ptxsim.findings import LaunchSample, RowCount, kernel_name
from ptxsim.text import NOTHING, Message, clauses, phrase

_ANCHORS = ("FFMA", "LDG", "LDS", "STG", "STS", "LDGSTS", "BAR", "LDL", "STL", "LDSM", "STSM")
_FLOATS = ("FFMA", "FADD", "FMUL")
_TRAFFIC = {
    "global_loads": "LDG",
    "global_stores": "STG",
    "global_copies": "LDGSTS",
    "shared_loads": "LDS",
    "shared_stores": "STS",
    "shared_copies": "copied",
    "matrix_loads": "LDSM",
    "matrix_stores": "STSM",
    "bulk_loads": "UTMALDG",
    "bulk_stores": "UTMASTG",
    "bulk_shared": "bulk",
    "shared_atomics": "ATOMS",
    "global_atomics": "REDG",
}
_ENOUGH = 0.98  # of the problem's operations
FAR = 1000  # cycles, of ``far_cycles``
# Bytes of a part of the L2 in which atomics take turns, and how many parts there are at most:
# docs/measurements/2026-11-29-h200-atomics.txt.
_SLICE, _SLICES = 512, 72
_SCALED = 0.1  # counts of uneven blocks that are scaled by more bound nothing
_OFF = "predicated off"  # accesses whose predicate is off for all lanes of the warp


def count(function: SassFunction, sample: LaunchSample, factor: float) -> KernelCounts:
    """The counts of all launches of this kind together, ``factor`` times the sampled blocks'."""
    rows = {row.row: row for row in sample.rows}
    runs = with_one_look(function, executions(function, rows))
    moving = {each.item.address: each for each in accesses(function, rows, runs)}
    mix: Counter[str] = Counter()
    units: Counter[str] = Counter()
    products: Counter[Product] = Counter()
    floats = local = 0.0
    strong = (each for each in moving.values() if ".STRONG" in each.item.opcode)
    for index, times in enumerate(runs):
        for item in function.of_block(index):
            done = moving[item.address].requests if item.address in moving else times
            mix[item.kind] += round(done * factor)
            mix[_OFF] += round((times - done) * factor)
            floats += times * (item.base in _FLOATS)
            if item.base in ("LDL", "STL") and not item.never:
                local += times * max(item.bits // 32, 1)  # the words of a warp lie side by side
            if unit := unit_of(item):
                units[unit] += round(times * factor)
            product = item.product
            if product is not None:
                products[product] += round(times * factor)
    moved = traffic(moving.values(), factor)
    alone = warp_cycles(function, runs)
    return KernelCounts(
        name=function.name,
        grid=sample.grid,
        block=sample.block,
        shared_bytes=sample.shared_bytes,
        times=sample.times,
        complete=sample.complete and abs(factor / _by_blocks(sample) - 1) <= _SCALED,
        instructions=sum(mix.values()),
        floats=round(floats * factor),
        flops=round(sample.flops * factor),
        # Of one warp; the factor adds the time that an incomplete sample lacks.
        warp_cycles=alone * factor / sample.all_warps,
        mix=opcode_counts(mix),
        splits=splits(function, sample, runs, factor),
        tensor=_tensor(products),
        local_lines=round(local * factor),
        strong_sectors=traffic(strong, factor)["LDG"].cost,
        heaviest=sample.heaviest * sample.times / factor if sample.complete else 0.0,
        meetings=_meetings(function, rows, runs) * factor / (sample.all_blocks * sample.times),
        hottest=_hottest(moving.values(), sample, factor),
        crowded=_crowded(moving.values()) * factor,
        far_cycles=(warp_cycles(function, runs, FAR) - alone) * factor / sample.all_warps,
        loaded=tuple(_loaded(function, moving, factor)),
        scattered=_scattered(moving.values(), factor),
        units=opcode_counts(units),
        **{field: moved[kind] for field, kind in _TRAFFIC.items()},
    )


def _hottest(of: Iterable[MemoryAccess], sample: LaunchSample, factor: float) -> float:
    """Return how often one word changes by atomics. A single block does not tell which words others
    change."""
    found = 0.0
    for each in of if sample.blocks >= min(2, sample.all_blocks) else ():
        row = each.row
        if each.base in ("ATOMG", "REDG") and row.span and row.requests:
            found += each.requests / row.requests * changes(each.item, row) * row.width / row.span
    return found * factor


def _crowded(of: Iterable[MemoryAccess]) -> float:
    """Return the turns of atomics, each over the slices of the L2 that hold what it changes."""
    found = 0.0
    for each in of:
        if each.base in ("ATOMG", "REDG") and each.row.span:
            turns = 1 if added_up(each.item, each.row) else turns_in_l2(each.row)
            slices = min(max(each.row.span / _SLICE, 1.0), _SLICES)
            found += each.requests * turns / slices
    return found


def _loaded(
    function: SassFunction, moving: Mapping[int, MemoryAccess], factor: float
) -> Iterator[int]:
    """Yield the bytes that each innermost loop loads, and last those of the code outside loops."""
    outwards = sorted(function.loops, key=lambda loop: -len(loop.blocks))
    inside = {index: loop for loop in outwards for index in loop.blocks}
    sums: Counter[Loop | None] = Counter()
    for index in range(len(function.blocks)):
        of = (moving[i.address] for i in function.of_block(index) if i.address in moving)
        moved = traffic((each for each in of if each.base == "LDG"), factor)["LDG"]
        sums[inside.get(index)] += moved.cost * SECTOR
    yield from (bytes_ for loop, bytes_ in sums.items() if loop and bytes_)
    yield sums[None]


def _scattered(of: Iterable[MemoryAccess], factor: float) -> int:
    """Count the sectors of stores beyond those that would hold what they write."""
    stores = ((each.requests, *each.sectors) for each in of if each.base == "STG")
    extra = (times * max(sectors - least, 0.0) for times, sectors, least in stores)
    return round(factor * sum(extra))


def _meetings(function: SassFunction, rows: Mapping[int, RowCount], runs: Sequence[float]) -> float:
    """Count how often one lane of a block publishes what the block wrote, and waits for others: by
    a fence, an atomic, and a loop that reads the same word again."""
    if not waits(function):
        return 0.0
    return sum(
        times
        for index, times in enumerate(runs)
        for item in function.of_block(index)
        if item.base == "MEMBAR"
        if (row := rows.get(item.ptx_line or 0)) is not None and row.active <= row.warps
    )


def _tensor(products: Mapping[Product, int]) -> tuple[TensorCount, ...]:
    """Sum operations by kind, the most first."""
    kinds: defaultdict[tuple[str, str, bool], list[int]] = defaultdict(lambda: [0, 0, 0])
    for each, count in products.items():
        sums = kinds[each.kind, each.sums, each.by_warpgroup]
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


def factors(samples: Sequence[LaunchSample], work: Work) -> tuple[float, ...]:
    """The factors from the sampled blocks to all launches of their kinds.

    Samples that ran out of time stand for the operations that the others leave of the task's,
    shared by their warps. A few uneven blocks are no average: their counts are scaled until all
    launches do the task's operations, or a whole multiple of them, as products of parts do. A
    sample of less than half of them says too little for that.
    """
    found = [_by_blocks(each) for each in samples]
    done = sum(each.flops * by for each, by in zip(samples, found, strict=True) if each.complete)
    if 2 * done >= work.operations > 0:
        scale = max(1, math.floor(done / work.operations + 1 - _ENOUGH)) * work.operations / done
        for place, each in enumerate(samples):
            found[place] *= scale if each.uneven and each.complete and each.flops else 1.0
    warps = sum(each.all_warps for each in samples if each.stopped and each.flops)
    for place, each in enumerate(samples):
        if each.stopped and each.flops:
            share = (work.operations - done) * each.all_warps / warps
            found[place] = max(found[place], share / each.flops)
    return tuple(found)


def _by_blocks(sample: LaunchSample) -> float:
    return sample.all_blocks * sample.times / sample.blocks


def unfounded(samples: Sequence[LaunchSample], by: Sequence[float], work: Work) -> Message | None:
    """Say why the counts, ``by`` these factors, are no ground for a bound or an estimate."""
    executed = sum(each.flops * factor for each, factor in zip(samples, by, strict=True))
    endless = (
        each.kernel
        for each in samples
        if each.stopped and not (each.stopped == "time" and each.flops and work.operations)
    )
    if kernel := next(endless, None):
        why = phrase(
            "the blocks of {kernel} that were counted did not end", kernel=kernel_name(kernel)
        )
    elif not (executed >= _ENOUGH * work.operations):
        why = phrase(
            "the blocks that were counted do {share:.0f} % of the problem's operations",
            share=100 * executed / work.operations,
        )
    else:
        return None
    mistakes = [each.mistake for each in samples if each.mistake != NOTHING]
    return clauses([why, *mistakes[:1]])


def unshared(launches: Sequence[tuple[SassFunction, LaunchSample]], work: Work) -> Message | None:
    """Say why counts of some blocks tell nothing of all: they may have taken more than their share
    of the work, and no operations tell how much."""
    for function, sample in launches:
        if work.operations == 0 and sample.blocks < sample.all_blocks and takes_work(function):
            return phrase(
                "the blocks of {kernel} take their work from a counter, and those that were "
                "counted took more than their share",
                kernel=kernel_name(sample.kernel),
            )
    return None


# --- how often the blocks run -----------------------------------------------------------------


def executions(function: SassFunction, rows: Mapping[int, RowCount]) -> list[float]:
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
        # The loop that begins at ``head`` is entered as often as the nearest code before it runs
        # that runs less often.
        before = [h for h in heads if h < head and 0 < warps[h] < warps[head]]
        entries = warps[before[-1]] if before else warps[head]
        for group in _copies(members, anchored):
            for index, times in _shared(
                function, group, anchored, warps[head], entries, head, rows
            ):
                found[index] = times
    return conserve(function, found, [_vote(function, b, rows) for b in range(len(found))])


def _anchors(code: Sequence[SassInstruction], rows: Mapping[int, RowCount]) -> Counter[int]:
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


def _shared(
    function: SassFunction,
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
    unrolled = {}
    for index in group:
        # Of several tensor-core instructions that stand together, nvdisasm gives all one line, so
        # their operations tell how many copies of the PTX block the machine block holds.
        code = function.of_block(index)
        done = sum(item.product.flops for item in code if item.product is not None)
        votes = Counter(
            copies for line, copies in anchored[index].items() if rows[line].head == head
        )
        # A single line may become several loads: what most lines say counts.
        most = max(votes, key=lambda number: (votes[number], number), default=1)
        unrolled[index] = max(round(done / flops), 1) if done and flops else most
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


def _loops_by_itself(
    function: SassFunction,
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


def _vote(function: SassFunction, index: int, rows: Mapping[int, RowCount]) -> float:
    """For blocks without an anchor: the count of most of their PTX lines.

    Before a loop, ptxas also computes values that an outer loop could compute, so the line that
    runs most often counts there.
    """
    said = Counter(
        row.warps
        for item in function.of_block(index)
        if (row := rows.get(item.ptx_line or 0)) is not None
    )
    if not said:
        return 0.0
    into = function.blocks[index].successors
    before = any(into == (loop.head,) and index not in loop.blocks for loop in function.loops)
    return float(max(said) if before else said.most_common(1)[0][0])
