"""Advice on the inner loop: what it executes for each FFMA, its tiles, and what it waits for."""

from __future__ import annotations

from collections import Counter

import msgspec

from grader.base import NO_TRAFFIC, Advice, Traffic
from grader.explain.accesses import side_by_side
from grader.explain.banks import Remedy
from grader.explain.facts import (
    BLOCKED,
    Facts,
    advice,
    at_once,
    placed,
    scaled,
    waits_to_store,
    work_while_loading,
)
from grader.explain.loop_steps import LoopStep, Pipe
from ptxsim.message import Message, counted, phrase

_TILED = 9  # instructions for each FFMA of the rung tile32, whose inner loop is not unrolled
_WORTH = 0.9  # advise more elements per thread if at most this share of the loads is left


def rolled(facts: Facts) -> Advice | None:
    waste = facts.each("integer", "branch", "move")
    if not facts.executed("LDS") or any(i.base == "BAR" for i in facts.code) or waste < 2:
        return None
    message = phrase(
        "the inner loop is not unrolled: {instructions} instructions for {ffma} FFMA; for each "
        "FFMA, {waste:.2g} only compute addresses and jump; with a tile edge known at compile time "
        "and #pragma unroll, only loads and FFMA remain",
        instructions=facts.loop.instructions,
        ffma=facts.loop.ffma,
        waste=waste,
    )
    left = facts.counts.instructions - facts.executed("integer", "branch", "move")

    def unrolled(step: LoopStep) -> LoopStep | None:
        return None if step.unit in (Pipe.INTEGER, Pipe.MULTIPLY) else step

    gain = facts.gain_if(unrolled, instructions=left)
    return advice(facts, "unrolled", message, "FFMA", gain=gain)


def more_for_each_thread(facts: Facts) -> Advice | None:
    """One rule for 1, up to 8 and up to 32 elements per thread."""
    sums, loads = facts.loop.accumulators, facts.counts.shared_loads
    if not loads.requests or sums > 32:
        return None
    side = 2 if sums <= 1 else 4 if sums <= 12 else 8
    idea = "strided_2x2" if side == 2 else f"register_{side}x{side}"
    words = sum(facts.each(f"LDS.{bits}") * bits / 32 for bits in (32, 64, 128))
    factor = 2 / side / max(words, 1e-9)
    if factor > _WORTH:
        return None
    message = counted(
        "{words:.3g} values from shared memory for each FFMA: a thread computes {count} element of "
        "{output}; with {side}×{side}, a block's edge apart so that neighbouring lanes still read "
        "neighbouring rows of the tile, every value loaded serves {side} FFMA, {each:.3g} for each",
        "{words:.3g} values from shared memory for each FFMA: a thread computes {count} elements "
        "of {output}; with {side}×{side}, a block's edge apart so that neighbouring lanes still "
        "read neighbouring rows of the tile, every value loaded serves {side} FFMA, {each:.3g} for "
        "each",
        sums,
        words=words,
        side=side,
        each=2 / side,
        output=facts.words.output,
    )
    saved = facts.executed("LDS", "integer", "move") * (1 - factor)
    gain = facts.gain(
        shared_loads=scaled(loads, factor), instructions=round(facts.counts.instructions - saved)
    )
    return advice(facts, idea, message, "LDS", gain=gain)


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
    loads = [a for a in facts.shared if a.in_loop and a.opcode == "LDS" and a.width == 4]
    arrays = Counter(load.array for load in loads)
    main = [load for load in loads if load.array == arrays.most_common(1)[0][0]]
    left = facts.counts.instructions - round(facts.executed("LDS.32") * 0.75)
    gain = facts.gain(instructions=left)
    if main and side_by_side(main):
        message = phrase(
            "{each:.3g} loads of 4 bytes from shared memory for each FFMA, beside {wide:.3g} of "
            "16: the tile already lies as it is read; let each thread take four neighbouring "
            "values, in rows of a multiple of 4 from an array aligned to 16 bytes, and read float4",
            each=each,
            wide=wide,
        )
        return advice(facts, "float4", message, "LDS", gain=gain)
    message = phrase(
        "{each:.3g} loads of 4 bytes from shared memory for each FFMA, beside {wide:.3g} of 16: "
        "the values that a thread needs per step along {depth} are not contiguous; store the tile "
        "transposed and read float4",
        each=each,
        wide=wide,
        depth=facts.words.depth,
    )
    return advice(facts, "transposed", message, "LDS", gain=gain)


