"""Counts → what to try next. Every rule states its evidence and names a line of the source.

A rule's gain compares the bound with the bound of the counts after the change that the idea's rung
makes. If the idea is about waiting, which counts do not show, the gain comes from the issue model
without that wait. The gain is None if the idea relieves a resource that is not the bottleneck.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from grader.hardware import gpus
from grader.model import (
    Advice,
    Traffic,
)
from grader.performance.banks import Conflict, side_by_side
from grader.performance.facts import Facts
from grader.performance.loop_steps import Step, Unit
from grader.performance.structure import ffma_while_loading, waits_to_store
from grader.submission.provided import provided

_WORTH = 0.9  # advise more elements per thread if at most this share of the loads is left
_BANKS_NOTICED = 0.08  # share of the cycles; rungs that order their FFMA lose half as much
_MOST = 3  # pieces of advice; a student does one thing at a time
_BLOCKED = 16  # elements per thread; below that, how tiles are loaded matters little


def advise(facts: Facts) -> tuple[Advice, ...]:
    """The first rules that apply, in the order of the ladder."""
    found = (rule(facts) for rule in _RULES)
    return tuple(_distinct(each for each in found if each is not None))[:_MOST]


def _distinct(found: Iterator[Advice]) -> Iterator[Advice]:
    """At most one piece of advice per idea."""
    seen: set[str] = set()
    for each in found:
        if each.idea not in seen:
            seen.add(each.idea)
            yield each


def _advice(
    facts: Facts, idea: str, message: str, *bases: str, gain: float | None = None
) -> Advice:
    found = (path.name for at in provided("reference") for path in at.glob(f"[0-9]*_{idea}"))
    rung = next(found, None)
    file, line = facts.where(*bases)
    return Advice(idea=idea, rung=rung, message=message, file=file, line=line, gain=gain)


def _scaled(traffic: Traffic, factor: float) -> Traffic:
    return Traffic(
        requests=round(traffic.requests * factor),
        cost=round(traffic.cost * factor),
        lines=round(traffic.lines * factor),
        bytes=round(traffic.bytes * factor),
        passes=round(traffic.passes * factor),
    )


# --- the rules --------------------------------------------------------------------------------


def _few_blocks(facts: Facts) -> Advice | None:
    counts, sms = facts.counts, facts.gpu.multiprocessors
    blocks = counts.grid[0] * counts.grid[1] * counts.grid[2] * counts.times
    if blocks >= sms:
        return None
    message = (
        f"{blocks} block{'s' if blocks > 1 else ''} for the whole of C, where a GPU like the "
        f"{facts.gpu.name} has {sms} multiprocessors and a block uses one; give every tile of C a "
        "block of its own"
    )
    return _advice(
        facts, "tile32", message, "FFMA", gain=facts.gain(grid=(100 * sms, 1, 1), warp_cycles=0.0)
    )


def _global_sum(facts: Facts) -> Advice | None:
    stores = facts.counts.global_stores
    each = stores.requests / max(facts.executed("FFMA"), 1)
    if each < 0.2:
        return None
    message = (
        f"the sum goes to global memory {each:.2g} times for each FFMA; keep it in a register and "
        "store it once, after the loop, then take tiles through shared memory"
    )
    none = Traffic(requests=0, cost=0, lines=0, bytes=0)
    return _advice(facts, "tile32", message, "STG", gain=facts.gain(global_stores=none))


def _no_tile(facts: Facts) -> Advice | None:
    loads = facts.counts.global_loads
    each = loads.requests / max(facts.executed("FFMA"), 1)
    if facts.executed("LDS") or each < 0.3:
        return None
    lines = loads.lines / loads.requests
    spread = (
        f", and a warp's load touches {lines:.3g} lines of 128 bytes one after the other, where 1 "
        "would do"
        if lines > 1.5
        else ""
    )
    message = (
        f"{each:.2g} loads from global memory for each FFMA{spread}; load a tile of A and of B "
        "into shared memory, neighbouring threads along K, so that every element serves 32 threads"
    )
    ffma = facts.executed("FFMA")
    tiled = Traffic(requests=ffma // 16, cost=ffma // 4, lines=ffma // 16, bytes=8 * ffma)
    shared = Traffic(requests=2 * ffma, cost=2 * ffma, lines=0, bytes=256 * ffma, passes=2 * ffma)
    return _advice(
        facts, "tile32", message, "LDG", gain=facts.gain(global_loads=tiled, shared_loads=shared)
    )


def _conflicts(facts: Facts) -> Advice | None:
    conflict = facts.conflict
    if conflict is None:
        return None
    at, (one, other) = conflict.at, conflict.lanes
    what = {"LDS": "a load from", "STS": "a store to"}.get(at.opcode, "a copy to")
    message = (
        f"bank conflicts: {what} shared memory takes {at.wavefronts:.3g} wavefronts where "
        f"{at.ideal:.3g} would do, because lanes {one} and {other} access words {conflict.apart} "
        "apart, which lie in one bank; "
    )
    if conflict.remedy is None:
        message += (
            "the model tried to pad the rows, to exchange columns by an XOR and to turn the lanes "
            "round, and none of it helps: let neighbouring lanes access neighbouring words"
        )
    else:
        left = f"{100 * conflict.remedy.kept:.0f} %" if conflict.remedy.kept else "none"
        message += (
            f"{conflict.remedy.words} (in the model {left} of this array's extra wavefronts remain)"
        )
    idea = "tile32" if facts.loop.accumulators == 1 else "warp_tile"
    advice = _advice(facts, idea, message, at.opcode, gain=_without(facts, conflict))
    if at.line is None:
        return advice
    return msgspec.structs.replace(advice, file=at.file, line=at.line)


def _without(facts: Facts, conflict: Conflict) -> float | None:
    """The gain of the remedy."""
    names = {"LDS": "shared_loads", "STS": "shared_stores"}
    name = names.get(conflict.at.opcode)
    if conflict.remedy is None or name is None:
        return None
    now: Traffic = getattr(facts.counts, name)
    saved = (now.cost - now.passes) * conflict.share * (1 - conflict.remedy.kept)
    return facts.gain(**{name: msgspec.structs.replace(now, cost=now.cost - round(saved))})


def _rolled(facts: Facts) -> Advice | None:
    loop = facts.loop
    waste = facts.each("integer", "branch", "move")
    if not facts.executed("LDS") or any(i.base == "BAR" for i in facts.code) or waste < 2:
        return None
    message = (
        f"the inner loop is not unrolled: {loop.instructions} instructions for {loop.ffma} FFMA; "
        f"for each FFMA, {waste:.2g} only compute addresses and jump; with a tile edge known at "
        "compile time and #pragma unroll, only loads and FFMA remain"
    )
    wasted = facts.executed("integer", "branch", "move")
    left = facts.counts.instructions - wasted
    return _advice(facts, "unrolled", message, "FFMA", gain=facts.gain(instructions=left))


def _more_for_each_thread(facts: Facts) -> Advice | None:
    """One rule for 1, up to 8 and up to 32 elements per thread."""
    sums, loads = facts.loop.accumulators, facts.counts.shared_loads
    if not loads.requests or sums > 32:
        return None
    side, idea = next(
        (side, idea)
        for most, side, idea in (
            (1, 2, "strided_2x2"),
            (12, 4, "register_4x4"),
            (32, 8, "register_8x8"),
        )
        if sums <= most
    )
    words = sum(facts.each(f"LDS.{bits}") * bits / 32 for bits in (32, 64, 128))
    factor = 2 / side / max(words, 1e-9)
    if factor > _WORTH:
        return None
    message = (
        f"{words:.3g} values from shared memory for each FFMA: a thread computes {sums} "
        f"element{'s' if sums > 1 else ''} of C; with {side}×{side} every value loaded serves "
        f"{side} FFMA, {2 / side:.3g} for each"
    )
    saved = facts.executed("LDS", "integer", "move") * (1 - factor)
    gain = facts.gain(
        shared_loads=_scaled(loads, factor),
        instructions=round(facts.counts.instructions - saved),
    )
    return _advice(facts, idea, message, "LDS", gain=gain)


def _scalar_loads(facts: Facts) -> Advice | None:
    narrow = facts.executed("LDG.32")
    if facts.loop.accumulators < _BLOCKED or narrow < 0.8 * facts.executed("LDG"):
        return None
    if facts.each("LDG.32") < 0.005:
        return None
    message = (
        f"global loads of 4 bytes: {facts.each('LDG.32'):.3g} for each FFMA, each with its own "
        "index arithmetic; a float4 load moves 16 bytes with one instruction"
    )
    left = facts.counts.instructions - round(narrow * 0.75 + facts.executed("integer") * 0.5)
    return _advice(facts, "float4", message, "LDG", gain=facts.gain(instructions=left))


def _scalar_shared(facts: Facts) -> Advice | None:
    each, wide = facts.each("LDS.32"), facts.each("LDS.128")
    if each < 0.05 or facts.loop.accumulators < _BLOCKED:
        return None
    found = f"{each:.3g} loads of 4 bytes from shared memory for each FFMA, beside {wide:.3g} of 16"
    loads = [a for a in facts.shared if a.in_loop and a.opcode == "LDS" and a.width == 4]
    arrays = Counter(load.array for load in loads)
    main = [load for load in loads if load.array == arrays.most_common(1)[0][0]]
    left = facts.counts.instructions - round(facts.executed("LDS.32") * 0.75)
    gain = facts.gain(instructions=left)
    if main and side_by_side(main):
        message = (
            f"{found}: the tile already lies as it is read; let each thread take four neighbouring "
            "values, in rows of a multiple of 4 from an array aligned to 16 bytes, and read float4"
        )
        return _advice(facts, "float4", message, "LDS", gain=gain)
    message = (
        f"{found}: what a thread needs of a tile in one step along K is not side by side; store "
        "the tile transposed and read float4"
    )
    return _advice(facts, "transposed", message, "LDS", gain=gain)


def _exposed(facts: Facts) -> Advice | None:
    between = ffma_while_loading(facts.code)
    if between is None or between >= 32 or facts.loop.accumulators < _BLOCKED:
        return None
    waiting = facts.waiting
    modelled = (
        f", and in the issue model a warp spends {100 * waiting.warp_global_loads:.0f} % of its "
        f"time waiting for them and {100 * waiting.warp_barriers:.0f} % at barriers"
        if waiting
        else ""
    )
    message = (
        f"the loop waits for global memory: {between} FFMA stand between a load and the first "
        f"instruction that needs it{modelled}; load the next tile into registers before computing "
        "this one"
    )
    return _advice(facts, "register_prefetch", message, "LDG", gain=facts.gain_if(_at_once))


def _at_once(step: Step) -> Step:
    """The step, if the result of its load from global memory were there at once."""
    if step.unit is not Unit.LINES:
        return step
    return msgspec.structs.replace(step, sectors=0.0, latency=1)


def _two_barriers(facts: Facts) -> Advice | None:
    if facts.loop.accumulators < _BLOCKED or not waits_to_store(facts.code):
        return None
    barriers = sum(item.base == "BAR" for item in facts.code)
    message = (
        f"{barriers} barriers in an iteration of {facts.loop.unroll} steps along K, and between "
        "two of them warps only fill shared memory; with a second buffer, which takes the next "
        "tile while this one is read, one barrier is enough"
    )
    return _advice(facts, "double_buffer", message, "BAR")


def _through_registers(facts: Facts) -> Advice | None:
    if facts.gpu.capability < 80 or not facts.executed("LDG") or facts.executed("LDGSTS"):
        return None
    if facts.each("STS") < 0.002 or facts.loop.accumulators < _BLOCKED:
        return None
    message = (
        f"tiles go through registers: {facts.each('LDG'):.3g} loads and {facts.each('STS'):.3g} "
        f"stores for each FFMA, and {facts.kernel.registers} registers in each thread; cp.async "
        "copies straight to shared memory, several tiles ahead"
    )
    left = facts.counts.instructions - facts.executed("STS")
    return _advice(facts, "multistage", message, "STS", gain=facts.gain(instructions=left))


def _banks(facts: Facts) -> Advice | None:
    """FFMA that wait because their operands come from one register bank."""
    waiting = facts.waiting
    if waiting is None or waiting.banks < _BANKS_NOTICED or facts.loop.accumulators < _BLOCKED:
        return None
    message = (
        f"FFMA wait for register banks: in {100 * waiting.banks:.0f} % of the issue model's cycles "
        "nothing issues because operands come from one bank (even or odd registers) and no .reuse "
        "saves a read; let consecutive FFMA share a value of A or B and alternate the banks of the "
        "others, so that each reads only two registers"
    )
    return _advice(facts, "reuse_order", message, "FFMA", gain=facts.gain_if(_two_reads))


def _two_reads(step: Step) -> Step:
    return msgspec.structs.replace(step, reads=(1, 1)) if any(step.reads) else step


def _long_wave(facts: Facts) -> Advice | None:
    """Blocks that run at the same time should share what they load."""
    counts, gpu = facts.counts, facts.gpu
    fits = gpus.occupancy(
        gpu.multiprocessor,
        block=counts.block,
        registers=facts.kernel.registers,
        shared_bytes=facts.kernel.shared_bytes + counts.shared_bytes,
    )
    across, down = counts.grid[0], counts.grid[1]
    threads = counts.block[0] * counts.block[1] * counts.block[2]
    covered = across * down * threads * facts.loop.accumulators / (facts.size.m * facts.size.n)
    if not 0.9 < covered < 1.1:
        return None  # a block does not compute a separate tile of C
    if fits is None or facts.loop.accumulators < _BLOCKED or down < 2 or counts.grid[2] > 1:
        return None
    wave = min(fits.blocks * gpu.multiprocessors, across * down)
    tiles = min(across, wave) + -(-wave // across)
    best = 2 * wave**0.5
    if tiles < 1.5 * best:
        return None
    message = (
        f"{wave} blocks run at a time and, in the order of blockIdx, read {tiles} different tile "
        f"rows and columns; a square patch of blocks would read {best:.0f}, and find more of them "
        "in the L2 cache"
    )
    return _advice(facts, "rasterised", message, "LDG", "LDGSTS")


def _tail(facts: Facts) -> Advice | None:
    counts, gpu = facts.counts, facts.gpu
    blocks = counts.grid[0] * counts.grid[1] * counts.grid[2]
    busiest = -(-blocks // gpu.multiprocessors)
    used = blocks / (busiest * gpu.multiprocessors)
    if used > 0.85 or facts.loop.accumulators < _BLOCKED:
        return None
    message = (
        f"{blocks} blocks on {gpu.multiprocessors} multiprocessors: some run {busiest}, and "
        f"{100 * (1 - used):.0f} % of the GPU is idle while they do; blocks that take a part of K "
        "each (split-K) spread the work evenly"
    )
    return _advice(facts, "split_k", message, "FFMA", gain=1 / used)


_RULES: Sequence[Callable[[Facts], Advice | None]] = (
    *(_few_blocks, _global_sum, _no_tile, _conflicts, _rolled, _more_for_each_thread),
    *(_scalar_loads, _scalar_shared, _exposed, _two_barriers, _through_registers),
    *(_long_wave, _tail, _banks),
)
