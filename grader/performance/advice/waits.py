"""What warps wait for."""

from __future__ import annotations

import msgspec

from grader.model import Advice, phrase
from grader.performance.advice.piece import BLOCKED, advice
from grader.performance.facts import Facts
from grader.performance.loop_steps import Step, Unit
from grader.performance.structure import ffma_while_loading, waits_to_store

_BANKS_NOTICED = 0.08  # share of the cycles; rungs that order their FFMA lose half as much


def exposed(facts: Facts) -> Advice | None:
    between = ffma_while_loading(facts.code)
    if between is None or between >= 32 or facts.loop.accumulators < BLOCKED:
        return None
    waiting = facts.waiting
    found = phrase(
        "the loop waits for global memory: {between} FFMA stand between a load and the first "
        "instruction that needs it",
        between=between,
    )
    if waiting:
        found = phrase(
            "{found}, and in the issue model a warp spends {loads:.0f} % of its time waiting for "
            "them and {barriers:.0f} % at barriers",
            found=found,
            loads=100 * waiting.warp_global_loads,
            barriers=100 * waiting.warp_barriers,
        )
    message = phrase(
        "{found}; load the next tile into registers before computing this one", found=found
    )
    return advice(facts, "register_prefetch", message, "LDG", gain=facts.gain_if(_at_once))


def _at_once(step: Step) -> Step:
    """The step, if the result of its load from global memory were there at once."""
    if step.unit is not Unit.LINES:
        return step
    return msgspec.structs.replace(step, sectors=0.0, latency=1)


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
    return advice(facts, "reuse_order", message, "FFMA", gain=facts.gain_if(_two_reads))


def _two_reads(step: Step) -> Step:
    return msgspec.structs.replace(step, reads=(1, 1)) if any(step.reads) else step
