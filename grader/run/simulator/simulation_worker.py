"""The process that simulates: one per grade, ``python -m`` this module with the engine's path, the
problem (``ProblemRef`` in JSON), and "filtered" if the sandbox filters system calls.

Only this process handles what a student can forge: the PTX and the plans. It runs in the sandbox,
and before it reads the first request it gives up every right that computing does not need.
"""

import math
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy.random  # noqa: F401 - now: later no file can be opened

from grader.base import GraderError, Kind, Rejected, Verdict, decoder
from grader.problems import Problem, ProblemRef, load_problem
from grader.run import protocol
from grader.run.simulator import messages
from grader.run.simulator.contents import measure
from grader.run.simulator.simulated_calls import (
    Arrays,
    element_sizes,
    rejected,
    seen_calls,
    summary,
    whole_numbers,
    worded,
)
from grader.sandbox import lock_down
from ptxsim import (
    Declarations,
    Engine,
    EngineError,
    Prober,
    RefusedProgram,
    SimLimits,
    Simulator,
    has_same_kernels,
    hidden_mistakes,
    load_engine,
    runs_alike,
)
from ptxsim.plan import Launch
from ptxsim.text import NOTHING, phrase

_DECODER: msgspec.json.Decoder[messages.Request] = decoder(messages.Request)
# Needed in any case: the interpreter, and the operands with their copies and shadows.
_INTERPRETER, _PER_BYTE = 512 << 20, 16
_LONGER_BLOCKS = 4  # times: each block of a larger size may take
_FAR_TOO_LONG = 2  # times the limit: a case may have run twice, or on a busy machine
_OUT_OF_MEMORY = phrase(
    "the simulator needs more memory than the lab allows: raise limits.memory_mb in the lab file, "
    "or give it smaller cpu sizes"
)
_TOO_LARGE_TO_SAMPLE = phrase("the operands of this size need more memory than the lab allows")


def _load() -> Engine:
    return load_engine(Path(sys.argv[1]))


def main(
    make_simulator: Callable[[str, Path, Any], Prober] = Prober,
    prepare: Callable[[], Engine] = _load,
) -> None:
    """Answer requests about the module that was read last. ``prepare`` runs before the first
    request, while the submission is being compiled."""
    with protocol.replying() as replies:
        try:
            engine = prepare()
            asked = decoder(ProblemRef | None).decode(sys.argv[2])
            problem = load_problem(asked) if asked else None  # None: nothing is to be verified
            for each in problem.modules if problem else ():
                import_module(each)
            lock_down(filtered=sys.argv[3] == "filtered")
        except (GraderError, EngineError) as error:
            replies.send(protocol.Failed.of(error))
            return
        simulator: Prober | None = None

        def answer(request: messages.Request) -> None:
            nonlocal simulator
            try:
                if isinstance(request, messages.Read):
                    simulator = make_simulator(request.ptx, Path(request.source_root), engine)
                    replies.send(messages.Declared(interface=simulator.declared))
                elif isinstance(request, messages.RunSecond):
                    assert simulator and problem
                    replies.send(run_second(request, simulator.declared, problem, engine))
                elif simulator is not None:
                    _answer(request, simulator, problem, replies)
            except RefusedProgram as program:
                no = rejected(program)
                replies.send(
                    messages.Forbidden(verdict=no.verdict, message=no.message, findings=no.findings)
                )
            except (GraderError, EngineError) as error:
                replies.send(protocol.Failed.of(error))
            except MemoryError:
                replies.send(_too_large(request))

        for request in protocol.requests(_DECODER):
            answer(request)


def _answer(
    request: messages.Request,
    simulator: Prober,
    problem: Problem | None,
    replies: protocol.Replies,
) -> None:
    match request:
        case messages.Inspect(plans=plans):
            replies.send(messages.Notes(findings=worded(simulator.tensor_cores(plans))))
        case messages.Sample(plan=plan, seconds=seconds, counts=True):
            inputs = whole_numbers(problem.operands(plan.size)) if problem else {}
            found = simulator.sample(plan, seconds, inputs=inputs)
            replies.send(messages.Sampled(samples=found))
        case messages.Sample(plan=plan, seconds=seconds):
            sizes = element_sizes(problem.operands(plan.size), plan) if problem else {}
            notes = worded(simulator.probe(plan, seconds), sizes=sizes)
            replies.send(messages.Notes(findings=notes))
        case messages.Look(plan=plan, seconds=seconds):
            assert problem
            replies.send(measure(simulator, problem, plan, seconds))
        case messages.Job():
            assert problem
            _serve(request, simulator, problem, replies)


def _too_large(request: messages.Request) -> messages.Reply:
    if isinstance(request, messages.Job):
        return protocol.Failed(message=_OUT_OF_MEMORY)
    if isinstance(request, messages.Sample | messages.Look):
        return protocol.Failed(message=_TOO_LARGE_TO_SAMPLE)
    message = phrase("reading its PTX takes more memory than the lab allows")
    return messages.Forbidden(verdict=Verdict.RE, message=message)


