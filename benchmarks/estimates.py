"""Bounds and estimates against the clock, for the kernels of ``benchmarks.bound_corpus``.

    python -m benchmarks.estimates measure FILE   build, count and time them on a GPU machine; FILE
                                                  keeps times, counts and machine code (JSON, gzip)
    python -m benchmarks.estimates report FILE    what today's model says of them; needs no GPU
    python -m benchmarks.estimates fit FILE…      the estimate's constants by the half "fit" of
                                                  FILEs, as grader/explain/calibration.json has them
    python -m benchmarks.estimates prepare FILE   as ``measure`` for an H200, without the times

``--families sgemm,hgemm`` and ``--names REGEX`` choose kernels, ``--sizes 1`` the first size of
each family. ``report --flat OUT`` writes a line of JSON for every kernel and size with all that the
model starts from. A kernel whose launch would take longer than a second is left out, and one that
cannot be built or counted is named.

Times are medians of launches with a cold L2, as a grade takes them. Results are not checked here:
``tests/explain/test_explain.py`` grades every pattern in the simulator, others test the rungs.
"""

from __future__ import annotations

import argparse
import gzip
import multiprocessing
import os
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from benchmarks.bound_corpus import FAMILIES, SIZES, Half, Source, sources
from benchmarks.measure import machine, table
from grader.base import Bound, Gpu, GraderError, KernelCounts, KernelInfo, gpus
from grader.explain.bound import Demand, _seconds, _wave, bound, estimated
from grader.explain.calibration import FITTED, Calibration
from grader.explain.issue_model import waited
from grader.explain.join import count, factors, unfounded
from grader.explain.loop_steps import MainLoop, main_loop_steps
from grader.explain.sass import SassFunction
from grader.judge.program import prepare
from grader.labs.submission import load_submission
from grader.problems import Operand, Work
from grader.problems.inputs import fresh_key
from grader.run import CpuDevice, quietly
from grader.run.probe import first_gpu_arch, gpu_names
from ptxsim.records import Plan, Record
from ptxsim.sampling import LaunchSample

if TYPE_CHECKING:  # needs CuPy
    from grader.run.gpu.session import GpuSession
    from grader.run.gpu.watch import Nvml

LONGEST = 1.0  # seconds of one launch by the estimate
LAUNCHES = 7
WARM_UP = 12  # launches before these: the first five of a short kernel took up to 8 us longer
MOST_SECONDS = 0.4  # of all launches of one kernel and size
NEAR = 0.15
WORST = 12


class Run(Record):
    """One kernel at one size."""

    work: Work
    samples: tuple[LaunchSample, ...]
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
    gpu: Gpu
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
    launches: tuple[Demand, ...]


class Job(Record):
    """One kernel, ready to be timed."""

    kernel: Kernel
    cubin: bytes
    plans: tuple[Plan, ...]
    operands: tuple[tuple[Operand, ...], ...]
    seconds: tuple[float | None, ...]  # of one launch by the estimate; None: there is none


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("what", choices=("measure", "report", "fit", "prepare"))
    options.add_argument("files", type=Path, nargs="+", metavar="FILE")
    options.add_argument("--families", default=",".join(FAMILIES))
    options.add_argument("--names", default="")
    options.add_argument("--sizes", type=int, default=max(map(len, SIZES.values())))
    options.add_argument("--flat", type=Path)
    given = options.parse_args()
    if given.what in ("measure", "prepare"):
        chosen = [
            each
            for family in given.families.split(",")
            for each in sources(family)
            if re.search(given.names, each.name)
        ]
        raw = measured(chosen, given.sizes, on_gpu=given.what == "measure")
        given.files[0].write_bytes(gzip.compress(msgspec.json.encode(raw)))
    found: list[tuple[Gpu, list[Explained]]] = []
    for file in given.files:
        raw = msgspec.json.decode(gzip.decompress(file.read_bytes()), type=Raw)
        shown = [
            each
            for each in raw.kernels
            if each.family in given.families.split(",") and re.search(given.names, each.name)
        ]
        found.append((raw.gpu, explained(shown, raw.gpu)))
        if given.what != "fit":
            print(raw.where)
            report(found[-1][1])
    if given.what == "fit":
        print(msgspec.json.format(msgspec.json.encode(fitted(found))).decode())
    if given.flat:
        lines = (msgspec.json.encode(each) + b"\n" for _, rows in found for each in rows)
        given.flat.write_bytes(b"".join(lines))


# --- measuring ---------------------------------------------------------------------------------