# --- tiles -------------------------------------------------------------------------------------


def global_sum(facts: Facts) -> Advice | None:
    stores = facts.counts.global_stores
    each = stores.requests / max(facts.executed("FFMA"), 1)
    if each < 0.2:
        return None
    message = phrase(
        "the sum goes to global memory {each:.2g} times for each FFMA; keep it in a register and "
        "store it once, after the loop, then take tiles through shared memory",
        each=each,
    )
    return advice(facts, "tile32", message, "STG", gain=facts.gain(global_stores=NO_TRAFFIC))


def no_tile(facts: Facts) -> Advice | None:
    loads = facts.counts.global_loads
    each = loads.requests / max(facts.executed("FFMA"), 1)
    if facts.executed("LDS") or each < 0.3:
        return None
    lines = loads.lines / loads.requests
    message = phrase(
        "{each:.2g} loads from global memory for each FFMA; load tiles of {inputs} into shared "
        "memory, their rows padded by 1 against bank conflicts, neighbouring threads at neighbours "
        "in memory, so that every element serves 32 threads"
    )
    if lines > 1.5:
        message = phrase(
            "{each:.2g} loads from global memory for each FFMA, and a warp's load touches "
            "{lines:.3g} lines of 128 bytes one after the other, where 1 would do for lanes that "
            "read neighbours in memory; load tiles of {inputs} into shared memory, their rows "
            "padded by 1 against bank conflicts, neighbouring threads at neighbours in memory, so "
            "that every element serves 32 threads"
        ).given(lines=lines)
    message = message.given(each=each, inputs=facts.words.all_inputs)
    ffma = facts.executed("FFMA")
    tiled = Traffic(requests=ffma // 16, cost=ffma // 4, lines=ffma // 16, bytes=8 * ffma)
    shared = Traffic(requests=2 * ffma, cost=2 * ffma, lines=0, bytes=256 * ffma, passes=2 * ffma)
    most = max(facts.counts.instructions, _TILED * ffma)
    gain = facts.gain(global_loads=tiled, shared_loads=shared, instructions=most)
    return advice(facts, "tile32", message, "LDG", gain=gain)


def conflicts(facts: Facts) -> Advice | None:
    if (conflict := facts.conflict) is None:
        return None
    at = conflict.at
    access, name = {
        "LDS": (phrase("a load from shared memory"), "shared_loads"),
        "STS": (phrase("a store to shared memory"), "shared_stores"),
    }.get(at.opcode, (phrase("a copy to shared memory"), ""))
    gain = None
    if conflict.remedy is not None and name:
        now: Traffic = getattr(facts.counts, name)
        saved = (now.cost - now.passes) * conflict.share * (1 - conflict.remedy.kept)
        gain = facts.gain(**{name: msgspec.structs.replace(now, cost=now.cost - round(saved))})
    message = phrase(
        "bank conflicts: {access} takes {wavefronts:.3g} wavefronts where {ideal:.3g} would do, "
        "because lanes {one} and {other} access words {apart} apart, which lie in one bank; "
        "{remedy}",
        access=access,
        wavefronts=at.wavefronts,
        ideal=at.ideal,
        **conflict.figures,
        remedy=_remedy(conflict.remedy),
    )
    idea = "tile32" if facts.loop.accumulators == 1 else "warp_tile"
    return placed(advice(facts, idea, message, at.opcode, gain=gain), at)


def _remedy(remedy: Remedy | None) -> Message:
    if remedy is None:
        return phrase(
            "the model tried to pad the rows, to exchange columns by an XOR and to turn the lanes "
            "round, and none of it helps: let neighbouring lanes access neighbouring words"
        )
    if not remedy.kept:
        return phrase(
            "{remedy} (in the model none of this array's extra wavefronts remain)",
            remedy=remedy.words,
        )
    return phrase(
        "{remedy} (in the model {kept:.0f} % of this array's extra wavefronts remain)",
        remedy=remedy.words,
        kept=100 * remedy.kept,
    )


# --- waits -------------------------------------------------------------------------------------

_BANKS_NOTICED = 0.08  # share of the cycles; rungs that order their FFMA lose half as much


def exposed(facts: Facts) -> Advice | None:
    between = work_while_loading(facts.code, lambda item: item.base == "FFMA")
    if between is None or between >= 32 or facts.loop.accumulators < BLOCKED:
        return None
    message = phrase(
        "the loop waits for global memory: {between} FFMA stand between a load and the first "
        "instruction that needs it; load the next tile into registers before computing this one"
    )
    if waiting := facts.waiting:
        message = phrase(
            "the loop waits for global memory: {between} FFMA stand between a load and the first "
            "instruction that needs it, and in the issue model a warp spends {loads:.0f} % of its "
            "time waiting for them and {barriers:.0f} % at barriers; load the next tile into "
            "registers before computing this one"
        ).given(loads=100 * waiting.warp_global_loads, barriers=100 * waiting.warp_barriers)
    message = message.given(between=between)
    return advice(facts, "register_prefetch", message, "LDG", gain=facts.gain_if(at_once))


def two_barriers(facts: Facts) -> Advice | None:
    if facts.loop.accumulators < BLOCKED or not waits_to_store(facts.code):
        return None
    barriers = sum(item.base == "BAR" for item in facts.code)
    message = phrase(
        "{barriers} barriers in an iteration of {steps} steps along {depth}, and between two of "
        "them warps only fill shared memory; with a second buffer, which takes the next tile while "
        "this one is read, one barrier is enough",
        barriers=barriers,
        steps=facts.loop.unroll,
        depth=facts.words.depth,
    )
    return advice(facts, "double_buffer", message, "BAR")


def through_registers(facts: Facts) -> Advice | None:
    if facts.gpu.capability < 80 or not facts.executed("LDG") or facts.executed("LDGSTS"):
        return None
    if facts.each("STS") < 0.002 or facts.loop.accumulators < BLOCKED:
        return None
    message = phrase(
        "tiles go through registers: {loads:.3g} loads and {stores:.3g} stores for each FFMA, and "
        "{registers} registers in each thread; cp.async copies straight to shared memory, several "
        "tiles ahead",
        loads=facts.each("LDG"),
        stores=facts.each("STS"),
        registers=facts.kernel.registers,
    )
    left = facts.counts.instructions - facts.executed("STS")
    return advice(facts, "multistage", message, "STS", gain=facts.gain(instructions=left))


def banks(facts: Facts) -> Advice | None:
    """FFMA that wait because their operands come from one register bank."""
    waiting = facts.waiting
    if waiting is None or waiting.banks < _BANKS_NOTICED or facts.loop.accumulators < BLOCKED:
        return None
    message = phrase(
        "FFMA wait for register banks: in {percent:.0f} % of the issue model's cycles nothing "
        "issues because operands come from one bank (even or odd registers) and no .reuse saves a "
        "read; let consecutive FFMA share a value of one input and alternate the banks of the "
        "others, so that each reads only two registers",
        percent=100 * waiting.banks,
    )

    def relieved(step: LoopStep) -> LoopStep:
        return msgspec.structs.replace(step, reads=(1, 1)) if any(step.reads) else step

    return advice(facts, "reuse_order", message, "FFMA", gain=facts.gain_if(relieved))
