"""What the inner loop executes for each FFMA."""

from __future__ import annotations

from collections import Counter

from grader.model import Advice, Traffic, counted, phrase
from grader.performance.advice.piece import BLOCKED, advice
from grader.performance.facts import Facts
from grader.performance.shared_accesses import side_by_side

_WORTH = 0.9  # advise more elements per thread if at most this share of the loads is left


def rolled(facts: Facts) -> Advice | None:
    loop = facts.loop
    waste = facts.each("integer", "branch", "move")
    if not facts.executed("LDS") or any(i.base == "BAR" for i in facts.code) or waste < 2:
        return None
    message = phrase(
        "the inner loop is not unrolled: {instructions} instructions for {ffma} FFMA; for each "
        "FFMA, {waste:.2g} only compute addresses and jump; with a tile edge known at compile time "
        "and #pragma unroll, only loads and FFMA remain",
        instructions=loop.instructions,
        ffma=loop.ffma,
        waste=waste,
    )
    wasted = facts.executed("integer", "branch", "move")
    left = facts.counts.instructions - wasted
    return advice(facts, "unrolled", message, "FFMA", gain=facts.gain(instructions=left))


def more_for_each_thread(facts: Facts) -> Advice | None:
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
    message = counted(
        "{words:.3g} values from shared memory for each FFMA: a thread computes {count} element of "
        "{output}; with {side}×{side} every value loaded serves {side} FFMA, {each:.3g} for each",
        "{words:.3g} values from shared memory for each FFMA: a thread computes {count} elements "
        "of {output}; with {side}×{side} every value loaded serves {side} FFMA, {each:.3g} for "
        "each",
        sums,
        words=words,
        side=side,
        each=2 / side,
        output=facts.words.output,
    )
    saved = facts.executed("LDS", "integer", "move") * (1 - factor)
    gain = facts.gain(
        shared_loads=_scaled(loads, factor),
        instructions=round(facts.counts.instructions - saved),
    )
    return advice(facts, idea, message, "LDS", gain=gain)


def _scaled(traffic: Traffic, factor: float) -> Traffic:
    return Traffic(
        requests=round(traffic.requests * factor),
        cost=round(traffic.cost * factor),
        lines=round(traffic.lines * factor),
        bytes=round(traffic.bytes * factor),
        passes=round(traffic.passes * factor),
    )


def scalar_loads(facts: Facts) -> Advice | None:
    narrow = facts.executed("LDG.32")
    if facts.loop.accumulators < BLOCKED or narrow < 0.8 * facts.executed("LDG"):
        return None
    if facts.each("LDG.32") < 0.005:
        return None
    message = phrase(
        "global loads of 4 bytes: {each:.3g} for each FFMA, each with its own index arithmetic; a "
        "float4 load moves 16 bytes with one instruction",
        each=facts.each("LDG.32"),
    )
    left = facts.counts.instructions - round(narrow * 0.75 + facts.executed("integer") * 0.5)
    return advice(facts, "float4", message, "LDG", gain=facts.gain(instructions=left))


def scalar_shared(facts: Facts) -> Advice | None:
    each, wide = facts.each("LDS.32"), facts.each("LDS.128")
    if each < 0.05 or facts.loop.accumulators < BLOCKED:
        return None
    found = phrase(
        "{each:.3g} loads of 4 bytes from shared memory for each FFMA, beside {wide:.3g} of 16",
        each=each,
        wide=wide,
    )
    loads = [a for a in facts.shared if a.in_loop and a.opcode == "LDS" and a.width == 4]
    arrays = Counter(load.array for load in loads)
    main = [load for load in loads if load.array == arrays.most_common(1)[0][0]]
    left = facts.counts.instructions - round(facts.executed("LDS.32") * 0.75)
    gain = facts.gain(instructions=left)
    if main and side_by_side(main):
        message = phrase(
            "{found}: the tile already lies as it is read; let each thread take four neighbouring "
            "values, in rows of a multiple of 4 from an array aligned to 16 bytes, and read float4",
            found=found,
        )
        return advice(facts, "float4", message, "LDS", gain=gain)
    message = phrase(
        "{found}: what a thread needs of a tile in one step along {depth} is not side by side; "
        "store the tile transposed and read float4",
        found=found,
        depth=facts.words.depth,
    )
    return advice(facts, "transposed", message, "LDS", gain=gain)
