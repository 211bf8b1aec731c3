"""Advice on how blocks spread over the GPU, on divergence, and on sums that go up a tree."""

from __future__ import annotations

import math

import msgspec

from grader.base import Advice
from grader.explain.facts import BLOCKED, Facts, KernelFacts, advice, placed
from ptxsim.message import counted, phrase


def few_blocks(facts: Facts) -> Advice | None:
    blocks, sms = math.prod(facts.counts.grid) * facts.counts.times, facts.gpu.multiprocessors
    if blocks >= sms:
        return None
    message = counted(
        "{count} block for the whole of {output}, where a GPU like the {gpu} has {sms} "
        "multiprocessors and a block uses one; give every tile of {output} a block of its own",
        "{count} blocks for the whole of {output}, where a GPU like the {gpu} has {sms} "
        "multiprocessors and a block uses one; give every tile of {output} a block of its own",
        blocks,
        output=facts.words.output,
        gpu=facts.gpu.name,
        sms=sms,
    )
    gain = facts.gain(grid=(100 * sms, 1, 1), warp_cycles=0.0)
    return advice(facts, "tile32", message, "FFMA", gain=gain)


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
    message = phrase(
        "{wave} blocks run at a time and, in the order of blockIdx, read {tiles} different tile "
        "rows and columns; a square patch of blocks would read {best:.0f}, and find more of them "
        "in the L2 cache",
        wave=wave,
        tiles=tiles,
        best=best,
    )
    said = advice(facts, "rasterised", message)
    reads = (each for each in facts.function if "SR_CTAID" in " ".join(each.operands))
    return placed(said, next(reads, facts.function[0]))


def tail(facts: Facts) -> Advice | None:
    blocks, sms = math.prod(facts.counts.grid), facts.gpu.multiprocessors
    busiest = -(-blocks // sms)
    used = blocks / (busiest * sms)
    if used > 0.85 or facts.loop.accumulators < BLOCKED:
        return None
    message = phrase(
        "{blocks} blocks on {sms} multiprocessors: some run {busiest}, and {idle:.0f} % of the GPU "
        "is idle while they do; blocks that take a part of {depth} each (split-{depth}) spread the "
        "work evenly",
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
    message = phrase(
        "divergence: this branch splits a warp in {splits:.0f} % of its executions, and "
        "{lost:.0f} % of the kernel's issue slots go to lanes that it switched off; let "
        "neighbouring threads go the same way, so that whole warps work and the others skip the "
        "branch",
        splits=100 * worst.splits / worst.reached,
        lost=100 * worst.lost / counts.instructions,
    )
    gain = facts.gain(instructions=round(counts.instructions - lost))
    return placed(advice(facts, "strided_index", message, "BRA", gain=gain), worst)


# --- trees -------------------------------------------------------------------------------------

_BARRIERS = 2  # beside those of the steps in which several warps add
_NARROW = 0.8  # share of the loads that move 4 bytes


def few_parts(facts: KernelFacts) -> Advice | None:
    blocks, sms = math.prod(facts.counts.grid) * facts.counts.times, facts.gpu.multiprocessors
    if blocks >= sms:
        return None
    message = counted(
        "{count} block for all elements, where a GPU like the {gpu} has {sms} multiprocessors and "
        "a block uses one; let many blocks add up a part each, and a second launch the blocks' "
        "sums",
        "{count} blocks for all elements, where a GPU like the {gpu} has {sms} multiprocessors and "
        "a block uses one; let many blocks add up a part each, and a second launch the blocks' "
        "sums",
        blocks,
        gpu=facts.gpu.name,
        sms=sms,
    )
    gain = facts.gain(grid=(100 * sms, 1, 1), warp_cycles=0.0)
    return advice(facts, "interleaved", message, "LDG", gain=gain)


def scattered_pairs(facts: KernelFacts) -> Advice | None:
    if (conflict := facts.conflict) is None:
        return None
    at = conflict.at
    message = phrase(
        "bank conflicts: an access to shared memory takes {wavefronts:.3g} wavefronts where "
        "{ideal:.3g} would do, because lanes {one} and {other} access words {apart} apart, which "
        "lie in one bank; fold the upper half of the values onto the lower, so that neighbouring "
        "lanes access neighbouring words",
        wavefronts=at.wavefronts,
        ideal=at.ideal,
        **conflict.figures,
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
    message = phrase(
        "a thread loads one element, and half of the threads never add anything: they store it and "
        "wait; let each thread load two and store their sum, and half as many blocks run the tree"
    )
    left = (facts.counts.instructions + loads) // 2
    return advice(facts, "first_add", message, "LDG", gain=facts.gain(instructions=left))


def barriers_for_one_warp(facts: KernelFacts) -> Advice | None:
    barriers = facts.executed("BAR") / _warps(facts)
    warps = math.prod(facts.counts.block) / 32
    steps = math.log2(warps) if warps > 1 else 0
    if not facts.executed("LDS") or barriers <= steps + _BARRIERS:
        return None
    message = phrase(
        "{barriers:.3g} barriers for each warp, but with {warps:.0f} warps only {steps:.0f} steps "
        "of the tree have work for more than one of them; unroll the loop and let the last warp "
        "take the last five steps alone, with __syncwarp() between them",
        barriers=barriers,
        warps=warps,
        steps=steps,
    )
    waits = facts.executed("BAR") - round((steps + 1) * _warps(facts))
    left = facts.counts.instructions - waits
    return advice(facts, "last_warp", message, "BAR", gain=facts.gain(instructions=left))


def sums_through_memory(facts: KernelFacts) -> Advice | None:
    shuffles = any(item.base == "SHFL" for item in facts.function)
    loads, stores = facts.counts.shared_loads, facts.counts.shared_stores
    if shuffles or not loads.requests:
        return None
    moved = (loads.requests + stores.requests) / _warps(facts)
    message = phrase(
        "{moved:.3g} accesses to shared memory for each warp, and a synchronisation between them; "
        "the lanes of a warp can add up with __shfl_down_sync, which takes one instruction for "
        "each step, and shared memory is left with one sum for each warp",
        moved=moved,
    )
    return advice(facts, "shuffle", message, "LDS")


def few_bytes_on_the_way(facts: KernelFacts) -> Advice | None:
    loads, narrow = facts.executed("LDG"), facts.executed("LDG.32")
    if not loads or narrow < _NARROW * loads:
        return None
    for_each = narrow / _warps(facts)
    made = (
        phrase("a thread makes 1 load of 4 bytes")
        if round(for_each, 2) == 1
        else phrase("a thread makes {loads:.3g} loads of 4 bytes", loads=for_each)
    )
    message = phrase(
        "{made} from global memory: too few bytes are on the way to cover the time that DRAM "
        "takes; let each thread add up many elements, in float4 loads, several of them before it "
        "uses the first",
        made=made,
    )
    return advice(facts, "wide", message, "LDG")


def several_passes(facts: KernelFacts) -> Advice | None:
    if facts.launches < 2:
        return None
    message = phrase(
        "a call makes {launches} launches, and each waits until the one before has ended; let "
        "every block count itself as finished with an atomic behind a __threadfence(), and the "
        "last one add up the blocks' sums",
        launches=facts.launches,
    )
    return advice(facts, "one_pass", message, "STG")


def _warps(facts: KernelFacts) -> int:
    """That the launches of this kind start."""
    counts = facts.counts
    return math.prod(counts.grid) * -(-math.prod(counts.block) // 32) * counts.times
