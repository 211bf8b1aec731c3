"""Advice on how blocks spread over the GPU, on divergence, and on sums that go up a tree."""

import math

import msgspec

from grader.base import gpus
from grader.model.accesses import SECTOR, WORD
from grader.model.facts import BLOCKED, Facts, KernelFacts, advice, placed, say, scaled
from grader.model.records import Advice


def few_blocks(facts: KernelFacts) -> Advice | None:
    return _more_blocks(facts, "few-blocks", "tile32", "FFMA")


def few_parts(facts: KernelFacts) -> Advice | None:
    return _more_blocks(facts, "few-parts", "interleaved", "LDG")


def _more_blocks(facts: KernelFacts, rule: str, idea: str, base: str) -> Advice | None:
    blocks, sms = math.prod(facts.counts.grid) * facts.counts.times, facts.gpu.multiprocessors
    if blocks >= sms:
        return None
    message = facts.say(rule, count=blocks)
    gain = facts.gain(grid=(100 * sms, 1, 1), warp_cycles=0.0, far_cycles=0.0)
    return advice(facts, idea, message, base, gain=gain)


def long_wave(facts: Facts) -> Advice | None:
    """Blocks that run at the same time should share what they load."""
    across, down, deep = facts.counts.grid
    fits, sums = facts.blocks_that_fit(), facts.loop.accumulators
    covered = across * down * math.prod(facts.counts.block) * sums / facts.work.elements
    if not 0.9 < covered < 1.1:
        return None  # a block does not compute a separate tile of C
    if not fits or sums < BLOCKED or down < 2 or deep > 1:
        return None
    wave = min(fits * facts.gpu.multiprocessors, across * down)
    tiles = min(across, wave) + -(-wave // across)
    best = 2 * wave**0.5
    if tiles < 1.5 * best:
        return None
    message = facts.say("long-wave", wave=wave, tiles=tiles, best=best)
    said = advice(facts, "rasterised", message)
    reads = (each for each in facts.function if "SR_CTAID" in " ".join(each.operands))
    return placed(said, next(reads, facts.function[0]))


def tail(facts: Facts) -> Advice | None:
    blocks, sms = math.prod(facts.counts.grid), facts.gpu.multiprocessors
    busiest = -(-blocks // sms)
    used = blocks / (busiest * sms)
    if used > 0.85 or facts.loop.accumulators < BLOCKED:
        return None
    message = facts.say("tail", blocks=blocks, busiest=busiest, idle=100 * (1 - used))
    return advice(facts, "split_k", message, "FFMA", gain=1 / used)


# --- divergence --------------------------------------------------------------------------------

_NOTICED = 0.1  # of the issue slots; a tree's last steps, in one warp of eight, take 4 %


def split_warps(facts: KernelFacts) -> Advice | None:
    """The branch that costs most, if all together cost much where issue slots are scarce."""
    counts = facts.counts
    lost = sum(each.lost for each in counts.splits)
    if (
        not counts.splits
        or lost < _NOTICED * counts.instructions
        or not facts.near_the_limit("issue")
    ):
        return None
    worst = counts.splits[0]
    splits, share = 100 * worst.splits / worst.reached, 100 * worst.lost / counts.instructions
    message = facts.say("split-warps", splits=splits, lost=share)
    gain = facts.gain(instructions=round(counts.instructions - lost))
    return placed(advice(facts, "strided_index", message, "BRA", gain=gain), worst)


# --- any problem ---------------------------------------------------------------------------------

_SCATTERED = 1.5  # sectors / those that hold what is asked for
_HARDLY = 0.1  # edges may go another way
_FEW = 0.5  # of the warps that a multiprocessor holds
_WAITS = frozenset(("latency", "global_loads", "barriers", "stalls"))
_MOVES = {"LDG": "global_loads", "STG": "global_stores", "REDG": "global_atomics"}
_LANES = 32


def scattered_accesses(facts: KernelFacts) -> Advice | None:
    """The access to global memory that moves most for nothing. A product without tiles is told
    about tiles instead."""
    worst, loads = facts.scattered, facts.executed("LDG")
    tiles = facts.work.unit.of == "bytes" or facts.executed("LDS", "LDSM") > _HARDLY * loads
    field = _MOVES.get(worst.base) if worst and tiles else None
    if worst is None or field is None or worst.sectors[0] <= _SCATTERED * worst.sectors[1]:
        return None
    (found, least), now = worst.sectors, getattr(facts.counts, field)
    times = SECTOR * now.cost / facts.work.bytes
    message = facts.say(f"scattered-accesses-{field}", found=found, least=least, times=times)
    kept = scaled(now, least / found)
    change = msgspec.structs.replace(now, cost=kept.cost, lines=kept.lines)
    gain = facts.gain(**{field: change})
    return placed(advice(facts, "neighbours", message, gain=gain), worst.item)


def few_warps(facts: KernelFacts) -> Advice | None:
    """Too few resident warps to wait for one another. Many sums in each thread do without."""
    held = gpus.occupancy(facts.gpu.multiprocessor, facts.kernel, facts.counts)
    alone = facts.counts.tensor or (isinstance(facts, Facts) and facts.loop.accumulators >= BLOCKED)
    if not held or alone or held.warps > _FEW * held.of_warps or _WAITS.isdisjoint(facts.causes):
        return None
    remedy = say(f"few-warps.{held.limited_by.replace(' ', '-')}")
    message = facts.say("few-warps", warps=held.warps, most=held.of_warps, remedy=remedy)
    small = msgspec.structs.replace(facts.kernel, registers=_LANES, shared_bytes=0)
    gain = facts.gain(kernel=small, shared_bytes=0)
    return advice(facts, "occupancy", message, "LDG", gain=gain)


def contended_atomics(facts: KernelFacts) -> Advice | None:
    """Threads that change one word, one after the other."""
    inside, outside = facts.counts.shared_atomics, facts.counts.global_atomics
    one_for_each_warp = outside.bytes / WORD + inside.cost <= facts.warps
    if one_for_each_warp or not facts.near_the_limit("atomics"):
        return None
    each, shared = (count / facts.work.elements for count in (outside.bytes / WORD, inside.cost))
    message = facts.say("contended-atomics", each=each, shared=shared)
    fewer = (scaled(atomics, 1 / _LANES) for atomics in (inside, outside))
    gain = facts.gain(**dict(zip(("shared_atomics", "global_atomics"), fewer, strict=True)))
    return advice(facts, "shuffle", message, "REDG", "RED", "ATOMG", "ATOM", "ATOMS", gain=gain)


# --- trees -------------------------------------------------------------------------------------

_BARRIERS = 2  # beside those of the steps in which several warps add
_NARROW = 0.8  # share of the loads that move 4 bytes


def scattered_pairs(facts: KernelFacts) -> Advice | None:
    if (conflict := facts.conflict) is None:
        return None
    at = conflict.at
    figures = {"wavefronts": at.wavefronts, "ideal": at.ideal, **conflict.figures}
    message = facts.say("scattered-pairs", **figures)
    loads, stores = facts.counts.shared_loads, facts.counts.shared_stores
    gain = facts.gain(
        shared_loads=msgspec.structs.replace(loads, cost=loads.passes),
        shared_stores=msgspec.structs.replace(stores, cost=stores.passes),
    )
    return placed(advice(facts, "sequential", message, at.opcode, gain=gain), at)


def idle_threads(facts: KernelFacts) -> Advice | None:
    loads = facts.counts.global_loads.requests
    if not facts.executed("LDS") or not 0 < loads <= facts.warps:
        return None
    message = facts.say("idle-threads")
    left = (facts.counts.instructions + loads) // 2
    return advice(facts, "first_add", message, "LDG", gain=facts.gain(instructions=left))


def barriers_for_one_warp(facts: KernelFacts) -> Advice | None:
    barriers = facts.executed("BAR") / facts.warps
    warps = math.prod(facts.counts.block) / 32
    steps = math.log2(warps) if warps > 1 else 0
    if not facts.executed("LDS") or barriers <= steps + _BARRIERS:
        return None
    message = facts.say("barriers-for-one-warp", barriers=barriers, warps=warps, steps=steps)
    waits = facts.executed("BAR") - round((steps + 1) * facts.warps)
    left = facts.counts.instructions - waits
    return advice(facts, "last_warp", message, "BAR", gain=facts.gain(instructions=left))


def sums_through_memory(facts: KernelFacts) -> Advice | None:
    shuffles = any(item.base == "SHFL" for item in facts.function)
    loads, stores = facts.counts.shared_loads, facts.counts.shared_stores
    if shuffles or not loads.requests:
        return None
    moved = (loads.requests + stores.requests) / facts.warps
    message = facts.say("sums-through-memory", moved=moved)
    return advice(facts, "shuffle", message, "LDS")


def few_bytes_on_the_way(facts: KernelFacts) -> Advice | None:
    loads, narrow = facts.executed("LDG"), facts.executed("LDG.32")
    if not loads or narrow < _NARROW * loads:
        return None
    for_each = narrow / facts.warps
    made = say("loads.one") if round(for_each, 2) == 1 else say("loads.many", loads=for_each)
    message = facts.say("few-bytes-on-the-way", made=made)
    return advice(facts, "wide", message, "LDG")


def several_passes(facts: KernelFacts) -> Advice | None:
    if facts.launches < 2:
        return None
    message = facts.say("several-passes", launches=facts.launches)
    return advice(facts, "one_pass", message, "STG")
