"""Bound → words: what limits a kernel, and how far. Pure."""

from grader import base
from grader.model import AccessMap, Bound, Explanation, Waiting
from grader.report.formatting import SENTENCES, source_line
from grader.results import Result
from ptxsim.text import Message, clauses, listed, verbatim

_say = SENTENCES.say


def resource_words(name: str) -> Message:
    return SENTENCES.words("resource", name)


def resource_name(name: str) -> Message:
    return SENTENCES.words("resource-name", name)


def limit(bound: Bound) -> Message:
    """The limiting resource in a few words: "shared memory", "waiting for barriers"."""
    if bound.resource != "waiting" or bound.waiting is None:
        return resource_name(bound.resource)
    name = bound.causes[0]
    words = _say("bounds.independent" if name == "stalls" else "bounds.waiting")
    return words.given(reason=_say(f"reason.{name}"))


def waiting_sentence(waiting: Waiting) -> Message:
    """The issue model's result for the main loop."""
    several = sorted(_reasons(waiting), key=lambda pair: -pair[1])
    reasons = listed(
        _say("bounds.reason", reason=_say(f"reason.{name}"), share=100 * share)
        for name, share in several
        if share >= 0.005
    )
    return _say("bounds.model", share=100 * waiting.issued, reasons=reasons)


def _reasons(waiting: Waiting) -> list[tuple[str, float]]:
    """Shares of the cycles in which no warp is ready."""
    return [(name, getattr(waiting, name)) for name in SENTENCES.names("reason")]


def _launches(why: Explanation) -> Message:
    """All that the bound counts: "its launch", "its 3 launches together"."""
    launches = sum(each.times for each in why.counts)
    return _say("bounds.launch" if launches == 1 else "bounds.launches", launches=launches)


def _shares(bounds: tuple[Bound, ...], unit: str) -> Message:
    """Each GPU's bound as a share of its peak, and the speed that is expected."""
    found = []
    for each in bounds:
        words = _expected("bounds.expected" if each.most else "bounds.about", each)
        if each.most:
            words = words.given(speed=each.most.speed, share=100 * each.most.speed / each.peak)
        found.append(words.given(unit=unit))
    if len(found) == 1:
        return found[0]
    pairs = zip(found, bounds, strict=True)
    return clauses(_say("bounds.on", share=share, gpu=each.gpu) for share, each in pairs)


def _expected(name: str, bound: Bound) -> Message:
    low, high = (float(f"{speed:.3g}") for speed in bound.expected)  # 1000, not 1e+03
    return _say(name, low=low, high=high)


def speed_in_brief(result: Result, bound: Bound) -> Message:
    """The expected speed beside the peak, and the limiting resource."""
    words = _expected("bounds.brief" if bound.calibrated else "bounds.brief-elsewhere", bound)
    words = words.given(gpu=bound.gpu, peak=bound.peak, unit=result.problem.unit)
    return words.given(resource=resource_name(bound.resource))


def speed_sentence(result: Result, why: Explanation, bound: Bound) -> Message:
    """The bound with its resource, and the estimate with its own."""
    size, hard = base.size_text(why.size), bound.most
    peak = _say("bounds.peak", peak=bound.peak, unit=result.problem.unit, size=size)
    words = _expected("bounds.hard" if hard else "bounds.soft", bound)
    if hard:
        words = words.given(speed=hard.speed, resource=resource_name(hard.resource))
    return words.given(peak=peak, launches=_launches(why), limit=limit(bound))


def access_sentence(access: AccessMap) -> Message:
    """Return what a request of a line costs, and what it could."""
    words = _say("access.sectors" if access.in_global else "access.wavefronts")
    place = source_line(access.file, access.line) if access.file else "–"
    return words.given(place=place, cost=access.cost, least=access.least, share=100 * access.share)


def scored_speed(result: Result, why: Explanation) -> float | None:
    """Return the scored speed at the explained size, if that was timed."""
    timed = (case.timing for case in result.cases if case.size == why.size)
    return next((timing.scored_speed for timing in timed if timing), None)


def peak_sentence(result: Result, why: Explanation) -> Message:
    """The peak, the scored speed at the explained size if that was timed, and what counts allow."""
    problem, info, speed = result.problem, result.environment.gpu, scored_speed(result, why)
    card = base.gpus.of(info) if info else None
    counted = {"launches": _launches(why), "shares": _shares(why.bounds, problem.unit)}
    if card is None or speed is None:
        formula = verbatim("DRAM")
        if problem.counts == "operations":
            formula = _say("peak.f32" if problem.arithmetic == "f32" else "peak.tensor")
        peaks = listed(verbatim(f"{each.gpu} {each.peak:.4g}") for each in why.bounds)
        words = _say("peak.untimed") if speed is None else _say("peak.timed", speed=speed)
        return words.given(formula=formula, peaks=peaks, unit=problem.unit, **counted)
    types, parts = base.gpus.split_arithmetic(problem.arithmetic)
    kind, _, sums = types.partition(".")
    if problem.counts == "bytes":
        peak, unit = card.dram_gb_s * 1e9 / problem.scale, problem.unit
        words = _say("peak.bandwidth")
    else:
        peak, unit = card.peak_tflops(problem.arithmetic), base.gpus.PEAK_UNIT
        if products := card.tensor_rate(kind, sums) if sums else 0:
            words = _say("peak.products", products=products / parts)
        else:
            words = _say("peak.lanes", lanes=card.multiprocessor.fp32_lanes)
        words = words.given(sms=card.multiprocessors, clock=card.clock_mhz / 1000)
    words = words.given(peak=peak, unit=unit, gpu=card.name, **counted)
    return words.given(speed=speed, share=100 * speed / peak)
