"""The measurement of a timed case in words, the same in the terminal and on the page."""

from __future__ import annotations

from grader.backends.statistics import TARGET_HALF_WIDTH, few
from grader.model import (
    CaseResult,
    GpuInfo,
    PartTime,
    ProblemInfo,
    Record,
    Result,
    Timing,
    size_text,
)
from grader.model.names import kernel_name
from grader.report.text import clean, two_speeds

_PARTS, _NAME = 6, 60  # parts of a call that are shown, and characters of a name


class Measured(Record):
    """One timed size."""

    case: CaseResult
    timing: Timing
    of_peak: float | None  # scored speed / the GPU's peak; None when the peak is not known
    notes: tuple[str, ...]  # how the measurement went


def measurements(result: Result) -> tuple[Measured, ...]:
    """The timed sizes in the order they were run."""
    gpu = result.environment.gpu
    return tuple(
        Measured(
            case=case,
            timing=case.timing,
            of_peak=_of_peak(case.timing, result.problem, gpu),
            notes=(
                *_parts(case, case.timing, result.problem),
                *_notes(case.timing, result.problem, gpu),
            ),
        )
        for case in result.cases
        if case.timing is not None
    )


def sentence(measured: Measured, problem: ProblemInfo, gpu: GpuInfo | None) -> str:
    """``8192×8192×8192: 0.6320 of cublasSgemm (0.6311–0.6329), 48.7 % of the FP32 peak, …``."""
    case, timing = measured.case, measured.timing
    low, high = timing.ratio_ci
    parts = [f"{timing.ratio:.4f} of {timing.baseline or problem.baseline} ({low:.4f}–{high:.4f})"]
    if measured.of_peak is not None and gpu is not None:
        peak = f"{problem.peak(gpu):.1f} {problem.unit}"
        if problem.counts == "operations":
            peak += f" at {gpu.sm_clock_mhz} MHz"
        parts.append(f"{100 * measured.of_peak:.1f} % of {peak_name(problem)} ({peak})")
    return f"{size_text(case.size)}: " + "; ".join([*parts, *measured.notes])


def _host_part(device_ms: float, host_ms: float) -> str:
    return (
        f"kernels and copies {device_ms:.4g} ms, allocating, freeing and waiting {host_ms:.4g} ms "
        f"on top ({100 * host_ms / (device_ms + host_ms):.0f} %)"
    )


def peak_name(problem: ProblemInfo) -> str:
    if problem.counts == "bytes":
        return "the memory's bandwidth"
    return "the FP32 peak" if problem.arithmetic == "f32" else "the tensor cores' peak"


def _of_peak(timing: Timing, problem: ProblemInfo, gpu: GpuInfo | None) -> float | None:
    peak = problem.peak(gpu) if gpu else None
    return timing.scored_speed / peak if peak else None


def _parts(case: CaseResult, timing: Timing, problem: ProblemInfo) -> list[str]:
    """Each part's share of a call, and the speed of its longest kernel without the others."""
    whole = sum(part.ms for part in timing.parts)
    if not whole > 0:
        return []
    shares = [
        f"{_part_name(part)} {part.ms:.4g} ms ({100 * part.ms / whole:.1f} %)"
        for part in timing.parts[:_PARTS]
    ]
    more = [f"{len(timing.parts) - _PARTS} more"] if len(timing.parts) > _PARTS else []
    notes = [f"one call: {', '.join([*shares, *more])}"]
    kernels = [part for part in timing.parts if part.kernel]
    longest = max(kernels, key=lambda part: part.ms, default=None)
    if longest is not None and len(timing.parts) > 1 and longest.ms > 0:
        alone = problem.speed(case.amount, longest.ms)
        notes.append(
            f"{_part_name(longest)} alone: {alone:.4g} {problem.unit}; "
            f"the whole call: {timing.scored_speed:.4g}"
        )
    return notes


def _part_name(part: PartTime) -> str:
    name = clean(kernel_name(part.name))
    name = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
    return f"{name} ×{part.times}" if part.times > 1 else name


def _notes(timing: Timing, problem: ProblemInfo, gpu: GpuInfo | None) -> list[str]:
    count = f"{timing.samples} repetitions"
    why = {
        "certain": f"{count}, until the ratio was known to {100 * TARGET_HALF_WIDTH:g} %",
        "budget": f"{count}, until the time was used up",
    }
    notes = [two_speeds(timing.modes, problem.unit)] if timing.modes else []
    if timing.device_ms is not None and timing.host_ms is not None:
        notes.append(_host_part(timing.device_ms, timing.host_ms))
    notes.append(why.get(timing.stopped or "", count))
    if few(timing.samples):
        notes.append("few samples: the interval is their range and covers less than 95 %")
    if timing.disturbed:
        notes.append(f"{timing.disturbed} more were dropped: the GPU was disturbed")
    if timing.watched is None:
        if gpu is not None:
            notes.append("clocks and other processes were not watched: NVML is missing")
        return notes
    slowed = ", ".join(timing.watched.slowed)
    if timing.watched.sm_clock_mhz is not None:
        low, high = timing.watched.sm_clock_mhz
        clocks = f"{low} MHz" if low == high else f"{low} to {high} MHz"
        notes.append(f"SM clock {clocks}" + (f", held down by: {slowed}" if slowed else ""))
    elif slowed:
        notes.append(f"clock held down by: {slowed}")
    if timing.watched.unseen:
        notes.append(f"not watched, as NVML does not tell: {', '.join(timing.watched.unseen)}")
    return notes
