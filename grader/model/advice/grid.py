"""Advice on how blocks spread over the GPU, on divergence, and on sums that go up a tree."""

import math

import msgspec

from grader.model.facts import BLOCKED, Facts, KernelFacts, advice, placed, say
from grader.model.records import Advice


def few_blocks(facts: Facts) -> Advice | None:
    return _more_blocks(facts, "few-blocks", "tile32", "FFMA")


def few_parts(facts: KernelFacts) -> Advice | None:
    return _more_blocks(facts, "few-parts", "interleaved", "LDG")


def _more_blocks(facts: KernelFacts, rule: str, idea: str, base: str) -> Advice | None:
    blocks, sms = math.prod(facts.counts.grid) * facts.counts.times, facts.gpu.multiprocessors
    if blocks >= sms:
        return None
    gpu, output = facts.gpu.name, facts.words.output
    message = say(f"rule.{rule}", count=blocks, sms=sms, gpu=gpu, output=output)
    gain = facts.gain(grid=(100 * sms, 1, 1), warp_cycles=0.0)
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
    message = say("rule.long-wave", wave=wave, tiles=tiles, best=best)
    said = advice(facts, "rasterised", message)
    reads = (each for each in facts.function if "SR_CTAID" in " ".join(each.operands))
    return placed(said, next(reads, facts.function[0]))


def tail(facts: Facts) -> Advice | None:
    blocks, sms = math.prod(facts.counts.grid), facts.gpu.multiprocessors
    busiest = -(-blocks // sms)
    used = blocks / (busiest * sms)
    if used > 0.85 or facts.loop.accumulators < BLOCKED:
        return None
    message = say(
        "rule.tail",
        depth=facts.words.depth,
        blocks=blocks,
        sms=sms,
        busiest=busiest,
        idle=100 * (1 - used),
    )
    return advice(facts, "split_k", message, "FFMA", gain=1 / used)


# --- divergence --------------------------------------------------------------------------------

_NOTICED = 0.1  # of the issue slots; a tree's last steps, in one warp of eight, take 4 %


def split_warps(facts: KernelFacts) -> Advice | None:
    """The branch that costs most, if all together cost much where issue slots are scarce."""
    counts, splits = facts.counts, facts.counts.splits
    lost = sum(each.lost for each in splits)
    if not splits or lost < _NOTICED * counts.instructions or not facts.near_the_limit("issue"):
        return None
    worst = splits[0]
    message = say(
        "rule.split-warps",
        splits=100 * worst.splits / worst.reached,
        lost=100 * worst.lost / counts.instructions,
    )
    gain = facts.gain(instructions=round(counts.instructions - lost))
    return placed(advice(facts, "strided_index", message, "BRA", gain=gain), worst)


# --- trees -------------------------------------------------------------------------------------

_BARRIERS = 2  # beside those of the steps in which several warps add
_NARROW = 0.8  # share of the loads that move 4 bytes


def scattered_pairs(facts: KernelFacts) -> Advice | None:
    if (conflict := facts.conflict) is None:
        return None
    at = conflict.at
    message = say(
        "rule.scattered-pairs", wavefronts=at.wavefronts, ideal=at.ideal, **conflict.figures
    )
    loads, stores = facts.counts.shared_loads, facts.counts.shared_stores
    gain = facts.gain(
        shared_loads=msgspec.structs.replace(loads, cost=loads.passes),
        shared_stores=msgspec.structs.replace(stores, cost=stores.passes),
    )
    return placed(advice(facts, "sequential", message, at.opcode, gain=gain), at)


def idle_threads(facts: KernelFacts) -> Advice | None:
    loads = facts.counts.global_loads.requests
    if not facts.executed("LDS") or not 0 < loads <= _warps(facts):
        return None
    message = say("rule.idle-threads")
    left = (facts.counts.instructions + loads) // 2
    return advice(facts, "first_add", message, "LDG", gain=facts.gain(instructions=left))


def barriers_for_one_warp(facts: KernelFacts) -> Advice | None:
    barriers = facts.executed("BAR") / _warps(facts)
    warps = math.prod(facts.counts.block) / 32
    steps = math.log2(warps) if warps > 1 else 0
    if not facts.executed("LDS") or barriers <= steps + _BARRIERS:
        return None
    message = say("rule.barriers-for-one-warp", barriers=barriers, warps=warps, steps=steps)
    waits = facts.executed("BAR") - round((steps + 1) * _warps(facts))
    left = facts.counts.instructions - waits
    return advice(facts, "last_warp", message, "BAR", gain=facts.gain(instructions=left))


def sums_through_memory(facts: KernelFacts) -> Advice | None:
    shuffles = any(item.base == "SHFL" for item in facts.function)
    loads, stores = facts.counts.shared_loads, facts.counts.shared_stores
    if shuffles or not loads.requests:
        return None
    moved = (loads.requests + stores.requests) / _warps(facts)
    message = say("rule.sums-through-memory", moved=moved)
    return advice(facts, "shuffle", message, "LDS")


def few_bytes_on_the_way(facts: KernelFacts) -> Advice | None:
    loads, narrow = facts.executed("LDG"), facts.executed("LDG.32")
    if not loads or narrow < _NARROW * loads:
        return None
    for_each = narrow / _warps(facts)
    made = say("loads.one") if round(for_each, 2) == 1 else say("loads.many", loads=for_each)
    message = say("rule.few-bytes-on-the-way", made=made)
    return advice(facts, "wide", message, "LDG")


def several_passes(facts: KernelFacts) -> Advice | None:
    if facts.launches < 2:
        return None
    message = say("rule.several-passes", launches=facts.launches)
    return advice(facts, "one_pass", message, "STG")


def _warps(facts: KernelFacts) -> int:
    """That the launches of this kind start."""
    counts = facts.counts
    return math.prod(counts.grid) * -(-math.prod(counts.block) // 32) * counts.times
