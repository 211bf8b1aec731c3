"""Whether to believe a ladder that somebody measured and handed in.

None of the file is trusted: sources, sizes, samples, clocks and dates are compared with what is
here and with each other, and every figure is computed again from the repetitions.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial

import msgspec

from grader.errors import one_line
from grader.hardware import gpus
from grader.labs.lab import Lab
from grader.ladder.document import make_ladder
from grader.ladder.handed_in import HandedIn
from grader.ladder.pictures import size_name
from grader.ladder.rungs import Rung
from grader.model import (
    CaseResult,
    GpuInfo,
    LabRef,
    ProblemInfo,
    Record,
    Result,
    Size,
    Timing,
    Verdict,
)

_SLACK = 1.02  # on a bound: clocks are read while they change
_BOOST = 1.5  # a driver's highest clock / the data sheet's boost clock, at most
_LEAST_MS = 1e-6  # no launch is shorter
_SAME = 1e-6  # relative: computed again from the same repetitions
_SECONDS = 60.0  # by which dates may differ from the time that measurements took


class Here(Record):
    """What a file is compared with."""

    rungs: tuple[Rung, ...]
    sources: Mapping[str, str]  # sha256 by rung
    lab: Lab
    grader: str  # version


def complaints(sent: HandedIn, here: Here, now: datetime) -> tuple[str, ...]:
    """One line for each reason not to believe the file; () when it is whole and plausible."""
    gpu = sent.ladder.gpu
    if gpu is None:
        return ("gpu: none; the simulator times nothing",)
    return (
        *_wrong_version(sent, here),
        *_wrong_gpu(gpu),
        *_missing(sent, here),
        *(line for result in sent.results for line in _wrong_result(result, gpu, here)),
        *_copied(sent.results),
        *_wrong_dates(sent, now),
        *_wrong_table(sent, here),
    )


def _wrong_version(sent: HandedIn, here: Here) -> Iterator[str]:
    if sent.ladder.grader != here.grader:
        yield f"grader: measured with {_word(sent.ladder.grader)}; this one is {here.grader}"
    if sent.ladder.lab != LabRef(id=here.lab.id, sha256=here.lab.sha256):
        yield f"lab: measured with another file than the lab {here.lab.id} of this grader"


def _wrong_gpu(gpu: GpuInfo) -> Iterator[str]:
    name = _word(gpu.name)
    model = gpus.find(gpu.name)
    if model is None:
        yield f"gpu: {name} is not in the table of GPUs, so that nothing is known of its peak"
        return
    capability = f"{model.capability // 10}.{model.capability % 10}"
    if gpu.compute_capability != capability:
        said = _word(gpu.compute_capability)
        yield f"gpu: {name} has compute capability {capability}, not {said}"
    if gpu.multiprocessors != model.multiprocessors:
        yield f"gpu: {name} has {model.multiprocessors} multiprocessors, not {gpu.multiprocessors}"
    if not 0.5 * model.clock_mhz <= gpu.sm_clock_mhz <= _BOOST * model.clock_mhz:
        yield f"gpu: highest clock {gpu.sm_clock_mhz} MHz; {name} boosts to {model.clock_mhz:g}"
    if not gpu.uuid.startswith("GPU-") or not gpu.driver:
        yield "gpu: uuid or driver is missing"


def _peak(problem: ProblemInfo, gpu: GpuInfo) -> float:
    """At the highest clock that the file gives; infinite where nothing is known."""
    model = gpus.find(gpu.name)
    if model is None:
        return math.inf
    lanes = model.multiprocessor.fp32_lanes * model.multiprocessors
    card = msgspec.structs.replace(
        gpu,
        fp32_peak_tflops=gpus.fp32_tflops(lanes, gpu.sm_clock_mhz),
        dram_gb_s=model.dram_gb_s,
    )
    return problem.peak(card) or 0.0


def _missing(sent: HandedIn, here: Here) -> Iterator[str]:
    names = [result.submission.student for result in sent.results]
    for rung in here.rungs:
        count = names.count(rung.name)
        if count != 1:
            yield f"{rung.name}: {'no result' if count == 0 else f'{count} results'}"
    for name in dict.fromkeys(names):
        if name not in here.sources:
            yield f"{_word(name)}: no such rung here"


# --- one result -------------------------------------------------------------------------------


def _wrong_result(result: Result, gpu: GpuInfo, here: Here) -> Iterator[str]:
    name = _word(result.submission.student)
    expected = here.sources.get(result.submission.student)
    if expected is not None and result.submission.sha256 != expected:
        yield f"{name}: measured from another source than the rung here"
    if result.lab != LabRef(id=here.lab.id, sha256=here.lab.sha256):
        yield f"{name}: graded with another lab file"
    card = result.environment.gpu
    if card is None or _model(card) != _model(gpu):
        yield f"{name}: measured on another GPU model or driver than the document names"
    if result.environment.grader != here.grader:
        yield f"{name}: graded with version {_word(result.environment.grader)} of the grader"
    late = result.verdict is Verdict.TLE and _trap(result, here)
    if result.verdict is not Verdict.AC and not late:
        yield f"{name}: {result.verdict.value}, expected AC"
    for case in here.lab.performance:
        found = [each for each in result.cases if each.size == case.size.dims]
        at = f"{name} at {size_name(case.size.dims)}"
        if not any(each.timing for each in found):
            if not late:
                yield f"{at}: not timed"
            continue
        for each in found:
            for line in _wrong_timing(each, result, gpu, here):
                yield f"{at}: {line}"


def _trap(result: Result, here: Here) -> bool:
    return any(rung.trap for rung in here.rungs if rung.name == result.submission.student)


def _model(gpu: GpuInfo) -> tuple[object, ...]:
    return gpu.name, gpu.driver, gpu.sm_clock_mhz, gpu.compute_capability, gpu.multiprocessors


def _wrong_timing(case: CaseResult, result: Result, gpu: GpuInfo, here: Here) -> Iterator[str]:
    timing = case.timing
    if timing is None:
        return
    runs = [run.repetitions for run in timing.runs]
    times = [time for run in runs for pair in run for time in pair]
    if not runs or not all(runs):
        yield "the times of its repetitions are missing"
        return
    if not all(_LEAST_MS < time < math.inf for time in times):
        yield "a repetition took no time, or less"
        return
    if sum(map(len, runs)) != timing.samples:
        yield f"{sum(map(len, runs))} repetitions, but {timing.samples} samples"
    if len(runs) != here.lab.scoring.runs:
        yield f"{len(runs)} runs, expected {here.lab.scoring.runs}"
    problem = here.lab.problem.info()
    speed = partial(problem.speed, here.lab.problem.work(Size(dims=case.size)))
    for index, run in enumerate(timing.runs, start=1):
        own = speed(statistics.median(pair[0] for pair in run.repetitions))
        base = speed(statistics.median(pair[1] for pair in run.repetitions))
        if not _same(own, run.speed) or not _same(base, run.baseline_speed):
            yield f"run {index}: its speeds are not those of its repetitions"
    ratio = statistics.median(theirs / own for run in runs for own, theirs in run)
    if not _same(ratio, timing.ratio):
        yield f"ratio {timing.ratio:.4g}, but {ratio:.4g} by its repetitions"
    peak = _peak(problem, gpu)
    for who, fastest in (
        ("", min(own for run in runs for own, _ in run)),
        (f"{problem.baseline}: ", min(theirs for run in runs for _, theirs in run)),
    ):
        if not speed(fastest) <= peak * _SLACK:
            reached = f"{speed(fastest):.4g} {problem.unit}"
            yield f"{who}{reached}, above the peak of {peak:.4g}"
    for bound in result.explanation.bounds if result.explanation else ():
        most = bound.most.speed if bound.most and bound.size == case.size else math.inf
        reach = speed(min(own for run in runs for own, _ in run))
        if not reach <= most * _SLACK:
            yield f"{reach:.4g} {problem.unit}, above its bound of {most:.4g}"
    yield from _wrong_clock(timing, gpu)


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_SAME)


def _wrong_clock(timing: Timing, gpu: GpuInfo) -> Iterator[str]:
    clocks = timing.watched.sm_clock_mhz if timing.watched else None
    if clocks and not 0 < clocks[0] <= clocks[1] <= gpu.sm_clock_mhz * _SLACK:
        yield f"clock from {clocks[0]} to {clocks[1]} MHz; the GPU's highest is {gpu.sm_clock_mhz}"


# --- results beside each other ----------------------------------------------------------------


def _copied(results: Sequence[Result]) -> Iterator[str]:
    """The same times to the last digit do not happen twice."""
    seen: dict[object, str] = {}
    for result in results:
        for case in result.cases:
            if case.timing is None or case.timing.samples < 2:
                continue
            times = tuple(run.repetitions for run in case.timing.runs)
            at = f"{_word(result.submission.student)} at {size_name(case.size)}"
            if any(times) and seen.setdefault(times, at) != at:
                yield f"{at}: the same repetitions as {seen[times]}"


def _wrong_dates(sent: HandedIn, now: datetime) -> Iterator[str]:
    dated: dict[str, list[tuple[datetime, float]]] = {}
    for result in sent.results:
        name = _word(result.submission.student)
        moment = _moment(result.created)
        if moment is None:
            yield f"{name}: {_word(result.created)} is no date of a measurement"
            continue
        if moment > now + timedelta(days=1):
            yield f"{name}: graded on {moment:%Y-%m-%d}, in the future"
        card = result.environment.gpu
        dated.setdefault(card.uuid if card else "", []).append((moment, _measuring(result)))
    for results in dated.values():
        results.sort()
        took = sum(seconds for _, seconds in results[1:])
        passed = (results[-1][0] - results[0][0]).total_seconds()
        if not passed + _SECONDS >= took:
            yield f"dates: {took:.0f} s of measurements within {passed:.0f} s on one GPU"
    newest = max((result.created for result in sent.results), default="")
    if sent.ladder.created != newest:
        yield "dates: the document is not as old as its newest result"


def _moment(created: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(created)
    except ValueError:
        return None
    if not 2020 <= moment.year < 9999:  # beyond, dates cannot be compared
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _measuring(result: Result) -> float:
    """Seconds of all repetitions."""
    timings = [case.timing for case in result.cases if case.timing]
    runs = [run.repetitions for timing in timings for run in timing.runs]
    return sum(time for run in runs for pair in run for time in pair) / 1000


def _wrong_table(sent: HandedIn, here: Here) -> Iterator[str]:
    """The document must be what its results make."""
    results = {result.submission.student: result for result in sent.results}
    again = make_ladder(
        here.rungs,
        results,
        sent.ladder.lab,
        here.lab.problem.info(),
        grader=sent.ladder.grader,
        host=sent.ladder.host,
        ceilings={step.rung.name: step.ceilings for step in sent.ladder.steps},
    )
    steps = {step.rung.name: step for step in sent.ladder.steps}
    for step in again.steps:
        if step.rung.name not in steps:
            yield f"{step.rung.name}: not in the document's table"
        elif msgspec.structs.replace(steps[step.rung.name], rung=step.rung) != step:
            yield f"{step.rung.name}: the document's figures are not those of its result"


def _word(text: str) -> str:
    """Of the file: in one line, and not without end."""
    return one_line(text)[:80]
