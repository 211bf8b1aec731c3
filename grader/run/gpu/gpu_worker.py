"""The process that owns the GPU: ``python -m grader.run.gpu.gpu_worker``, disposable.

It never sees the student's host code: only the cubin and the plans. It does jobs until the grader
ends it; plans that a submission must not find here come with a later job. A hang or a broken
context costs this process, not the grader. It first loads what needs no context; it makes that when
it is asked to warm up, or when the first job comes.
"""

from __future__ import annotations

import os
import traceback
from itertools import chain
from pathlib import Path

import cupy
import msgspec
from cupy.cuda import runtime
from cupy_backends.cuda.api import driver

from grader.base import Finding, GraderError, Rejected, Verdict, decoder
from grader.problems import FUNCTION, load_problem
from grader.run.gpu import messages
from grader.run.gpu.measure import time_case, verify_case
from grader.run.gpu.memory import CHECKS
from grader.run.gpu.plan_replay import load_module
from grader.run.gpu.session import GpuSession, LoadedAhead, MeasuredCase
from grader.run.probe import first_gpu_arch
from grader.run.protocol import Done, Failed, PlannedCase, Replies, replying, requests
from ptxsim.text import phrase

_DECODER: msgspec.json.Decoder[messages.Prepare | messages.Warm | messages.GpuJob] = decoder(
    messages.Prepare | messages.Warm | messages.GpuJob
)
# Queues from the host to the GPU. All work is in one stream and needs one; the eight that the
# driver makes otherwise take half of a context's time.
_QUEUES = ("CUDA_DEVICE_MAX_CONNECTIONS", "1")
_ERRORS = (runtime.CUDARuntimeError, driver.CUDADriverError)


def _serve(replies: Replies) -> None:
    asked = requests(_DECODER)
    first = next(asked)
    assert isinstance(first, messages.Prepare)
    problem = load_problem(first.problem)
    arch = first_gpu_arch()
    if arch is not None:  # compiled, if need be, while the submission is
        for source in (CHECKS, *problem.gpu_sources):
            messages.checks_cubin(arch, source)
        for source in problem.gpu_libraries:
            messages.host_library(arch, source)
    loaded = LoadedAhead(problem)
    job = next(asked)  # or Warm, before the first of them
    session = GpuSession(loaded)
    replies.send(messages.Ready(gpu=session.gpu))
    for each in chain((job,), asked):
        if isinstance(each, messages.GpuJob) and not _run(session, each, replies):
            return


def _run(session: GpuSession, job: messages.GpuJob, replies: Replies) -> bool:
    """Returns whether the context is whole."""
    cubin = Path(job.cubin).read_bytes()
    for case in job.cases:
        replies.send(messages.Beat(case=case.id))
        reply = _one(session, cubin, case, job, replies)
        replies.send(reply)
        if isinstance(reply, messages.Broken):
            return False
    cupy.get_default_memory_pool().free_all_blocks()  # the next worker may need room
    replies.send(Done())
    return True


def _one(
    session: GpuSession, cubin: bytes, planned: PlannedCase, job: messages.GpuJob, replies: Replies
) -> messages.Measured | messages.Broken:
    def beat() -> None:
        replies.send(messages.Beat(case=planned.id))

    # Memory of the previous case is free, so the GPU needs room for one case only.
    cupy.get_default_memory_pool().free_all_blocks()
    notes: tuple[Finding, ...] = ()
    try:
        with session.stream, session.arena.memory(planned.plan) as memory:
            notes = memory.notes()
            # Each size has its variables to itself, as host code's are, too.
            case = MeasuredCase(session, load_module(cubin), planned, memory)
            ran = (
                time_case(session, case, job, beat)
                if planned.id in job.timed
                else verify_case(session, case, beat)
            )
    except Rejected as refusal:
        ran = messages.Measured(outcome=planned.case.refused(refusal))
    except MemoryError:
        asked = sum(each.size for each in planned.plan.allocations[planned.plan.given :])
        if not asked:
            raise
        words = phrase("the GPU has no room for the {asked} bytes that {function} allocates")
        no_room = Rejected(Verdict.RE, words.given(asked=asked, function=FUNCTION))
        ran = messages.Measured(outcome=planned.case.refused(no_room))
    except _ERRORS as error:
        return messages.Broken(case=planned.id, message=str(error), findings=notes)
    return msgspec.structs.replace(ran, notes=notes)


def main() -> None:
    os.environ.update([_QUEUES])
    with replying() as replies:
        try:
            _serve(replies)
        except GraderError as error:
            replies.send(Failed.of(error))
        except (MemoryError, *_ERRORS) as error:
            why = phrase("the GPU failed: {error}", error=str(error))
            out_of_memory = phrase("the GPU failed: out of memory")
            replies.send(Failed(message=why if str(error) else out_of_memory))
        except Exception as error:  # a bug of ours: one line for the user, the traceback in the log
            traceback.print_exc()
            why = phrase("the GPU worker failed: {error}", error=repr(error))
            replies.send(Failed(message=why))
    os._exit(0)  # with a broken context CuPy's own clean-up hangs or prints errors


if __name__ == "__main__":
    main()
