"""What the model says of measured kernels, how far it is off, and the constants that fit them best.

``python -m benchmarks.estimates`` measures them and prints it.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import msgspec
import numpy as np

from benchmarks.bound_corpus import FAMILIES, Half
from benchmarks.measure import table
from grader.base import KernelInfo, gpus
from grader.build.sass import SassFunction
from grader.model import Bound, KernelCounts
from grader.model.bound import Demand, _seconds, _wave, bound, estimated
from grader.model.calibration import FITTED, Calibration
from grader.model.issue_model import waited
from grader.model.join import count, factors, unfounded, unshared
from grader.model.loop_steps import MainLoop, main_loop_steps
from grader.model.records import NO_COPIES, HostCopies
from grader.problems import Work
from ptxsim.findings import LaunchSample
from ptxsim.plan import Record

NEAR = 0.15
WORST = 12


class Run(Record):
    """One kernel at one size."""

    work: Work
    samples: tuple[LaunchSample, ...]
    copies: HostCopies = NO_COPIES
    milliseconds: tuple[float, ...] = ()  # of launches, without the first; () before it is timed
    clock_mhz: int | None = None  # right after them

    @property
    def speed(self) -> float:
        """Measured, in the problem's unit."""
        return self.work.speed(statistics.median(self.milliseconds) / 1e3)


class Kernel(Record):
    """What the model needs of a kernel. All of it was made on the machine that timed it."""

    name: str
    family: str
    half: Half
    kernels: tuple[KernelInfo, ...]
    functions: tuple[SassFunction, ...]  # those that are launched
    runs: tuple[Run, ...]


class Raw(Record):
    where: str
    gpu: gpus.Gpu
    kernels: tuple[Kernel, ...]


class Explained(Record):
    """One kernel at one size."""

    name: str
    family: str
    half: Half
    work: Work
    speed: float | None  # measured
    clock_mhz: int | None
    bound: Bound
    copies: HostCopies
    launches: tuple[Demand, ...]


def processes() -> ProcessPoolExecutor:
    # Spawned: a forked process cannot use the parent's GPU, and threads would share one lock.
    return ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn"))


# --- the model ---------------------------------------------------------------------------------


def explained(kernels: Sequence[Kernel], gpu: gpus.Gpu) -> list[Explained]:
    """All runs of which the model says something."""
    with processes() as pool:
        found = pool.map(partial(_of_kernel, gpu=gpu), kernels, chunksize=4)
        return [each for part in found for each in part]


def _of_kernel(kernel: Kernel, gpu: gpus.Gpu) -> list[Explained]:
    found = [explained_run(kernel, run, gpu) for run in kernel.runs]
    return [each for each in found if each is not None]


def explained_run(kernel: Kernel, run: Run, gpu: gpus.Gpu) -> Explained | None:
    """What ``grader.model`` makes of its counts today; None without counts or a bound."""
    by = factors(run.samples, run.work)
    functions = {each.name: each for each in kernel.functions}
    infos = {each.name: each for each in kernel.kernels}
    pairs = [(functions[each.kernel], each) for each in run.samples]
    if unfounded(run.samples, by, run.work) or unshared(pairs, run.work):
        return None
    counts = [count(*pair, factor) for pair, factor in zip(pairs, by, strict=True)]
    loops = [main_loop_steps(*pair, factor) for pair, factor in zip(pairs, by, strict=True)]
    said = bound(counts, infos, run.work, gpu, loops, copies=run.copies)
    if said is None:
        return None
    return Explained(
        name=kernel.name,
        family=kernel.family,
        half=kernel.half,
        work=run.work,
        speed=run.speed if run.milliseconds else None,
        clock_mhz=run.clock_mhz,
        bound=said,
        copies=run.copies,
        launches=tuple(
            _launched(each, infos[each.name], loop, gpu)
            for each, loop in zip(counts, loops, strict=True)
        ),
    )


def _launched(
    counts: KernelCounts, kernel: KernelInfo, loop: MainLoop | None, gpu: gpus.Gpu
) -> Demand:
    wave = _wave(counts, kernel, gpu)
    seconds = _seconds(counts, wave, gpu)
    waits = waited(loop, wave, gpu, FITTED) if loop and wave else None
    if waits:
        seconds["waiting"] = waits[0]
    return Demand(counts=counts, wave=wave, seconds=seconds)


# --- fitting -----------------------------------------------------------------------------------

_CONSTANTS = ("block_cycles", "launch_us", "call_us", "write_cycles", "copy_cycles")
_CONSTANTS += (
    "atomic_cycles",
    "turn_cycles",
    "shared_atomic_cycles",
    "far_loaded",
    "scattered",
    "start_cycles",
)
_STEPS = (1.3, 1.1, 1.03, 1.01)  # by which a constant grows or shrinks, coarse first
_CLEAR = 0.1  # error of a logarithm; larger ones count by their size alone, not its square
_INSIDE = (0.05, 0.95)  # quantiles of the spread of the half "fit"
_FURTHER = 1.05  # others stray further: the constants and the model's form were chosen on that half
_ELSEWHERE = 1.2  # the spread is this much wider on GPUs that nobody measured


