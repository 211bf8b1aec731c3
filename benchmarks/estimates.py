"""Bounds and estimates against the clock, for the kernels of ``benchmarks.bound_corpus``.

    python -m benchmarks.estimates measure FILE   build, count and time them on a GPU machine; FILE
                                                  keeps times, counts and machine code (JSON, gzip)
    python -m benchmarks.estimates report FILE    what today's model says of them; needs no GPU
    python -m benchmarks.estimates fit FILE…      the estimate's constants by the half "fit" of
                                                  FILEs, as grader/model/calibration.json has them
    python -m benchmarks.estimates prepare FILE   as ``measure`` for an H200, without the times

``--families sgemm,hgemm``, ``--names REGEX`` and ``--half test`` choose kernels, ``--sizes 1`` the
first size of each family, ``--folder DIR`` kernels of others instead of ours. ``report --flat OUT``
writes a line of JSON for every kernel and size with all that the model starts from. A kernel whose
launch would take longer than a second is left out, and one that cannot be built or counted is
named.

Times are medians of launches with a cold L2, as a grade takes them. Results are not checked here:
``tests/model/test_explain.py`` grades every pattern in the simulator, others test the rungs.
"""

from __future__ import annotations

import argparse
import gzip
import multiprocessing
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.bound_corpus import FAMILIES, SIZES, Source, sources
from benchmarks.estimate_errors import (
    Explained,
    Kernel,
    Raw,
    Run,
    explained,
    explained_run,
    fitted,
    processes,
    report,
)
from benchmarks.measure import machine
from grader.base import GraderError, gpus
from grader.judge.program import prepare
from grader.labs.submission import load_submission
from grader.model.bound import host_copies
from grader.problems import Operand
from grader.problems.inputs import fresh_key
from grader.run import CpuDevice, quietly
from grader.run.probe import first_gpu_arch, gpu_names
from ptxsim.plan import Plan, Record

if TYPE_CHECKING:  # needs CuPy
    from grader.run.gpu.session import GpuSession
    from grader.run.gpu.watch import Nvml

LONGEST = 1.0  # seconds of one launch by the estimate
LAUNCHES = 7
WARM_UP = 12  # launches before these: the first five of a short kernel took up to 8 us longer
MOST_SECONDS = 0.4  # of all launches of one kernel and size
MOST_SILENT = 60.0  # seconds for all sizes of one kernel, and a CUDA context


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
    options.add_argument("--folder", type=Path)
    options.add_argument("--half", choices=("fit", "test"))
    options.add_argument("--flat", type=Path)
    given = options.parse_args()
    if given.what in ("measure", "prepare"):
        chosen = [
            each
            for family in given.families.split(",")
            for each in sources(family, given.folder)
            if re.search(given.names, each.name)
        ]
        raw = measured(chosen, given.sizes, on_gpu=given.what == "measure")
        given.files[0].write_bytes(gzip.compress(msgspec.json.encode(raw)))
    found: list[tuple[gpus.Gpu, list[Explained]]] = []
    for file in given.files:
        raw = msgspec.json.decode(gzip.decompress(file.read_bytes()), type=Raw)
        shown = [
            each
            for each in raw.kernels
            if each.family in given.families.split(",")
            and re.search(given.names, each.name)
            and given.half in (None, each.half)
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


def prepared(source: Source, *, folder: Path, sizes: int, arch: str, gpu: gpus.Gpu) -> Job | str:
    """Built, recorded and counted at the first sizes of its family; or why it cannot be."""
    context = source.context()
    problem, limits = context.lab.problem, context.lab.limits
    try:
        submission = load_submission(source.write(folder), problem.interface.main)
        given = source.sizes(context)[:sizes]
        program = prepare(submission, given, context, context.lab.arch_on(arch))
        with CpuDevice(context.sandbox, limits, context.lab.problem_ref) as simulator:
            runs = tuple(
                Run(
                    work=problem.at(plan.size),
                    samples=simulator.sample(program.built, program.root, plan, quietly),
                    copies=host_copies(plan),
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
    """The kernels with the times of their runs. What breaks or hangs the process that times them
    has none; another process goes on."""
    timer: Timer | None = None
    for job in jobs:
        timer = timer or Timer()
        kernel = timer.time(job)
        if kernel is None:
            print(f"failed: {job.kernel.family} {job.kernel.name}", flush=True)
            timer = None
        yield kernel or msgspec.structs.replace(job.kernel, runs=())


class Timer:
    """A process with a CUDA context."""

    def __init__(self) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawning.Pipe()
        self._process = spawning.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def time(self, job: Job) -> Kernel | None:
        """None if the process is of no more use."""
        try:
            self._pipe.send(job)
            found: Kernel | None = self._pipe.recv() if self._pipe.poll(MOST_SILENT) else None
        except (EOFError, OSError):
            found = None
        if found is None:
            self._process.kill()
        return found


def _serve(pipe: Connection) -> None:
    from grader.problems.gemm.gemm import Gemm
    from grader.run.gpu.session import GpuSession, LoadedAhead

    loaded = LoadedAhead(Gemm())  # the problem matters for baselines alone
    session = GpuSession(loaded)
    while True:
        pipe.send(_timed(session, loaded.nvml, pipe.recv()))


def _timed(session: GpuSession, nvml: Nvml, job: Job) -> Kernel | None:
    runs = []
    for index, run in enumerate(job.kernel.runs):
        if (seconds := job.seconds[index]) is None or seconds > LONGEST:
            print(f"not timed: {job.kernel.name} {run.work.size}", flush=True)
            continue
        try:
            with session.stream:
                runs.append(timed_run(session, nvml, job, index))
        except Exception as failure:  # of this kernel; CUDA's and CuPy's have no common base
            print(f"failed: {job.kernel.name} {run.work.size}: {failure}", flush=True)
            return None
    return msgspec.structs.replace(job.kernel, runs=tuple(runs))


def timed_run(session: GpuSession, nvml: Nvml, job: Job, index: int) -> Run:
    """The run with the last of its times; the first counts only if it is the only one."""
    from grader.run.gpu.plan_replay import Replay, load_module

    plan = job.plans[index]
    with session.arena.memory(plan) as memory:
        for operand, buffer in zip(job.operands[index], memory.given(plan), strict=False):
            if operand.given:
                session.kernels.fill(
                    buffer.array(operand), fresh_key(), operand.values, operand.element
                )
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


if __name__ == "__main__":
    main()
