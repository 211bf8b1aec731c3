"""Bound → words: what limits a kernel, and how far. Pure."""

from __future__ import annotations

from grader import base
from ptxsim.message import Message, clauses, listed, phrase, verbatim

_PIPE = phrase("the arithmetic pipe")
_RESULTS = phrase("results of arithmetic and integer pipes")
_RESOURCES = {
    "issue": phrase("issue slots: too many instructions besides the FFMA"),
    "FP32": phrase("the FP32 pipes themselves"),
    "tensor cores": phrase("the tensor cores themselves"),
    "shared memory": phrase("shared memory: wavefronts of its loads and stores"),
    "L1": phrase("the L1 cache: lines of 128 bytes that loads from global memory touch"),
    "L2": phrase("the L2 cache's bandwidth"),
    "DRAM": phrase("DRAM's bandwidth"),
    "waiting": phrase("waiting: at times no warp is ready"),
    "latency": phrase("latency: too few warps to hide it"),
}
_RESOURCE_NAMES = {
    "issue": phrase("issue"),
    "tensor cores": phrase("tensor cores"),
    "shared memory": phrase("shared memory"),
    "waiting": phrase("waiting"),
    "latency": phrase("latency"),
}


def resource_words(name: str) -> Message:
    return _RESOURCES.get(name, verbatim(name))


def resource_name(name: str) -> Message:
    return _RESOURCE_NAMES.get(name, verbatim(name))


def limit(bound: base.Bound) -> Message:
    """The limiting resource in a few words: "shared memory", "waiting for barriers"."""
    if bound.resource != "waiting" or bound.waiting is None:
        return resource_name(bound.resource)
    reasons = _reasons(bound.waiting)
    reasons.pop(_PIPE)  # a busy pipe is the goal, not a cause of waiting
    longest = max(reasons, key=lambda name: reasons[name])
    if longest == _RESULTS:
        return phrase(
            "waiting for {reason}, which more independent work for each scheduler would hide",
            reason=longest,
        )
    return phrase("waiting for {reason}", reason=longest)


def waiting_sentence(waiting: base.Waiting) -> Message:
    """The issue model's result for the main loop."""
    several = sorted(_reasons(waiting).items(), key=lambda pair: -pair[1])
    return phrase(
        "In the issue model the schedulers issue in {share:.0f} % of the cycles; the rest go by in "
        "waiting for {reasons}.",
        share=100 * waiting.issued,
        reasons=listed(
            phrase("{reason} {share:.0f} %", reason=reason, share=100 * share)
            for reason, share in several
            if share >= 0.005
        ),
    )


def _reasons(waiting: base.Waiting) -> dict[Message, float]:
    """Shares of the cycles in which no warp is ready."""
    return {
        _PIPE: waiting.fp32,
        phrase("register banks"): waiting.banks,
        phrase("loads from shared memory"): waiting.shared_loads,
        phrase("loads from global memory"): waiting.global_loads,
        phrase("barriers"): waiting.barriers,
        _RESULTS: waiting.stalls,
    }


def _launches(why: base.Explanation) -> Message:
    """All that the bound counts: "its launch", "its 3 launches together"."""
    launches = sum(each.times for each in why.counts)
    if launches == 1:
        return phrase("its launch")
    return phrase("its {launches} launches together", launches=launches)


def _shares(bounds: tuple[base.Bound, ...], unit: str) -> Message:
    """Each GPU's bound as a share of its peak; only what no waiting is part of is "at most"."""
    found = []
    for each in bounds:
        speed = each.most.speed if each.most else each.speed
        share = phrase("about {speed:.4g} {unit} ({share:.0f} %)")
        if each.most and each.resource == "waiting":
            share = phrase(
                "at most {speed:.4g} {unit} ({share:.0f} %), about {expected:.3g} expected"
            ).given(expected=each.speed)
        elif each.most:
            share = phrase("at most {speed:.4g} {unit} ({share:.0f} %)")
        found.append(share.given(speed=speed, unit=unit, share=100 * speed / each.peak))
    if len(found) == 1:
        return found[0]
    pairs = zip(found, bounds, strict=True)
    return clauses(phrase("{share} on {gpu}", share=share, gpu=each.gpu) for share, each in pairs)