def fitted(found: Sequence[tuple[gpus.Gpu, list[Explained]]]) -> Calibration:
    """Constants that fit the half "fit" best, one after the other until none helps."""
    rows = [
        (gpu, each) for gpu, part in found for each in part if each.half == "fit" and each.speed
    ]

    def loss(constants: Calibration) -> float:
        errors = np.abs(np.log([_measured_share(*row, constants) for row in rows]))
        part = np.where(errors < _CLEAR, errors**2 / 2, _CLEAR * (errors - _CLEAR / 2))
        return float(part.mean())

    best = FITTED
    least = loss(best)
    for step in _STEPS:
        moved = True
        while moved:
            moved = False
            for other in _neighbours(best, step):
                if (now := loss(other)) < least * 0.9999:
                    best, least, moved = other, now, True
    kinds: dict[str, list[float]] = {}
    for gpu, each in rows:
        tensor = any(launch.counts.tensor for launch in each.launches)
        kind = "tensor cores" if tensor else each.work.unit.of
        kinds.setdefault(kind, []).append(_measured_share(gpu, each, best))
    spread = {}
    for kind, shares in kinds.items():
        low, high = np.quantile(shares, _INSIDE)
        spread[kind] = (round(float(low) / _FURTHER, 2), round(float(high) * _FURTHER, 2))
    return msgspec.structs.replace(best, spread=spread, elsewhere=_ELSEWHERE)


def _measured_share(gpu: gpus.Gpu, each: Explained, constants: Calibration) -> float:
    """Measured / estimated speed."""
    seconds = each.work.amount / each.work.unit.scale / (each.speed or 1.0)
    found = estimated(each.launches, each.work, gpu, constants, each.copies)
    return float(found[0] / seconds)


def _neighbours(constants: Calibration, step: float) -> Iterator[Calibration]:
    """Constants of which one is ``step`` larger or smaller. No resource exceeds its full rate."""
    for factor in (step, 1 / step):
        for name, value in constants.slower.items():
            if name == "L2":
                continue  # the issue model has it, too: from ``benchmarks.calibrate``
            slower = constants.slower | {name: round(max(value * factor, 1.0), 3)}
            yield msgspec.structs.replace(constants, slower=slower)
        for name in _CONSTANTS:
            value = round(getattr(constants, name) * factor, 3)
            yield msgspec.structs.replace(constants, **{name: value})


# --- reporting ---------------------------------------------------------------------------------


def report(rows: Sequence[Explained]) -> None:
    """Print how well the model agrees with the clock: by family, half and size; the worst."""
    groups: dict[tuple[str, str, str], list[Explained]] = {}
    for each in rows:
        if each.speed:
            for size in ("all", str(each.work.size)):
                groups.setdefault((each.family, each.half, size), []).append(each)
    heads = ["family", "half", "size", "n", "measured / estimate", f"within {NEAR:.0%}"]
    heads += ["rank by estimate", "rank by bound", "above the bound", "in the interval"]
    print(table(heads, [[*key, *_agreement(part)] for key, part in sorted(groups.items())]))
    timed_rows = [each for each in rows if each.speed]
    timed_rows.sort(key=lambda each: -abs(np.log(_share(each))))
    print(f"\nNot timed, and the {WORST} of each family that are furthest from their estimates\n")
    worst = [each for each in rows if not each.speed]
    for family in FAMILIES:
        worst += [each for each in timed_rows if each.family == family][:WORST]
    print(
        table(
            ["kernel", "half", "size", "measured", "about", "limit", "share"],
            list(map(_row, worst)),
        )
    )


def _agreement(rows: Sequence[Explained]) -> list[str]:
    clock = np.array([each.speed for each in rows])
    about = np.array([each.bound.speed for each in rows])
    most = np.array([each.bound.ceiling for each in rows])
    inside = [
        low <= speed <= high
        for speed, (low, high) in zip(clock, (each.bound.expected for each in rows), strict=True)
    ]
    share = clock / about
    return [
        str(len(rows)),
        f"{np.median(share):.3f}",
        f"{np.mean(abs(share - 1) <= NEAR):.0%}",
        *(f"{spearman(clock, other):.3f}" if len(rows) > 2 else "" for other in (about, most)),
        str(sum(clock > most)),
        f"{np.mean(inside):.0%}",
    ]


def _share(each: Explained) -> float:
    return (each.speed or 0.0) / each.bound.speed


def _row(each: Explained) -> list[str]:
    return [
        *(each.name, each.half, str(each.work.size), f"{each.speed or 0:.4g}"),
        *(f"{each.bound.speed:.4g}", each.bound.resource, f"{_share(each):.2f}"),
    ]


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Rank correlation; equal values share their mean rank."""
    ranks = [[np.sum(each < at) + np.sum(each <= at) for at in each] for each in (first, second)]
    return float(np.corrcoef(np.array(ranks))[0, 1])
