"""Advice on the inner loop: what it executes for each FFMA, its tiles, and what it waits for."""

import math
from collections import Counter

import msgspec

from grader.model.accesses import side_by_side
from grader.model.facts import (
    BLOCKED,
    Facts,
    KernelFacts,
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


def rolled_loop(facts: Facts) -> Advice | None:
    waste = facts.each("integer", "branch", "move")
    if not facts.executed("LDS") or any(i.base == "BAR" for i in facts.code) or waste < 2:
        return None
    instructions, ffma = facts.loop.instructions, facts.loop.ffma
    message = facts.say("rolled-loop", instructions=instructions, ffma=ffma, waste=waste)
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
    message = facts.say("more-for-each-thread", count=sums, words=words, side=side, each=2 / side)
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
    message = facts.say("scalar-loads", each=facts.each("LDG.32"))
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
        message = facts.say("scalar-shared", each=each, wide=wide)
        return advice(facts, "float4", message, "LDS", gain=gain)
    message = facts.say("scalar-shared-apart", each=each, wide=wide)
    return advice(facts, "transposed", message, "LDS", gain=gain)


# --- tiles -------------------------------------------------------------------------------------


def global_sum(facts: Facts) -> Advice | None:
    stores = facts.counts.global_stores
    each = stores.requests / max(facts.executed("FFMA"), 1)
    if each < 0.2:
        return None
    message = facts.say("global-sum", each=each)
    return advice(facts, "tile32", message, "STG", gain=facts.gain(global_stores=NO_TRAFFIC))


def no_tile(facts: Facts) -> Advice | None:
    loads = facts.counts.global_loads
    each = loads.requests / max(facts.executed("FFMA"), 1)
    if facts.executed("LDS") or each < 0.3:
        return None
    lines = loads.lines / loads.requests
    message = facts.say("no-tile-lines" if lines > 1.5 else "no-tile", each=each, lines=lines)
    ffma = facts.executed("FFMA")
    tiled = Traffic(requests=ffma // 16, cost=ffma // 4, lines=ffma // 16, bytes=8 * ffma)
    shared = Traffic(requests=2 * ffma, cost=2 * ffma, lines=0, bytes=256 * ffma, passes=2 * ffma)
    most = max(facts.counts.instructions, _TILED * ffma)
    gain = facts.gain(global_loads=tiled, shared_loads=shared, instructions=most)
    return advice(facts, "tile32", message, "LDG", gain=gain)


def bank_conflicts(facts: KernelFacts) -> Advice | None:
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
    several = isinstance(facts, Facts) and facts.loop.accumulators > 1
    idea = "warp_tile" if several else "tile32"
    return placed(advice(facts, idea, message, at.opcode, gain=gain), at)


_EDGE = 128  # of the tile that the fastest rungs give a block
_SMALL = range(48, 112)  # edges
_WAITS = frozenset(("latency", "global_loads", "barriers", "stalls"))


def _edge(facts: Facts) -> float:
    """The edge of a block's tile, were it a square."""
    return math.sqrt(math.prod(facts.counts.block) * facts.loop.accumulators)


def small_tile(facts: Facts) -> Advice | None:
    """A tile some 64 wide, whose warps hardly do anything between two barriers."""
    barriers, edge = facts.each("BAR"), _edge(facts)
    if not barriers or round(edge) not in _SMALL or _WAITS.isdisjoint(facts.causes):
        return None
    fits = math.prod(facts.counts.grid) * (edge / _EDGE) ** 2 >= facts.gpu.multiprocessors
    figures = {"between": 1 / barriers, "edge": edge, "larger": _EDGE, "times": _EDGE / edge}
    message = facts.say("small-tile" if fits else "small-tile-alone", **figures)
    gain = facts.gain_if(lambda step: None if step.unit is Pipe.BARRIER else at_once(step))
    return advice(facts, "register_8x8" if fits else "multistage", message, "BAR", gain=gain)


# --- waits -------------------------------------------------------------------------------------

_BANKS_NOTICED = 0.08  # share of the cycles; rungs that order their FFMA lose half as much


def exposed_loads(facts: Facts) -> Advice | None:
    """Loads right before their use. Where tiles are small, that comes first."""
    between = work_while_loading(facts.code, lambda item: item.base == "FFMA")
    if between is None or between >= 32 or facts.loop.accumulators < BLOCKED:
        return None
    if round(_edge(facts)) in _SMALL:
        return None
    message = facts.say_waits("exposed-loads", between=between)
    return advice(facts, "register_prefetch", message, "LDG", gain=facts.gain_if(at_once))


def two_barriers(facts: Facts) -> Advice | None:
    if facts.loop.accumulators < BLOCKED or not waits_to_store(facts.code):
        return None
    barriers = sum(item.base == "BAR" for item in facts.code)
    message = facts.say("two-barriers", barriers=barriers, steps=facts.loop.unroll)
    return advice(facts, "double_buffer", message, "BAR")


def through_registers(facts: Facts) -> Advice | None:
    if facts.gpu.capability < 80 or not facts.executed("LDG") or facts.executed("LDGSTS"):
        return None
    if facts.each("STS") < 0.002 or facts.loop.accumulators < BLOCKED:
        return None
    loads, stores, registers = facts.each("LDG"), facts.each("STS"), facts.kernel.registers
    message = facts.say("through-registers", loads=loads, stores=stores, registers=registers)
    left = facts.counts.instructions - facts.executed("STS")
    return advice(facts, "multistage", message, "STS", gain=facts.gain(instructions=left))


def register_banks(facts: Facts) -> Advice | None:
    """FFMA that wait because their operands come from one register bank."""
    waiting = facts.waiting
    if waiting is None or waiting.banks < _BANKS_NOTICED or facts.loop.accumulators < BLOCKED:
        return None
    message = facts.say("register-banks", percent=100 * waiting.banks)

    def relieved(step: LoopStep) -> LoopStep:
        return msgspec.structs.replace(step, reads=(1, 1)) if any(step.reads) else step

    return advice(facts, "reuse_order", message, "FFMA", gain=facts.gain_if(relieved))