def measured(chosen: Sequence[Source], sizes: int, *, on_gpu: bool) -> Raw:
    """Build and count in parallel, then time one after the other."""
    name = gpu_names()[0] if on_gpu else "H200"
    arch = first_gpu_arch() if on_gpu else "sm_90"
    gpu = gpus.find(name)
    if gpu is None or arch is None:
        raise SystemExit("no known GPU here")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="estimates-") as scratch:
        ready = partial(prepared, folder=Path(scratch), sizes=sizes, arch=arch, gpu=gpu)
        jobs = [job for job in in_parallel(ready, chosen) if not isinstance(job, str)]
    print(f"{len(jobs)} of {len(chosen)} built, {time.monotonic() - started:.0f} s", flush=True)
    kernels = tuple(timed(jobs)) if on_gpu else tuple(job.kernel for job in jobs)
    print(f"all done, {time.monotonic() - started:.0f} s", flush=True)
    return Raw(where=f"{name}, {machine()}", gpu=gpu, kernels=kernels)


def in_parallel(work: Callable[[Source], Job | str], over: Sequence[Source]) -> Iterator[Job | str]:
    with processes() as pool:
        for source, found in zip(over, pool.map(work, over), strict=True):
            if isinstance(found, str):
                print(f"left out: {source.family} {source.name}: {found}", flush=True)
            yield found


def processes() -> ProcessPoolExecutor:
    # Spawned: a forked process cannot use the parent's GPU, and threads would share one lock.
    return ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn"))


def prepared(source: Source, *, folder: Path, sizes: int, arch: str, gpu: Gpu) -> Job | str:
    """Built, recorded and counted at the first sizes of its family; or why it cannot be."""
    context = source.context()
    problem, limits = context.lab.problem, context.lab.limits
    try:
        submission = load_submission(source.write(folder), problem.interface.main)
        given = SIZES[source.family][:sizes]
        program = prepare(submission, given, context, context.lab.arch_on(arch))
        with CpuDevice(context.sandbox, limits) as simulator:
            runs = tuple(
                Run(
                    work=problem.at(plan.size),
                    samples=simulator.sample(program.built, program.root, plan, quietly),
                )
                for plan in program.plans
            )
        launched = {sample.kernel for run in runs for sample in run.samples}
        functions = program.disassemble()
    except (GraderError, OSError) as failure:
        return str(failure).partition("\n")[0]
    except Exception as fault:  # of ours; the other kernels are worth measuring
        return repr(fault)
    kernel = Kernel(
        name=source.name,
        family=source.family,
        half=source.half,
        kernels=program.built.info.kernels,
        functions=tuple(each for each in functions if each.name in launched),
        runs=runs,
    )
    return Job(
        kernel=kernel,
        cubin=program.built.cubin.read_bytes(),
        plans=program.plans,
        operands=tuple(problem.operands(plan.size) for plan in program.plans),
        seconds=tuple(_seconds_of(explained_run(kernel, run, gpu)) for run in runs),
    )


def _seconds_of(said: Explained | None) -> float | None:
    return said.work.amount / said.work.unit.scale / said.bound.speed if said else None


def timed(jobs: Sequence[Job]) -> Iterator[Kernel]:
    """The kernels with the times of their runs."""
    from grader.problems.gemm.gemm import Gemm
    from grader.run.gpu.session import GpuSession, LoadedAhead

    loaded = LoadedAhead(Gemm())  # the problem matters for baselines alone
    session = GpuSession(loaded)
    for job in jobs:
        runs = []
        for index, run in enumerate(job.kernel.runs):
            if (seconds := job.seconds[index]) is None or seconds > LONGEST:
                print(f"not timed: {job.kernel.name} {run.work.size}", flush=True)
                continue
            try:
                with session.stream:
                    run = timed_run(session, loaded.nvml, job, index)
            except Exception as failure:  # of this kernel; CUDA's and CuPy's have no common base
                print(f"failed: {job.kernel.name} {run.work.size}: {failure}", flush=True)
                continue
            runs.append(run)
        yield msgspec.structs.replace(job.kernel, runs=tuple(runs))


def timed_run(session: GpuSession, nvml: Nvml, job: Job, index: int) -> Run:
    """The run with the last of its times; the first counts only if it is the only one."""
    from grader.run.gpu.plan_replay import Replay, load_module

    plan = job.plans[index]
    with session.arena.memory(plan) as memory:
        for operand, buffer in zip(job.operands[index], memory.given(plan), strict=False):
            if operand.role == "in":
                session.kernels.fill(buffer.array(operand), fresh_key(), operand.values)
        module = load_module(job.cubin)
        replay = Replay(module, plan, memory, session.kernels, session.stream, session.caller)
        replay.set_up()
        started, times = time.monotonic(), list[float]()
        while len(times) < WARM_UP + LAUNCHES:
            times.append(session.time(replay.launch))
            if time.monotonic() - started >= MOST_SECONDS:
                break
        clock = nvml.clock_mhz()
    return msgspec.structs.replace(
        job.kernel.runs[index], milliseconds=tuple(times[1:][-LAUNCHES:] or times), clock_mhz=clock
    )


