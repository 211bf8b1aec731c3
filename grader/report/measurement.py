"""The measurement of a timed case in words, the same in the terminal and on the page."""

from __future__ import annotations

from grader.backends.statistics import TARGET_HALF_WIDTH, few
from grader.model import CaseResult, GpuInfo, Record, Result, Timing
from grader.report.text import two_speeds


class Measured(Record):
    """One timed size."""

    case: CaseResult
    timing: Timing
    of_peak: float | None  # scored speed / the GPU's FP32 peak; None when the peak is not known
    notes: tuple[str, ...]  # how the measurement went


def measurements(result: Result) -> tuple[Measured, ...]:
    """The timed sizes in the order they were run."""
    gpu = result.environment.gpu
    return tuple(
        Measured(
            case=case,
            timing=case.timing,
            of_peak=_of_peak(case.timing, gpu),
            notes=tuple(_notes(case.timing, gpu)),
        )
        for case in result.cases
        if case.timing is not None
    )


def sentence(measured: Measured, gpu: GpuInfo | None) -> str:
    """``8192×8192×8192: 0.6320 of cublasSgemm (0.6311–0.6329), 48.7 % of the FP32 peak, …``."""
    case, timing = measured.case, measured.timing
    low, high = timing.ratio_ci
    parts = [f"{timing.ratio:.4f} of {timing.baseline or 'cuBLAS'} ({low:.4f}–{high:.4f})"]
    if measured.of_peak is not None and gpu is not None:
        peak = f"{gpu.fp32_peak_tflops:.1f} TFLOPS at {gpu.sm_clock_mhz} MHz"
        parts.append(f"{100 * measured.of_peak:.1f} % of the FP32 peak ({peak})")
    return f"{case.m}×{case.n}×{case.k}: " + "; ".join([*parts, *measured.notes])


def _host_part(device_ms: float, host_ms: float, ratio: float) -> str:
    """What allocating, freeing and waiting cost in each call, and what would be left without."""
    both = device_ms + host_ms
    return (
        f"kernels and copies {device_ms:.4g} ms, allocating, freeing and waiting {host_ms:.4g} ms "
        f"on top ({100 * host_ms / both:.0f} %): with memory that is kept between calls the ratio "
        f"would be about {ratio * both / device_ms:.2f}"
    )


def _of_peak(timing: Timing, gpu: GpuInfo | None) -> float | None:
    if gpu is None or not gpu.fp32_peak_tflops:
        return None
    return timing.scored_tflops / gpu.fp32_peak_tflops


def _notes(timing: Timing, gpu: GpuInfo | None) -> list[str]:
    count = f"{timing.samples} repetitions"
    why = {
        "certain": f"{count}, until the ratio was known to {100 * TARGET_HALF_WIDTH:g} %",
        "budget": f"{count}, until the time was used up",
    }
    notes = [two_speeds(timing.modes)] if timing.modes else []
    if timing.device_ms is not None and timing.host_ms is not None:
        notes.append(_host_part(timing.device_ms, timing.host_ms, timing.ratio))
    notes.append(why.get(timing.stopped or "", count))
    if few(timing.samples):
        notes.append("few samples: the interval is their range and covers less than 95 %")
    if timing.disturbed:
        notes.append(f"{timing.disturbed} more were dropped: the GPU was disturbed")
    if timing.watched is None:
        if gpu is not None:
            notes.append("clocks and other processes were not watched: NVML is missing")
        return notes
    low, high = timing.watched.sm_clock_mhz
    clocks = f"{low} MHz" if low == high else f"{low} to {high} MHz"
    slowed = ", ".join(timing.watched.slowed)
    notes.append(f"SM clock {clocks}" + (f", held down by: {slowed}" if slowed else ""))
    return notes
