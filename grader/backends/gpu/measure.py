"""One size on the GPU: verified once, or timed against a baseline with every output verified.

The submission always runs on new inputs. No part of their result exists before its launch has
ended, and their keys are drawn just before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import msgspec

from grader.backends.gpu.bench import SharedBench
from grader.backends.gpu.diary import Diary
from grader.backends.gpu.gpu_messages import GpuJob, Measured, Taken
from grader.backends.gpu.host_check import measured
from grader.backends.gpu.measured_case import MeasuredCase
from grader.backends.statistics import Clocked, Pair, settled, summarise
from grader.hardware.peaks import least_ms


def verify_case(
    bench: SharedBench, case: MeasuredCase, beat: Callable[[], None] = lambda: None
) -> Measured:
    """One launch on fresh inputs, compared with the reference."""
    started = time.monotonic()
    setting_up, wrong = case.set_up()
    beat()
    if wrong is not None:
        return measured(msgspec.structs.replace(wrong, untimed_ms=setting_up), case.first, [])
    keys = case.fresh()
    took = bench.time(case.launch)
    taken = case.sample(keys)
    case.reference()
    bench.stream.synchronize()
    outcome = case.check(keys, time.monotonic() - started)
    if not outcome.findings:  # changed inputs say nothing about the reference
        case.prove_reference()
    outcome = msgspec.structs.replace(outcome, untimed_ms=max(setting_up, took))
    return measured(outcome, case.first, [taken])


def time_case(
    bench: SharedBench, case: MeasuredCase, job: GpuJob, beat: Callable[[], None]
) -> Measured:
    """Runs of interleaved repetitions; the output of every one is compared in full, and elements of
    it are taken for the host.

    ``beat`` is called after everything that launched the submission. Raises MachineError when the
    GPU was shared or slowed for too many repetitions.
    """
    started = time.monotonic()
    setting_up, refused = case.set_up()
    beat()
    if refused is not None:
        return measured(refused, case.first, [])
    name, baseline = case.baseline()
    case.fresh()
    warm_up = max(setting_up, bench.time(case.launch))  # module loading, instruction caches
    beat()
    charged = job.host_calls == "charged"
    least = least_ms(*bench.problem.least(case.size), bench.gpu, bench.problem.arithmetic)
    runs: list[list[Pair]] = []
    diary = Diary()
    clocks: list[tuple[Clocked, Clocked]] = []  # submission and baseline
    taken: list[Taken] = []
    turn = 0
    for _ in range(job.runs):
        run: list[Pair] = []
        runs.append(run)
        deadline = time.monotonic() + job.run_seconds
        while not run or (time.monotonic() < deadline and not settled(runs)):
            keys = case.fresh()
            if turn % 2:
                theirs = bench.clocked(baseline)
                # The baseline leaves parts of its result in shared memory, registers and
                # workspaces. They must not belong to what the submission must compute now.
                keys = case.fresh()
                mine = case.timed(charged)
                taken.append(case.sample(keys))
                case.refer_beside(baseline, launched=False)
            else:
                mine = case.timed(charged)
                taken.append(case.sample(keys))
                theirs = bench.clocked(baseline)
                case.refer_beside(baseline, launched=True)
            clocks.append((mine, theirs))
            sight = bench.watch.look()
            beat()
            outcome = case.check(keys, time.monotonic() - started)
            if turn == 0 and not outcome.findings:
                case.prove_reference()
            turn += 1
            wrong = outcome.error is None or outcome.error.wrong
            if wrong or outcome.findings:
                return measured(outcome, case.first, taken)
            if not (mine.gpu_ms >= least):  # stop measuring; the judge rules on it
                outcome = msgspec.structs.replace(outcome, clocks=tuple(clocks))
                return measured(outcome, case.first, [])
            if diary.accepts(sight):
                run.append(Pair(bench_ms=mine.gpu_ms, baseline_ms=theirs.gpu_ms))
    timing = summarise(
        runs,
        partial(bench.problem.speed, case.size),
        name,
        disturbed=diary.disturbed,
        watched=diary.seen(),
        device_ms=case.device_ms() if charged else None,
    )
    timing = msgspec.structs.replace(timing, parts=case.parts(beat))
    outcome = msgspec.structs.replace(
        outcome,
        timing=timing,
        untimed_ms=warm_up,
        clocks=tuple(clocks),
        seconds=time.monotonic() - started,
    )
    return measured(outcome, case.first, taken)
