"""Explanation → answers to the lab's thinking questions for the student's own kernel. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from grader.hardware import gpus
from grader.model import Advice, Bound, Explanation, KernelCounts, Record, Result, Waiting
from grader.model.names import kernel_name
from grader.report.loop import loop_sentence

_SECTOR = 32  # bytes
_PIPE = "the FP32 pipe"
_RESULTS = "results of arithmetic and integer pipes"


class Said(Record):
    """One question and its answer, in plain text."""

    question: str
    answer: str


def answers(result: Result) -> tuple[Said, ...]:
    """() when there is no explanation, or there are no counts."""
    why = result.explanation
    if why is None or not why.counts:
        return ()
    return tuple(_answers(result, why))


def _answers(result: Result, why: Explanation) -> Iterator[Said]:
    counts = max(why.counts, key=lambda each: each.flops)
    yield Said(question="How many floating-point operations?", answer=_operations(why))
    yield Said(question="What is the peak, and how near is it?", answer=_peak(result, why))
    if why.bounds:
        yield Said(question="What limits this kernel?", answer=_limits(why.bounds))
    loop = next((k.loop for k in why.kernels if k.name == counts.name), None)
    if loop is not None:
        words = f"{kernel_name(counts.name)}: " + loop_sentence(loop) + f" ({why.arch})."
        yield Said(question="What is one iteration of its main loop?", answer=words)
    yield Said(question="Which part of C does a block compute?", answer=_tile(why, counts))
    yield Said(question="How much does it read from global memory?", answer=_traffic(why))
    yield Said(question="Why no tensor cores?", answer=_tensor_cores(why))


def _operations(why: Explanation) -> str:
    executed = sum(each.flops for each in why.counts)
    ffma = sum(e.count for each in why.counts for e in each.mix if e.kind == "FFMA")
    issued = sum(each.instructions for each in why.counts)
    return (
        f"2·M·N·K = {why.size.flops:.4g} at {why.size}. The kernel executes {executed:.4g}, as "
        f"{ffma:.4g} FFMA of 32 lanes among {issued:.4g} warp instructions "
        f"({100 * ffma / max(issued, 1):.1f} %)."
    )


def measured_tflops(result: Result) -> float | None:
    """The scored TFLOPS at the explained size; None if that size was not timed."""
    why = result.explanation
    for case in result.cases:
        timing = case.timing
        if why and timing and timing.runs and (case.m, case.n, case.k) == _extents(why):
            return timing.scored_tflops
    return None


def _extents(why: Explanation) -> tuple[int, int, int]:
    return why.size.m, why.size.n, why.size.k


def _peak(result: Result, why: Explanation) -> str:
    info = result.environment.gpu
    card = gpus.of(info) if info else None
    tflops = measured_tflops(result)
    if card is None or tflops is None:
        peaks = ", ".join(f"{each.gpu} {each.peak_tflops:.3g}" for each in why.bounds)
        return (
            f"SMs × FP32 lanes × 2 × clock: {peaks} TFLOPS. "
            f"{'Nothing was timed here' if tflops is None else f'Measured: {tflops:.4g}'}; the "
            f"counts of {_launches(why)} allow {_shares(why.bounds)}."
        )
    lanes = card.multiprocessor.fp32_lanes
    return (
        f"{card.multiprocessors} SMs × {lanes} lanes × 2 × {card.clock_mhz / 1000:.3g} GHz = "
        f"{card.fp32_tflops:.3g} TFLOPS on this {card.name}. Measured: {tflops:.4g}, "
        f"{100 * tflops / card.fp32_tflops:.1f} %. The counts of {_launches(why)} allow "
        f"{_shares(why.bounds)}."
    )


def _launches(why: Explanation) -> str:
    """All that the bound counts: "its launch", "its 3 launches together"."""
    launches = sum(each.times for each in why.counts)
    return "its launch" if launches == 1 else f"its {launches} launches together"


def _shares(bounds: tuple[Bound, ...]) -> str:
    return ", ".join(
        _share(each) + (f" on {each.gpu}" if len(bounds) > 1 else "") for each in bounds
    )


def _share(bound: Bound) -> str:
    """Only what no waiting is part of is "at most"."""
    if bound.most is None:
        return f"about {_of_peak(bound.tflops, bound)}"
    words = f"at most {_of_peak(bound.most.tflops, bound)}"
    return words if bound.resource != "waiting" else f"{words}, about {bound.tflops:.3g} expected"


def _of_peak(tflops: float, bound: Bound) -> str:
    return f"{tflops:.3g} TFLOPS ({100 * tflops / bound.peak_tflops:.0f} %)"


def speed_sentence(why: Explanation, bound: Bound) -> str:
    """The bound with its resource, and the estimate where waiting makes it lower."""
    peak = f"{bound.peak_tflops:.3g} TFLOPS at {why.size}"
    counted = f"by the counts of {_launches(why)}"
    if bound.most is None:
        return f"about {bound.tflops:.3g} of {peak}, {counted}; the limit is {limit(bound)}"
    words = f"at most {bound.most.tflops:.3g} of {peak}, {counted}"
    if bound.resource != "waiting":
        return f"{words}; the limit is {bound.most.resource}"
    words += f" ({bound.most.resource}); about {bound.tflops:.3g} is expected"
    return f"{words}: the limit is {limit(bound)}"


def _limits(bounds: tuple[Bound, ...]) -> str:
    first = bounds[0]
    hard = [each for each in first.limits if each.resource != "waiting"]
    several = ", ".join(f"{each.resource} {each.tflops:.3g}" for each in hard[:4])
    others = [each for each in bounds[1:] if each.resource != first.resource]
    words = (
        f"On {first.gpu}: {_RESOURCES[first.resource]}. TFLOPS that each resource allows at most: "
        f"{several}."
    )
    if first.waiting is not None and first.resource == "waiting":
        words += f" With waiting, about {first.tflops:.3g}. {_waiting(first.waiting)}"
    for each in others:
        words += f" On {each.gpu}: {_RESOURCES[each.resource]} (about {each.tflops:.3g} TFLOPS)."
    return words


_RESOURCES = {
    "issue": "issue slots: too many instructions besides the FFMA",
    "FP32": "the FP32 pipes themselves",
    "shared memory": "shared memory: wavefronts of its loads and stores",
    "L1": "the L1 cache: lines of 128 bytes that loads from global memory touch",
    "L2": "the L2 cache's bandwidth",
    "DRAM": "DRAM's bandwidth",
    "waiting": "waiting: at times no warp is ready",
    "latency": "latency: too few warps to hide it",
}


def limit(bound: Bound) -> str:
    """The limiting resource in a few words: "shared memory", "waiting for barriers"."""
    if bound.resource != "waiting" or bound.waiting is None:
        return bound.resource
    reasons = _reasons(bound.waiting)
    reasons.pop(_PIPE)  # a busy pipe is the goal, not a cause of waiting
    longest = max(reasons, key=lambda name: reasons[name])
    if longest == _RESULTS:
        return f"waiting for {_RESULTS}, which more independent work for each scheduler would hide"
    return f"waiting for {longest}"


def _waiting(waiting: Waiting) -> str:
    """The issue model's result for the main loop."""
    several = sorted(_reasons(waiting).items(), key=lambda pair: -pair[1])
    named = [f"{name} {100 * share:.0f} %" for name, share in several if share >= 0.005]
    return (
        f"In the issue model the schedulers issue in {100 * waiting.issued:.0f} % of the "
        f"cycles; the rest go by in waiting for {', '.join(named)}."
    )


