"""Replay each plan once, under a profiler: ``python -m grader.backends.gpu.once JOB``.

It starts no other process, and verifies nothing. Apart from the submission's kernels,
only those of ``checks.cu`` run, which fill the inputs, and those of the baselines if the job asks
for one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import cupy
import msgspec
from cupy.cuda import runtime

from grader.backends.gpu.calling import Caller
from grader.backends.gpu.gpu_messages import Watching, chosen_by
from grader.backends.gpu.kernels import Kernels
from grader.backends.gpu.memory import Arena, PlanMemory
from grader.backends.gpu.plan_replay import Replay, load_module
from grader.model.decoding import decode
from grader.problems.arrays_on_gpu import ArraysOnGpu
from grader.problems.catalogue import load_problem
from grader.problems.inputs import fresh_key
from grader.problems.operands import Launch

_TRIALS = 4  # of each baseline


def main() -> None:
    """JOB is a file that holds a JSON list of ``Watching``."""
    jobs = decode(Path(sys.argv[1]).read_bytes(), list[Watching])
    stream = cupy.cuda.Stream(non_blocking=True)
    kernels, arena, caller = Kernels(stream), Arena(), Caller()
    chosen: list[str] = []  # the baselines, in the order of the jobs that ask for one
    with stream:
        for job in jobs:
            with arena.memory(job.plan) as memory:
                operands = load_problem(job.problem).operands(job.plan.size)
                for operand, buffer in zip(operands, memory.given(job.plan), strict=True):
                    if operand.role == "in":
                        kernels.fill(buffer.array(operand), fresh_key(), operand.values)
                module = load_module(Path(job.cubin).read_bytes())
                replay = Replay(module, job.plan, memory, kernels, stream, caller)
                replay.set_up()
                replay.fresh()
                stream.synchronize()
                runtime.profilerStart()  # of the calls that are timed
                replay.launch()
                stream.synchronize()
                runtime.profilerStop()
                if job.baseline:
                    chosen.append(_run_baseline(job, memory, kernels, stream))
        chosen_by(Path(sys.argv[1])).write_bytes(msgspec.json.encode(chosen))


def _run_baseline(job: Watching, memory: PlanMemory, kernels: Kernels, stream: Any) -> str:
    """Run the fastest baseline on the call's own inputs, and tell its name."""
    problem = load_problem(job.problem)
    operands = problem.operands(job.plan.size)
    arrays = [
        buffer.array(operand)
        for operand, buffer in zip(operands, memory.given(job.plan), strict=True)
    ]
    inputs = [
        array for operand, array in zip(operands, arrays, strict=True) if operand.role == "in"
    ]
    on_gpu = problem.on_gpu(kernels) or ArraysOnGpu(problem)
    launches = on_gpu.baselines(job.plan.size, inputs, arrays[len(inputs) :])
    times = {
        name: min(_time(launch, stream) for _ in range(_TRIALS))
        for name, launch in launches.items()
    }
    fastest = min(times, key=lambda name: times[name])
    runtime.profilerStart()
    launches[fastest]()
    stream.synchronize()
    runtime.profilerStop()
    return fastest


def _time(launch: Launch, stream: Any) -> float:
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record(stream)
    launch()
    end.record(stream)
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, end))


if __name__ == "__main__":
    main()
