"""Bound → words: what limits a kernel, and how far. Pure."""

from __future__ import annotations

from grader.model import (
    Bound,
    Explanation,
    Message,
    Result,
    Waiting,
    counted,
    listed,
    phrase,
    size_text,
    verbatim,
)

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


def limit(bound: Bound) -> Message:
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


def waiting_sentence(waiting: Waiting) -> Message:
    """The issue model's result for the main loop."""
    several = sorted(_reasons(waiting).items(), key=lambda pair: -pair[1])
    named = listed(
        phrase("{reason} {share:.0f} %", reason=reason, share=100 * share)
        for reason, share in several
        if share >= 0.005
    )
    return phrase(
        "In the issue model the schedulers issue in {share:.0f} % of the cycles; the rest go by in "
        "waiting for {reasons}.",
        share=100 * waiting.issued,
        reasons=named,
    )


def _reasons(waiting: Waiting) -> dict[Message, float]:
    """Shares of the cycles in which no warp is ready."""
    return {
        _PIPE: waiting.fp32,
        phrase("register banks"): waiting.banks,
        phrase("loads from shared memory"): waiting.shared_loads,
        phrase("loads from global memory"): waiting.global_loads,
        phrase("barriers"): waiting.barriers,
        _RESULTS: waiting.stalls,
    }


def launches_of(why: Explanation) -> Message:
    """All that the bound counts: "its launch", "its 3 launches together"."""
    launches = sum(each.times for each in why.counts)
    return counted("its launch", "its {count} launches together", launches)


def shares(bounds: tuple[Bound, ...], unit: str) -> Message:
    if len(bounds) == 1:
        return _share(bounds[0], unit)
    return listed(
        phrase("{share} on {gpu}", share=_share(each, unit), gpu=each.gpu) for each in bounds
    )


def _share(bound: Bound, unit: str) -> Message:
    """Only what no waiting is part of is "at most"."""
    if bound.most is None:
        return phrase("about {speed}", speed=_of_peak(bound.speed, bound, unit))
    words = phrase("at most {speed}", speed=_of_peak(bound.most.speed, bound, unit))
    if bound.resource != "waiting":
        return words
    return phrase("{most}, about {speed:.3g} expected", most=words, speed=bound.speed)


def _of_peak(speed: float, bound: Bound, unit: str) -> str:
    return f"{speed:.4g} {unit} ({100 * speed / bound.peak:.0f} %)"


def speed_sentence(result: Result, why: Explanation, bound: Bound) -> Message:
    """The bound with its resource, and the estimate where waiting makes it lower."""
    peak = phrase(
        "{peak:.4g} {unit} at {size}",
        peak=bound.peak,
        unit=result.problem.unit,
        size=size_text(why.size),
    )
    launches = launches_of(why)
    if bound.most is None:
        return phrase(
            "about {speed:.4g} of {peak}, by the counts of {launches}; the limit is {limit}",
            speed=bound.speed,
            peak=peak,
            launches=launches,
            limit=limit(bound),
        )
    words = phrase(
        "at most {speed:.4g} of {peak}, by the counts of {launches}",
        speed=bound.most.speed,
        peak=peak,
        launches=launches,
    )
    resource = resource_name(bound.most.resource)
    if bound.resource != "waiting":
        return phrase("{bound}; the limit is {limit}", bound=words, limit=resource)
    return phrase(
        "{bound} ({resource}); about {speed:.3g} is expected: the limit is {limit}",
        bound=words,
        resource=resource,
        speed=bound.speed,
        limit=limit(bound),
    )
