"""The peak that a problem asks about, and how near the measured speed comes. Pure."""

from __future__ import annotations

from grader.hardware import gpus
from grader.hardware.gpus import PEAK_UNIT
from grader.model import Explanation, KernelCounts, Message, Result, phrase, verbatim
from grader.report.bounds import launches_of, shares


def _measured_speed(result: Result) -> float | None:
    """The scored speed at the explained size; None if that size was not timed."""
    why = result.explanation
    for case in result.cases:
        timing = case.timing
        if why and timing and timing.runs and case.size == why.size:
            return timing.scored_speed
    return None


def peak_sentence(result: Result, why: Explanation, _counts: KernelCounts) -> Message:
    problem = result.problem
    info = result.environment.gpu
    card = gpus.of(info) if info else None
    speed = _measured_speed(result)
    allowed = phrase(
        "the counts of {launches} allow {shares}",
        launches=launches_of(why),
        shares=shares(why.bounds, problem.unit),
    )
    if card is None or speed is None:
        peaks = ", ".join(f"{each.gpu} {each.peak:.4g}" for each in why.bounds)
        formula = verbatim("DRAM")
        if problem.counts == "operations":
            formula = (
                phrase("SMs × FP32 lanes × 2 × clock")
                if problem.arithmetic == "f32"
                else phrase("SMs × products of the tensor cores in a cycle × 2 × clock")
            )
        measured = (
            phrase("Nothing was timed here")
            if speed is None
            else phrase("Measured: {speed:.4g}", speed=speed)
        )
        return phrase(
            "{formula}: {peaks} {unit}. {measured}; {allowed}.",
            formula=formula,
            peaks=peaks,
            unit=problem.unit,
            measured=measured,
            allowed=allowed,
        )
    kind, _, sums = problem.arithmetic.partition(".")
    products = card.tensor_rate(kind, sums) if sums else 0
    bandwidth = problem.counts == "bytes"
    peak = (
        card.dram_gb_s * 1e9 / problem.scale if bandwidth else card.peak_tflops(problem.arithmetic)
    )
    figures: dict[str, float | str | Message] = {
        "peak": peak,
        "unit": problem.unit if bandwidth else PEAK_UNIT,
        "gpu": card.name,
        "speed": speed,
        "share": 100 * speed / peak,
        "launches": launches_of(why),
        "shares": shares(why.bounds, problem.unit),
    }
    if bandwidth:
        return phrase(
            "DRAM moves {peak:.4g} {unit} on this {gpu}. Measured: {speed:.4g}, {share:.1f} %. "
            "The counts of {launches} allow {shares}.",
            **figures,
        )
    figures |= {"sms": card.multiprocessors, "clock": card.clock_mhz / 1000}
    if products:
        return phrase(
            "{sms} SMs × {products:.0f} products of the tensor cores in a cycle × 2 × {clock:.3g} "
            "GHz = {peak:.4g} {unit} on this {gpu}. Measured: {speed:.4g}, {share:.1f} %. The "
            "counts of {launches} allow {shares}.",
            products=products,
            **figures,
        )
    return phrase(
        "{sms} SMs × {lanes} lanes × 2 × {clock:.3g} GHz = {peak:.3g} {unit} on this {gpu}. "
        "Measured: {speed:.4g}, {share:.1f} %. The counts of {launches} allow {shares}.",
        lanes=card.multiprocessor.fp32_lanes,
        **figures,
    )
