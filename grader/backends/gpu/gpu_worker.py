"""The process that owns the GPU: ``python -m grader.backends.gpu.gpu_worker``, disposable.

It never sees the student's host code: only the cubin and the plans. One job on stdin, replies on
its original stdout. A hang or a broken context ends this process, not the grader.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, BinaryIO

import cupy
import msgspec
from cupy.cuda import runtime
from cupy_backends.cuda.api import driver

from grader.backends.gpu.bench import SharedBench
from grader.backends.gpu.gpu_messages import (
    Beat,
    Broken,
    Done,
    Failed,
    Finished,
    GpuJob,
    Ready,
    Reply,
    TimedCase,
)
from grader.backends.gpu.measure import MeasuredCase, time_case, verify_case
from grader.backends.gpu.plan_replay import load_module
from grader.backends.protocol import CaseOutcome, refused
from grader.errors import GraderError, Rejected
from grader.model import Finding, Verdict

_ERRORS = (runtime.CUDARuntimeError, driver.CUDADriverError)


class _Replies:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def send(self, reply: Reply) -> None:
        self._stream.write(msgspec.json.encode(reply) + b"\n")
        self._stream.flush()


def _run(job: GpuJob, replies: _Replies) -> None:
    bench = SharedBench()
    replies.send(Ready(gpu=bench.gpu))
    module = load_module(Path(job.cubin).read_bytes())
    for each in job.cases:
        replies.send(Beat(case=each.case.id))
        reply = _one(bench, module, each, job, replies)
        replies.send(reply)
        if isinstance(reply, Broken):
            return
    replies.send(Done())


def _one(
    bench: SharedBench, module: Any, each: TimedCase, job: GpuJob, replies: _Replies
) -> Finished | Broken:
    planned = each.case
    # Memory of the previous case is free, so the GPU needs room for one case only.
    cupy.get_default_memory_pool().free_all_blocks()
    notes: tuple[Finding, ...] = ()
    try:
        with bench.stream, bench.arena.memory(planned.plan) as memory:
            notes = memory.notes()
            case = MeasuredCase(bench, module, planned, memory)
            outcome = _outcome(bench, case, each, job, replies)
    except Rejected as refusal:
        outcome = refused(planned.id, planned.plan.size, refusal)
    except MemoryError:
        asked = sum(allocation.size for allocation in planned.plan.allocations[3:])
        if not asked:
            raise
        words = f"the GPU has no room for the {asked} bytes that run_custom allocates"
        outcome = refused(planned.id, planned.plan.size, Rejected(Verdict.RE, words))
    except _ERRORS as error:
        return Broken(case=planned.id, message=str(error), findings=notes)
    return Finished(outcome=msgspec.structs.replace(outcome, findings=(*outcome.findings, *notes)))


def _outcome(
    bench: SharedBench, case: MeasuredCase, each: TimedCase, job: GpuJob, replies: _Replies
) -> CaseOutcome:
    if each.timed:
        return time_case(bench, case, job, lambda: replies.send(Beat(case=each.case.id)))
    return verify_case(bench, case)


def main() -> None:
    with os.fdopen(os.dup(1), "wb") as stream:
        os.dup2(2, 1)
        replies = _Replies(stream)
        line = sys.stdin.buffer.readline()
        if not line:
            return
        threading.Thread(target=_die_with_the_grader, daemon=True).start()
        try:
            _run(msgspec.json.decode(line, type=GpuJob), replies)
        except GraderError as error:
            replies.send(Failed(message=str(error)))
        except (MemoryError, *_ERRORS) as error:
            replies.send(Failed(message=f"the GPU failed: {error or 'out of memory'}"))
        except Exception as error:  # a bug of ours: one line for the user, the traceback in the log
            traceback.print_exc()
            replies.send(Failed(message=f"the GPU worker failed: {error!r}"))
    os._exit(0)  # a broken context makes CuPy's own clean-up hang or shout


def _die_with_the_grader() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    main()
