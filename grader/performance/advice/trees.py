"""Kernels in which the threads of a block add up their values as a tree, in several passes."""

from __future__ import annotations

import math

import msgspec

from grader.model import Advice, counted, phrase
from grader.performance.advice.piece import advice, placed
from grader.performance.facts import KernelFacts

_BARRIERS = 2  # beside those of the steps in which several warps add
_NARROW = 0.8  # share of the loads that move 4 bytes


def few_parts(facts: KernelFacts) -> Advice | None:
    counts, sms = facts.counts, facts.gpu.multiprocessors
    blocks = math.prod(counts.grid) * counts.times
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
    conflict = facts.conflict
    if conflict is None:
        return None
    at, (one, other) = conflict.at, conflict.lanes
    message = phrase(
        "bank conflicts: an access to shared memory takes {wavefronts:.3g} wavefronts where "
        "{ideal:.3g} would do, because lanes {one} and {other} access words {apart} apart, which "
        "lie in one bank; fold the upper half of the values onto the lower, so that neighbouring "
        "lanes access neighbouring words",
        wavefronts=at.wavefronts,
        ideal=at.ideal,
        one=one,
        other=other,
        apart=conflict.apart,
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