def speed_in_brief(result: base.Result, bound: base.Bound) -> Message:
    """The expected speed beside the peak, and the limiting resource."""
    return phrase(
        "{gpu}: about {speed:.3g} of {peak:.4g} {unit} expected; the limit: {resource}",
        gpu=bound.gpu,
        speed=bound.speed,
        peak=bound.peak,
        unit=result.problem.unit,
        resource=resource_name(bound.resource),
    )


def speed_sentence(result: base.Result, why: base.Explanation, bound: base.Bound) -> Message:
    """The bound with its resource, and the estimate where waiting makes it lower."""
    peak = phrase(
        "{peak:.4g} {unit} at {size}",
        peak=bound.peak,
        unit=result.problem.unit,
        size=base.size_text(why.size),
    )
    hard, launches = bound.most, _launches(why)
    if hard is None:
        return phrase(
            "about {speed:.4g} of {peak}, by the counts of {launches}; the limit is {limit}",
            speed=bound.speed,
            peak=peak,
            launches=launches,
            limit=limit(bound),
        )
    resource = resource_name(hard.resource)
    words = phrase(
        "at most {speed:.4g} of {peak}, by the counts of {launches}; the limit is {resource}"
    )
    if bound.resource == "waiting":
        words = phrase(
            "at most {speed:.4g} of {peak}, by the counts of {launches} ({resource}); about "
            "{expected:.3g} is expected: the limit is {limit}"
        ).given(expected=bound.speed, limit=limit(bound))
    return words.given(speed=hard.speed, peak=peak, launches=launches, resource=resource)


def peak_sentence(result: base.Result, why: base.Explanation) -> Message:
    """The peak, the scored speed at the explained size if that was timed, and what counts allow."""
    problem, info = result.problem, result.environment.gpu
    card = base.gpus.of(info) if info else None
    timed = (case.timing for case in result.cases if case.size == why.size)
    speed = next((timing.scored_speed for timing in timed if timing and timing.runs), None)
    launches, shares = _launches(why), _shares(why.bounds, problem.unit)
    if card is None or speed is None:
        formula = verbatim("DRAM")
        if problem.counts == "operations":
            formula = (
                phrase("SMs × FP32 lanes × 2 × clock")
                if problem.arithmetic == "f32"
                else phrase("SMs × products of the tensor cores in a cycle × 2 × clock")
            )
        words = phrase(
            "{formula}: {peaks} {unit}. Nothing was timed here; the counts of {launches} allow "
            "{shares}."
        )
        if speed is not None:
            words = phrase(
                "{formula}: {peaks} {unit}. Measured: {speed:.4g}; the counts of {launches} allow "
                "{shares}."
            ).given(speed=speed)
        return words.given(
            formula=formula,
            peaks=listed(verbatim(f"{each.gpu} {each.peak:.4g}") for each in why.bounds),
            unit=problem.unit,
            launches=launches,
            shares=shares,
        )
    kind, _, sums = problem.arithmetic.partition(".")
    products = card.tensor_rate(kind, sums) if sums else 0
    bandwidth = problem.counts == "bytes"
    peak = (
        card.dram_gb_s * 1e9 / problem.scale if bandwidth else card.peak_tflops(problem.arithmetic)
    )
    figures: dict[str, float | str | Message] = {
        "peak": peak,
        "unit": problem.unit if bandwidth else base.PEAK_UNIT,
        "gpu": card.name,
        "speed": speed,
        "share": 100 * speed / peak,
        "launches": launches,
        "shares": shares,
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
