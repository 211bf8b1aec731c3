"""The measurement of a timed case in words, the same in the terminal and on the page."""

from collections.abc import Iterator

from grader import base
from grader.report.formatting import SENTENCES, clean, two_speeds
from grader.results import TARGET_HALF_WIDTH, CaseResult, PartTime, Result, Timing, Watched, few
from ptxsim.findings import kernel_name
from ptxsim.plan import Record
from ptxsim.text import Message, clauses, listed, phrase, verbatim

_say = SENTENCES.say
_PARTS, _NAME = 6, 60  # parts of a call that are shown, and characters of a name


class Measurement(Record):
    """One timed size."""

    case: CaseResult
    timing: Timing
    of_peak: float | None  # scored speed / the peak; None when that is not known
    peak_name: Message  # the roofline if that is what points follow, else the GPU's peak
    notes: tuple[Message, ...]  # how the measurement went


def measurements(result: Result) -> tuple[Measurement, ...]:
    """The timed sizes in the order they were run."""
    problem, gpu = result.problem, result.environment.gpu
    peak = problem.peak(gpu) if gpu else None
    roofline = result.score.of_roofline if result.score else {}
    return tuple(
        Measurement(
            case=case,
            timing=case.timing,
            of_peak=roofline.get(case.id, case.timing.scored_speed / peak if peak else None),
            peak_name=phrase("the roofline") if case.id in roofline else peak_name(problem),
            notes=(*_parts(case, case.timing, problem), *_notes(case.timing, problem, gpu)),
        )
        for case in result.cases
        if case.timing is not None
    )


def sentence(measured: Measurement, problem: base.ProblemInfo, gpu: base.GpuInfo | None) -> Message:
    """``8192×8192×8192: 0.6320 of cublasSgemm (0.6311–0.6329), 48.7 % of the FP32 peak, …``."""
    timing, (low, high) = measured.timing, measured.timing.ratio_ci
    ratio = _say("measurement.ratio", ratio=timing.ratio, low=low, high=high)
    parts = [ratio.given(baseline=timing.baseline or problem.baseline)]
    if measured.of_peak is not None and gpu is not None:
        name, percent = measured.peak_name, 100 * measured.of_peak
        highest = timing.scored_speed / measured.of_peak
        peak = _say("measurement.peak", speed=highest, unit=problem.unit)
        if problem.counts == "operations" and name == peak_name(problem):
            peak = _say("measurement.clock", peak=peak, clock=gpu.sm_clock_mhz)
        parts.append(_say("measurement.of-peak", percent=percent, name=name, peak=peak))
    size, what = base.size_text(measured.case.size), clauses([*parts, *measured.notes])
    return _say("measurement.size", size=size, what=what)


def peak_name(problem: base.ProblemInfo) -> Message:
    if problem.counts == "bytes":
        return phrase("the memory's bandwidth")
    if problem.arithmetic == "f32":
        return phrase("the FP32 peak")
    if (products := base.gpus.split_arithmetic(problem.arithmetic)[1]) > 1:
        return phrase("the tensor cores' peak / {products} products", products=products)
    return phrase("the tensor cores' peak")


def _parts(case: CaseResult, timing: Timing, problem: base.ProblemInfo) -> Iterator[Message]:
    """Each part's share of a call, and the speed of its longest kernel without the others."""
    whole = sum(part.ms for part in timing.parts)
    if not whole > 0:
        return
    shares = [
        _say("measurement.part", part=_part_name(part), ms=part.ms, percent=100 * part.ms / whole)
        for part in timing.parts[:_PARTS]
    ]
    if len(timing.parts) > _PARTS:
        shares.append(_say("measurement.more", count=len(timing.parts) - _PARTS))
    yield _say("measurement.call", shares=listed(shares))
    kernels = (part for part in timing.parts if part.kernel)
    longest = max(kernels, key=lambda part: part.ms, default=None)
    if longest is not None and len(timing.parts) > 1 and longest.ms > 0:
        alone, whole = problem.speed(case.amount, longest.ms), timing.scored_speed
        words = _say("measurement.alone", part=_part_name(longest), alone=alone, whole=whole)
        yield words.given(unit=problem.unit)


def _part_name(part: PartTime) -> Message:
    full = clean(kernel_name(part.name))
    name = verbatim(full if len(full) <= _NAME else f"{full[: _NAME - 1]}…")
    if not part.kernel and part.name in SENTENCES.names("part"):
        name = _say(f"part.{part.name}")
    return _say("measurement.times", part=name, times=part.times) if part.times > 1 else name


def _notes(
    timing: Timing, problem: base.ProblemInfo, gpu: base.GpuInfo | None
) -> Iterator[Message]:
    if timing.modes:
        yield two_speeds(timing.modes, problem.unit)
    if (other := timing.runner_up) is not None:
        words = _say("measurement.runner-up", other=other.name, percent=100 * other.ratio)
        yield words.given(baseline=timing.baseline or problem.baseline)
    if timing.device_ms is not None and timing.host_ms is not None:
        percent = 100 * timing.host_ms / (timing.device_ms + timing.host_ms)
        words = _say("measurement.host", device=timing.device_ms, host=timing.host_ms)
        yield words.given(percent=percent)
    count = _say("measurement.repetitions", count=timing.samples)
    if timing.stopped in ("certain", "budget"):
        width = 100 * TARGET_HALF_WIDTH
        count = _say(f"measurement.{timing.stopped}", count=count, width=width)
    yield count
    if few(timing.samples):
        yield _say("measurement.few")
    if timing.disturbed:
        yield _say("measurement.disturbed", count=timing.disturbed)
    if timing.watched is not None:
        yield from _watched(timing.watched)
    elif gpu is not None:
        yield _say("measurement.unwatched")


def _watched(watched: Watched) -> Iterator[Message]:
    """Yield what NVML saw while the size was timed."""
    slowed = listed(watched.slowed)
    if watched.sm_clock_mhz is not None:
        low, high = watched.sm_clock_mhz
        name = "one-clock" if low == high else "clocks"
        clocks = _say(f"measurement.{name}", low=low, high=high)
        yield _say("measurement.slowed", clocks=clocks, reasons=slowed) if slowed else clocks
    elif slowed:
        yield _say("measurement.held", reasons=slowed)
    if watched.unseen:
        yield _say("measurement.unseen", what=listed(watched.unseen))