def _serve(
    job: messages.Job, simulator: Prober, problem: Problem, replies: protocol.Replies
) -> None:
    """Limits are CPU time: the thread's for a case, the process's for all cases. Every other case,
    the last among them, begins with the last block and warp, so that both orders are seen; a case
    that is alone runs in both. Where blocks that store nothing would make one of them late, none
    runs any more."""
    started = time.process_time()
    out_of_time = threading.Event()
    hopeless = NOTHING

    def work(place: int) -> None:
        nonlocal hopeless
        left = job.total_seconds - (time.process_time() - started)
        if out_of_time.is_set() or left <= 0:
            return
        planned, begun = job.cases[place], time.thread_time()
        if hopeless:
            outcome = planned.case.refused(Rejected(Verdict.TLE, hopeless))
        else:
            outcome = run_case(simulator, problem, job, place, min(job.case_seconds, left))
        idle = next((each for each in outcome.findings if each.kind is Kind.IDLE_BLOCKS), None)
        took = time.thread_time() - begun
        growth = max(_growth(planned, each) for each in job.cases)
        if idle and took * growth > _FAR_TOO_LONG * job.case_seconds:
            words = phrase("the larger sizes would take far more than {seconds:g} s: {why}")
            hopeless = words.given(seconds=job.case_seconds, why=idle.message)
        elif hopeless or outcome.stopped == "time":
            out_of_time.set()
        replies.send(protocol.Finished(outcome=outcome))

    with ThreadPoolExecutor(max_workers=job.threads) as pool:
        jobs = [pool.submit(work, place) for place in range(len(job.cases))]
        try:
            for each in jobs:
                each.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    replies.send(protocol.Done())


def _growth(one: protocol.PlannedCase, other: protocol.PlannedCase) -> float:
    """About how many times as long the other takes, if most blocks of both compute for nothing."""
    ours, theirs = (
        sum(math.prod(each.grid) for each in case.plan.operations if isinstance(each, Launch))
        for case in (one, other)
    )
    amount = other.case.amount / max(one.case.amount, 1)
    return min(amount, _LONGER_BLOCKS * theirs / max(ours, 1))


def run_case(
    simulator: Prober, problem: Problem, job: messages.Job, place: int, seconds: float
) -> protocol.CaseOutcome:
    """Fresh inputs and poisoned outputs for each call of one case of the job, the simulator, then
    the verification."""
    planned, capacities, alone = job.cases[place], job.capacities[place], len(job.cases) == 1
    size, turn = planned.plan.size, len(job.cases) - place
    arrays = Arrays(problem, size, turn)
    limits = SimLimits(seconds=seconds, resident=tuple(capacity.blocks for capacity in capacities))
    try:
        made = simulator.calls(
            planned.plan, arrays.buffers, limits, turn=turn, writers=arrays.matrices
        )
        with closing(made) as calls:
            seen = seen_calls(
                calls, planned.plan, arrays, seconds, capacities, turn=turn, alone=alone
            )
    except RefusedProgram as refusal:
        return planned.case.refused(rejected(refusal))
    except MemoryError:
        if _PER_BYTE * arrays.bytes + _INTERPRETER > job.memory_mb << 20:
            raise
        words = phrase(
            "it needs more memory than the lab's {memory} MB: allocate less", memory=job.memory_mb
        )
        return planned.case.refused(Rejected(Verdict.RE, words))
    return summary(planned, seen, arrays, hints=job.hints, shown=place == len(job.cases) - 1)


def run_second(
    request: messages.RunSecond, first: Declarations, problem: Problem, engine: Engine
) -> messages.SecondRun:
    """Run the plans on fresh inputs. first: the other build's declarations. Whatever ends this
    early says nothing against the program: the other build ran well."""
    begun = time.thread_time()
    if not runs_alike(request.ptx):
        return messages.SecondRun(missing=phrase("it stores what wgmma has not computed yet"))
    try:
        simulator = Simulator(request.ptx, Path(request.source_root), engine)
        if not has_same_kernels(first, simulator.declared):
            return messages.SecondRun(
                missing=phrase("its kernels are not those of the first build")
            )
        for plan in request.plans:
            left = request.seconds - (time.thread_time() - begun)
            late = phrase("{size} did not end in time", size=str(plan.size))
            if left <= 0:
                return messages.SecondRun(missing=late)
            buffers = Arrays(problem, plan.size, 0).buffers
            outcome = simulator.run(plan, buffers, SimLimits(seconds=left))
            if found := hidden_mistakes(outcome):
                return messages.SecondRun(findings=worded(found), size=plan.size)
            if outcome.stopped:
                return messages.SecondRun(missing=late)
    except RefusedProgram as refusal:
        return messages.SecondRun(missing=refusal.message)
    except MemoryError:
        return messages.SecondRun(missing=phrase("it takes more memory than the lab allows"))
    return messages.SecondRun()


if __name__ == "__main__":
    main()
