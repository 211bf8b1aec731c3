"""The measurement of a timed case in words, the same in the terminal and on the page."""

from __future__ import annotations

from collections.abc import Iterator

from grader import base
from grader.report.formatting import clean, two_speeds
from grader.run import TARGET_HALF_WIDTH, few
from ptxsim.findings.names import kernel_name
from ptxsim.message import Message, clauses, counted, listed, phrase, verbatim
from ptxsim.records import Record

_PARTS, _NAME = 6, 60  # parts of a call that are shown, and characters of a name


class Measurement(Record):
    """One timed size."""

    case: base.CaseResult
    timing: base.Timing
    of_peak: float | None  # scored speed / the GPU's peak; None when the peak is not known
    notes: tuple[Message, ...]  # how the measurement went


def measurements(result: base.Result) -> tuple[Measurement, ...]:
    """The timed sizes in the order they were run."""
    problem, gpu = result.problem, result.environment.gpu
    peak = problem.peak(gpu) if gpu else None
    return tuple(
        Measurement(
            case=case,
            timing=case.timing,
            of_peak=case.timing.scored_speed / peak if peak else None,
            notes=(*_parts(case, case.timing, problem), *_notes(case.timing, problem, gpu)),
        )
        for case in result.cases
        if case.timing is not None
    )


def sentence(measured: Measurement, problem: base.ProblemInfo, gpu: base.GpuInfo | None) -> Message:
    """``8192×8192×8192: 0.6320 of cublasSgemm (0.6311–0.6329), 48.7 % of the FP32 peak, …``."""
    case, timing = measured.case, measured.timing
    low, high = timing.ratio_ci
    parts = [
        phrase(
            "{ratio:.4f} of {baseline} ({low:.4f}–{high:.4f})",
            ratio=timing.ratio,
            baseline=timing.baseline or problem.baseline,
            low=low,
            high=high,
        )
    ]
    if measured.of_peak is not None and gpu is not None:
        peak = phrase("{speed:.1f} {unit}", speed=problem.peak(gpu) or 0.0, unit=problem.unit)
        if problem.counts == "operations":
            peak = phrase("{peak} at {clock} MHz", peak=peak, clock=gpu.sm_clock_mhz)
        parts.append(
            phrase(
                "{percent:.1f} % of {name} ({peak})",
                percent=100 * measured.of_peak,
                name=peak_name(problem),
                peak=peak,
            )
        )
    return phrase(
        "{size}: {what}", size=base.size_text(case.size), what=clauses([*parts, *measured.notes])
    )


def peak_name(problem: base.ProblemInfo) -> Message:
    if problem.counts == "bytes":
        return phrase("the memory's bandwidth")
    if problem.arithmetic == "f32":
        return phrase("the FP32 peak")
    return phrase("the tensor cores' peak")


def _parts(case: base.CaseResult, timing: base.Timing, problem: base.ProblemInfo) -> list[Message]:
    """Each part's share of a call, and the speed of its longest kernel without the others."""
    whole = sum(part.ms for part in timing.parts)
    if not whole > 0:
        return []
    shares = [
        phrase(
            "{part} {ms:.4g} ms ({percent:.1f} %)",
            part=_part_name(part),
            ms=part.ms,
            percent=100 * part.ms / whole,
        )
        for part in timing.parts[:_PARTS]
    ]
    if len(timing.parts) > _PARTS:
        shares.append(phrase("{count} more", count=len(timing.parts) - _PARTS))
    notes = [phrase("one call: {shares}", shares=listed(shares))]
    kernels = (part for part in timing.parts if part.kernel)
    longest = max(kernels, key=lambda part: part.ms, default=None)
    if longest is not None and len(timing.parts) > 1 and longest.ms > 0:
        notes.append(
            phrase(
                "{part} alone: {alone:.4g} {unit}; the whole call: {whole:.4g}",
                part=_part_name(longest),
                alone=problem.speed(case.amount, longest.ms),
                unit=problem.unit,
                whole=timing.scored_speed,
            )
        )
    return notes


_OTHER_PARTS = {
    "memset": phrase("memset"),
    "copy": phrase("copy"),
    "host calls": phrase("host calls"),
}


def _part_name(part: base.PartTime) -> Message:
    full = clean(kernel_name(part.name))
    name = verbatim(full if len(full) <= _NAME else f"{full[: _NAME - 1]}…")
    if not part.kernel:
        name = _OTHER_PARTS.get(part.name, name)
    return phrase("{part} ×{times}", part=name, times=part.times) if part.times > 1 else name


def _notes(
    timing: base.Timing, problem: base.ProblemInfo, gpu: base.GpuInfo | None
) -> list[Message]:
    notes = [two_speeds(timing.modes, problem.unit)] if timing.modes else []
    if timing.runner_up is not None:
        notes.append(
            phrase(
                "{other} had {percent:.1f} % of {baseline}'s speed",
                other=timing.runner_up.name,
                percent=100 * timing.runner_up.ratio,
                baseline=timing.baseline or problem.baseline,
            )
        )
    if timing.device_ms is not None and timing.host_ms is not None:
        notes.append(
            phrase(
                "kernels and copies {device:.4g} ms, allocating, freeing and waiting {host:.4g} ms "
                "on top ({percent:.0f} %)",
                device=timing.device_ms,
                host=timing.host_ms,
                percent=100 * timing.host_ms / (timing.device_ms + timing.host_ms),
            )
        )
    count = counted("{count} repetition", "{count} repetitions", timing.samples)
    if timing.stopped == "certain":
        width = 100 * TARGET_HALF_WIDTH
        count = phrase(
            "{count}, until the ratio was known to {width:g} %", count=count, width=width
        )
    elif timing.stopped == "budget":
        count = phrase("{count}, until the time was used up", count=count)
    notes.append(count)
    if few(timing.samples):
        notes.append(phrase("few samples: the interval is their range and covers less than 95 %"))
    if timing.disturbed:
        notes.append(
            counted(
                "{count} more was dropped: the GPU was disturbed",
                "{count} more were dropped: the GPU was disturbed",
                timing.disturbed,
            )
        )
    if timing.watched is not None:
        notes += _watched(timing.watched)
    elif gpu is not None:
        notes.append(phrase("clocks and other processes were not watched: NVML is missing"))
    return notes


def _watched(watched: base.Watched) -> Iterator[Message]:
    """Yield what NVML saw while the size was timed."""
    slowed = listed(watched.slowed)
    if watched.sm_clock_mhz is not None:
        low, high = watched.sm_clock_mhz
        clocks = phrase("SM clock {low} to {high} MHz", low=low, high=high)
        if low == high:
            clocks = phrase("SM clock {low} MHz", low=low)
        if slowed:
            clocks = phrase("{clocks}, held down by: {reasons}", clocks=clocks, reasons=slowed)
        yield clocks
    elif slowed:
        yield phrase("clock held down by: {reasons}", reasons=slowed)
    if watched.unseen:
        unseen = listed(watched.unseen)
        yield phrase("not watched, as NVML does not tell: {what}", what=unseen)