# --- the model ---------------------------------------------------------------------------------


def explained(kernels: Sequence[Kernel], gpu: Gpu) -> list[Explained]:
    """All runs of which the model says something."""
    with processes() as pool:
        found = pool.map(partial(_of_kernel, gpu=gpu), kernels, chunksize=4)
        return [each for part in found for each in part]


def _of_kernel(kernel: Kernel, gpu: Gpu) -> list[Explained]:
    found = [explained_run(kernel, run, gpu) for run in kernel.runs]
    return [each for each in found if each is not None]


def explained_run(kernel: Kernel, run: Run, gpu: Gpu) -> Explained | None:
    """What ``grader.explain`` makes of its counts today; None without counts or a bound."""
    by = factors(run.samples, run.work)
    if unfounded(run.samples, by, run.work):
        return None
    functions = {each.name: each for each in kernel.functions}
    infos = {each.name: each for each in kernel.kernels}
    pairs = [(functions[each.kernel], each) for each in run.samples]
    counts = [count(*pair, factor) for pair, factor in zip(pairs, by, strict=True)]
    loops = [main_loop_steps(*pair, factor) for pair, factor in zip(pairs, by, strict=True)]
    said = bound(counts, infos, run.work, gpu, loops)
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
        launches=tuple(
            _launched(each, infos[each.name], loop, gpu)
            for each, loop in zip(counts, loops, strict=True)
        ),
    )


def _launched(counts: KernelCounts, kernel: KernelInfo, loop: MainLoop | None, gpu: Gpu) -> Demand:
    wave = _wave(counts, kernel, gpu)
    seconds = _seconds(counts, wave, gpu)
    waits = waited(loop, wave, gpu, FITTED) if loop and wave else None
    if waits:
        seconds["waiting"] = waits[0]
    return Demand(counts=counts, wave=wave, seconds=seconds)


# --- fitting -----------------------------------------------------------------------------------

_CONSTANTS = ("block_cycles", "launch_us", "call_us", "write_cycles", "copy_cycles")
_CONSTANTS += ("atomic_cycles", "shared_atomic_cycles")
_STEPS = (1.3, 1.1, 1.03, 1.01)  # by which a constant grows or shrinks, coarse first
_CLEAR = 0.1  # error of a logarithm; larger ones count by their size alone, not its square
_INSIDE = (0.05, 0.95)  # quantiles of the spread of the half "fit": others stray further
_ELSEWHERE = 1.2  # the spread is this much wider on GPUs that nobody measured


def fitted(found: Sequence[tuple[Gpu, list[Explained]]]) -> Calibration:
    """Constants that fit the half "fit" of all kernels best, one after the other until none helps.
    Families weigh by the square root of their numbers."""
    rows = [
        (gpu, each) for gpu, part in found for each in part if each.half == "fit" and each.speed
    ]
    sizes = Counter(each.family for _, each in rows)
    weights = np.array([sizes[each.family] ** -0.5 for _, each in rows])

    def loss(constants: Calibration) -> float:
        errors = np.abs(np.log([_measured_share(*row, constants) for row in rows]))
        part = np.where(errors < _CLEAR, errors**2 / 2, _CLEAR * (errors - _CLEAR / 2))
        return float((weights * part).sum() / weights.sum())

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
    spread = {
        kind: tuple(np.quantile(shares, _INSIDE).round(2).tolist())
        for kind, shares in kinds.items()
    }
    return msgspec.structs.replace(best, spread=spread, elsewhere=_ELSEWHERE)


def _measured_share(gpu: Gpu, each: Explained, constants: Calibration) -> float:
    """Measured / estimated speed."""
    seconds = each.work.amount / each.work.unit.scale / (each.speed or 1.0)
    return float(estimated(each.launches, each.work, gpu, constants)[0] / seconds)


def _neighbours(constants: Calibration, step: float) -> Iterator[Calibration]:
    """Constants of which one is ``step`` larger or smaller. No resource exceeds its full rate."""
    for factor in (step, 1 / step):
        for name, value in constants.slower.items():
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


if __name__ == "__main__":
    main()
