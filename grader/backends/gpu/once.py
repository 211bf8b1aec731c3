"""Replay each plan once, under a profiler: ``python -m grader.backends.gpu.once JOB``.

It starts no other process, and times and verifies nothing. Apart from the submission's kernels,
only those of ``checks.cu`` run, which fill the inputs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cupy
import msgspec
from cupy.cuda import runtime

from grader.backends.gpu.calling import Caller
from grader.backends.gpu.gpu_messages import Watching
from grader.backends.gpu.kernels import Kernels
from grader.backends.gpu.memory import Arena
from grader.backends.gpu.plan_replay import Replay, load_module
from grader.problems.catalogue import load_problem
from grader.problems.inputs import fresh_key


def main() -> None:
    """JOB is a file that holds a JSON list of ``Watching``."""
    jobs = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=list[Watching])
    stream = cupy.cuda.Stream(non_blocking=True)
    kernels, arena, caller = Kernels(stream), Arena(), Caller()
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


if __name__ == "__main__":
    main()