def _reasons(waiting: Waiting) -> dict[str, float]:
    """Shares of the cycles in which no warp is ready."""
    return {
        _PIPE: waiting.fp32,
        "register banks": waiting.banks,
        "loads from shared memory": waiting.shared_loads,
        "loads from global memory": waiting.global_loads,
        "barriers": waiting.barriers,
        _RESULTS: waiting.stalls,
    }


def _tile(why: Explanation, counts: KernelCounts) -> str:
    grid = "×".join(map(str, counts.grid))
    block = "×".join(map(str, counts.block))
    words = f"Grid {grid}, blocks of {block} threads"
    tile = why.tile
    if tile is None:
        return f"{words}."
    if tile.rows and tile.columns:
        words += f": a tile of {tile.rows}×{tile.columns}"
    return f"{words}, {tile.elements:.4g} elements for each thread."


def _traffic(why: Explanation) -> str:
    sectors = sum(each.global_loads.cost + each.global_copies.cost for each in why.counts)
    counted = f"Counted: {_SECTOR * sectors / 1e9:.4g} GB asked of the caches"
    once = 4 * (why.size.m * why.size.k + why.size.k * why.size.n)
    least = f"A and B once are {once / 1e9:.3g} GB"
    tile = why.tile
    if tile is None or not tile.rows or not tile.columns:
        return f"{counted}; {least}."
    elements = why.size.flops / 2 * (1 / tile.rows + 1 / tile.columns)
    return (
        f"By formula, M·N·K·(1/{tile.rows} + 1/{tile.columns}) = {elements:.4g} elements, "
        f"{4 * elements / 1e9:.4g} GB. {counted}; {least}."
    )


def _tensor_cores(why: Explanation) -> str:
    used = sorted({opcode for kernel in why.kernels for opcode in kernel.tensor})
    if used:
        return f"It does use them: {', '.join(used)} in its machine code."
    return (
        "Its machine code multiplies with FFMA only. Tensor cores take FP32 inputs as TF32, with "
        "10 bits of mantissa instead of 23: faster, but not the product this lab asks for."
    )


def advice_sentence(advice: Advice) -> str:
    """The message, the gain that the model predicts, and the rung that shows the idea."""
    words = advice.message[:1].upper() + advice.message[1:] + "."
    if advice.gain is not None:
        words += f" In the model the kernel becomes {advice.gain:.3g} times as fast."
    if advice.rung is not None:
        words += f" Shown in reference/{advice.rung}."
    return words
