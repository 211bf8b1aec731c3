"""Advice on the inner loop: what it executes for each FFMA, its tiles, and what it waits for."""

from collections import Counter

import msgspec

from grader.model.accesses import side_by_side
from grader.model.facts import (
    BLOCKED,
    Facts,
    advice,
    at_once,
    describe_remedy,
    placed,
    say,
    scaled,
    waits_to_store,
    work_while_loading,
)
from grader.model.loop_steps import LoopStep, Pipe
from grader.model.records import NO_TRAFFIC, Advice, Traffic

_TILED = 9  # instructions for each FFMA of the rung tile32, whose inner loop is not unrolled
_WORTH = 0.9  # advise more elements per thread if at most this share of the loads is left


def rolled(facts: Facts) -> Advice | None:
    waste = facts.each("integer", "branch", "move")
    if not facts.executed("LDS") or any(i.base == "BAR" for i in facts.code) or waste < 2:
        return None
    message = say(
        "rule.rolled-loop", instructions=facts.loop.instructions, ffma=facts.loop.ffma, waste=waste
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
    message = say(
        "rule.more-for-each-thread",
        count=sums,
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
    message = say("rule.scalar-loads", each=facts.each("LDG.32"))
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
        message = say("rule.scalar-shared", each=each, wide=wide)
        return advice(facts, "float4", message, "LDS", gain=gain)
    message = say("rule.scalar-shared-apart", each=each, wide=wide, depth=facts.words.depth)
    return advice(facts, "transposed", message, "LDS", gain=gain)


# --- tiles -------------------------------------------------------------------------------------


def global_sum(facts: Facts) -> Advice | None:
    stores = facts.counts.global_stores
    each = stores.requests / max(facts.executed("FFMA"), 1)
    if each < 0.2:
        return None
    message = say("rule.global-sum", each=each)
    return advice(facts, "tile32", message, "STG", gain=facts.gain(global_stores=NO_TRAFFIC))


def no_tile(facts: Facts) -> Advice | None:
    loads = facts.counts.global_loads
    each = loads.requests / max(facts.executed("FFMA"), 1)
    if facts.executed("LDS") or each < 0.3:
        return None
    lines = loads.lines / loads.requests
    words = "rule.no-tile-lines" if lines > 1.5 else "rule.no-tile"
    message = say(words, each=each, lines=lines, inputs=facts.words.all_inputs)
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
    name = {"LDS": "shared_loads", "STS": "shared_stores"}.get(at.opcode)
    gain = None
    if conflict.remedy and name:
        now: Traffic = getattr(facts.counts, name)
        saved = (now.cost - now.passes) * conflict.share * (1 - conflict.remedy.kept)
        gain = facts.gain(**{name: msgspec.structs.replace(now, cost=now.cost - round(saved))})
    message = say(
        "rule.bank-conflicts",
        access=say(f"access.{at.opcode if name else 'copy'}"),
        wavefronts=at.wavefronts,
        ideal=at.ideal,
        **conflict.figures,
        remedy=describe_remedy(conflict.remedy) if conflict.remedy else say("remedy.none"),
    )
    idea = "tile32" if facts.loop.accumulators == 1 else "warp_tile"
    return placed(advice(facts, idea, message, at.opcode, gain=gain), at)


# --- waits -------------------------------------------------------------------------------------

_BANKS_NOTICED = 0.08  # share of the cycles; rungs that order their FFMA lose half as much


def exposed(facts: Facts) -> Advice | None:
    between = work_while_loading(facts.code, lambda item: item.base == "FFMA")
    if between is None or between >= 32 or facts.loop.accumulators < BLOCKED:
        return None
    message = say("rule.exposed-loads")
    if waiting := facts.waiting:
        message = say(
            "rule.exposed-loads-waiting",
            loads=100 * waiting.warp_global_loads,
            barriers=100 * waiting.warp_barriers,
        )
    message = message.given(between=between)
    return advice(facts, "register_prefetch", message, "LDG", gain=facts.gain_if(at_once))


def two_barriers(facts: Facts) -> Advice | None:
    if facts.loop.accumulators < BLOCKED or not waits_to_store(facts.code):
        return None
    barriers = sum(item.base == "BAR" for item in facts.code)
    message = say(
        "rule.two-barriers", barriers=barriers, steps=facts.loop.unroll, depth=facts.words.depth
    )
    return advice(facts, "double_buffer", message, "BAR")


def through_registers(facts: Facts) -> Advice | None:
    if facts.gpu.capability < 80 or not facts.executed("LDG") or facts.executed("LDGSTS"):
        return None
    if facts.each("STS") < 0.002 or facts.loop.accumulators < BLOCKED:
        return None
    message = say(
        "rule.through-registers",
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
    message = say("rule.register-banks", percent=100 * waiting.banks)

    def relieved(step: LoopStep) -> LoopStep:
        return msgspec.structs.replace(step, reads=(1, 1)) if any(step.reads) else step

    return advice(facts, "reuse_order", message, "FFMA", gain=facts.gain_if(relieved))
