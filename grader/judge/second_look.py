"""The GPU says wrong and the simulator right: what the simulator finds in the GPU's own build.

Beside a GPU the simulator grades a build for the lab's first architecture, at sizes of its own. So
it misses what is wrong at the GPU's sizes alone, and what depends on the architecture: where shared
memory begins, and the code behind ``__CUDA_ARCH__``.
"""

from collections.abc import Sequence

import msgspec

from grader import base
from grader.judge.program import Program
from grader.judge.rulings import Ruling
from grader.judge.walk import Group
from grader.run import CaseOutcome, CpuDevice, PlannedCase, Progress
from ptxsim.findings import Severity
from ptxsim.text import NOTHING, Message, phrase

_OF_TIME = (base.Kind.ENDLESS_LOOP, base.Kind.UNTIMED_WORK)


def look_again(
    group: Group, on_gpu: Ruling, simulated: Ruling, simulator: CpuDevice, progress: Progress
) -> Ruling:
    """Return the simulator's ruling, with what it finds at the smallest size that only the GPU
    calls wrong. ``group`` is the GPU's."""
    case = _smallest_wrong(group.planned, on_gpu.cases)
    if case is None or simulated.verdict is not base.Verdict.AC:
        return simulated
    known = {each.subject for each in simulated.findings}
    found = simulate_for_gpu(group.program, case, simulator, progress)
    more = tuple(each for each in found if each.subject not in known)
    return msgspec.structs.replace(simulated, findings=(*simulated.findings, *more))


def simulate_for_gpu(
    program: Program, case: PlannedCase, simulator: CpuDevice, progress: Progress
) -> tuple[base.Finding, ...]:
    """Simulate the GPU's build at a size at which the GPU is wrong. Return what comes out there,
    then the errors, warnings and hints; () where it cannot be simulated."""
    lab, arch = program.context.lab, program.built.arch
    lab = msgspec.structs.replace(lab, architectures=(*lab.architectures, arch))
    try:
        outcomes = simulator.run(program.built, program.root, [case], lab, progress, hints=True)
    except base.OutOfTime:
        raise
    except base.GraderError as failure:  # the verdict stands, whatever cannot be looked at
        size = str(case.plan.size)
        progress(phrase("not looked at {size}: {why}", size=size, why=failure.message), NOTHING)
        return ()
    return tuple(each for outcome in outcomes for each in _told(outcome, arch))


def _smallest_wrong(
    planned: Sequence[PlannedCase], cases: Sequence[base.CaseResult]
) -> PlannedCase | None:
    wrong = {each.id for each in cases if each.error and each.error.wrong}
    return next((case for case in planned if case.id in wrong), None)  # in increasing order


def _told(outcome: CaseOutcome, arch: str) -> tuple[base.Finding, ...]:
    words = _what_came_out(outcome).given(arch=arch, size=base.size_text(outcome.size))
    note = base.Finding(kind=base.Kind.HINT, severity=Severity.NOTE, message=words)
    findings = (each for each in outcome.findings if each.severity is not Severity.NOTE)
    return (note, *(each for each in findings if each.kind not in _OF_TIME))


def _what_came_out(outcome: CaseOutcome) -> Message:
    if outcome.verdict or outcome.stopped:
        return phrase("at {size} the simulator comes to no result with the GPU's build for {arch}")
    if not outcome.message:
        return phrase(
            "at {size} the elements are right in the simulator, also with the GPU's build for "
            "{arch}"
        )
    words = phrase(
        "at {size} the elements are wrong in the simulator, too, with the GPU's build for {arch}: "
        "{wrong}"
    )
    return words.given(wrong=outcome.message)
