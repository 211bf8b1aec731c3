"""Plans replayed once each, for a profiler to watch: ``python -m grader.backends.gpu.once JOB``.

It involves no other process of ours, and times and verifies nothing. Apart from the submission's
kernels, only those of ``checks.cu`` run, which fill the inputs.
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
from grader.problems.inputs import fresh_key


def main() -> None:
    """JOB is a file that holds a JSON list of ``Watching``."""
    jobs = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=list[Watching])
    stream = cupy.cuda.Stream(non_blocking=True)
    kernels, arena, caller = Kernels(stream), Arena(), Caller()
    with stream:
        for job in jobs:
            with arena.memory(job.plan) as memory:
                for buffer in memory.given()[:2]:
                    kernels.fill(buffer.floats(), fresh_key())
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
