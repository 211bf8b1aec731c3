"""Build → launch plans: runs the host code in the sandbox and records its calls.

The host library is loaded by ``cudart/``, our stand-in for CUDA's runtime, in one process per
problem size. It calls run_custom three times; ``calls.py`` makes one plan of the calls. The answer
comes from an untrusted process: it is decoded strictly and checked against the build before
anything uses it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from grader.errors import Rejected
from grader.hardware.targets import Target, target_for
from grader.model import (
    Build,
    Finding,
    KernelInfo,
    Kind,
    Launch,
    Operation,
    Plan,
    Record,
    Severity,
    Size,
    Submission,
    Verdict,
    phrase,
)
from grader.model.decoding import decode
from grader.problems.problem import FUNCTION, Problem, vendor_library
from grader.record.calls import Given, Recorded, assembled
from grader.record.plan_check import Known, flaw
from grader.record.recorder_process import Ended, prepare_recorder, run_recorder
from grader.record.refusal_sentences import refusal_sentence
from grader.record.source_lines import locate
from grader.sandbox.meter import PATIENCE
from grader.sandbox.running import Sandbox
from grader.submission.folder import with_hint
from grader.toolchain.discovery import Toolchain
from ptxsim.findings.names import readable
from ptxsim.frontend.interface import Interface
from ptxsim.records import Place

T = TypeVar("T")

_MAX_MESSAGE = 600  # characters


class _Refusal(Record):
    """Why a call of run_custom was rejected."""

    verdict: Verdict
    message: str
    frames: tuple[int, ...] = ()  # return addresses in the host library, innermost first


class _Reply(Record):
    """What the recorder writes about one size: one of the two."""

    recorded: Recorded | None = None
    refusal: _Refusal | None = None


def record_plans(
    build: Build,
    submission: Submission,
    problem: Problem,
    sizes: Sequence[Size],
    toolchain: Toolchain,
    sandbox: Sandbox,
    *,
    declared: Interface,
    record_s: float,
    memory_mb: int,
    target: Target | None = None,
) -> tuple[Plan | Rejected, ...]:
    """One plan, or the reason why there is none, for each of ``sizes``.

    If host code never returns for a size, the answer ends there.
    ``declared`` is what the build's PTX declares. ``record_s`` is the time that is charged for one
    size, for all calls, as meter.py counts it. ``target`` is the GPU that host code is told about;
    by default one that fits the build's architecture. Raises MachineError when the recorder
    itself fails.
    """
    if not sizes:
        return ()
    recorder = prepare_recorder(toolchain)
    known = _known(build, declared, target or target_for(build.arch))
    given = [Given(size=size, operands=problem.operands(size)) for size in sizes]
    request = _request(build, known, given, record_s)
    ended = run_recorder(
        recorder,
        request,
        len(sizes),
        sandbox,
        host_library=build.host_library,
        record_s=record_s,
        memory_mb=memory_mb,
    )
    outcomes = [
        _outcome(one, each, known, record_s) for one, each in zip(ended, given, strict=False)
    ]
    frames = {frame for one in outcomes for frame in _frames(one)}
    places = locate(frames, build, submission, sandbox)
    return tuple(
        _placed(one, places) if isinstance(one, Plan) else _rejected(one, places, submission)
        for one in outcomes
    )


def _frames(outcome: Plan | _Refusal) -> Sequence[int]:
    if isinstance(outcome, Plan):
        return [frame for each in (*outcome.setup, *outcome.operations) for frame in each.frames]
    return outcome.frames


def _placed(plan: Plan, places: Mapping[int, tuple[str, int]]) -> Plan:
    """The plan with the lines of its operations, as far as the recorder asked for them."""
    if not _frames(plan):
        return plan

    lines = {frame: Place(file=file, line=line) for frame, (file, line) in places.items()}

    def placed(operations: Sequence[Operation]) -> tuple[Operation, ...]:
        return tuple(
            msgspec.structs.replace(each, frames=(), place=_innermost(each.frames, lines))
            for each in operations
        )

    return msgspec.structs.replace(
        plan, setup=placed(plan.setup), operations=placed(plan.operations)
    )


def _innermost(frames: Sequence[int], places: Mapping[int, T]) -> T | None:
    return next((places[frame] for frame in frames if frame in places), None)


def _known(build: Build, declared: Interface, target: Target) -> Known:
    """What a plan may refer to; kernels that ptxas does not mention have no figures."""
    unknown = [
        KernelInfo(name=name, registers=0, shared_bytes=0, spill_bytes=0)
        for name in declared.entries
    ]
    figures = {kernel.name: kernel for kernel in (*unknown, *build.kernels)}
    return Known(declared=declared, figures=figures, target=target)


def _request(build: Build, known: Known, given: Sequence[Given], record_s: float) -> str:
    """The recorder's input: one item a line, in the order that main.cpp reads them."""
    numbers = msgspec.structs.astuple(known.target)[1:]
    kernels = []
    for name, entry in known.declared.entries.items():
        figures = known.figures[name]
        cluster = " ".join(map(str, entry.cluster or (0, 0, 0)))
        params = " ".join(f"{param.offset} {param.size}" for param in entry.params)
        kernels.append(
            f"{name} {figures.registers} {figures.shared_bytes} {entry.max_threads} "
            f"{cluster} {len(entry.params)} {params}"
        )
    vectors = given[0].operands
    lines = [
        str(build.host_library),
        f"{record_s} {PATIENCE * record_s}",
        known.target.name,
        " ".join(map(str, numbers)),
        str(len(kernels)),
        *kernels,
        f"{len(vectors)} {len(given[0].size.dims)}",
        *(f"{each.name} {each.element.bytes}" for each in vectors),
        str(len(given)),
        *(_numbers(each) for each in given),
    ]
    return "\n".join(lines) + "\n"


def _numbers(given: Given) -> str:
    """The lengths of the vectors, and the other arguments."""
    return " ".join(map(str, (*(each.count for each in given.operands), *given.size.extents)))


def _outcome(ended: Ended, given: Given, known: Known, record_s: float) -> Plan | _Refusal:
    """The recorder's answer for one size, as far as it can be trusted."""
    if ended.timed_out:
        message = f"host code did not return within {record_s:g} s"
        return _Refusal(verdict=Verdict.TLE, message=message)
    try:
        reply = decode(ended.reply, _Reply)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _silent(ended)
    refusal = reply.refusal
    if refusal is not None and refusal.verdict in (Verdict.FE, Verdict.RE):
        printable = "".join(c if c.isprintable() else "?" for c in refusal.message)
        return msgspec.structs.replace(refusal, message=readable(printable)[:_MAX_MESSAGE])
    plan = (
        assembled(reply.recorded, given, known.variables, known.declared.entries)
        if reply.recorded
        else None
    )
    wrong = flaw(plan, given, known) if plan else "it holds no calls"
    if plan is None or wrong is not None:
        message = f"host code corrupted the record of its launches: {wrong}"
        return _Refusal(verdict=Verdict.RE, message=message)
    return _with_arguments(plan, known.declared)


def _with_arguments(plan: Plan, declared: Interface) -> Plan:
    """The plan with the places of its launches' parameters, which the recorder is not asked for."""

    def complete(operations: Sequence[Operation]) -> tuple[Operation, ...]:
        return tuple(
            msgspec.structs.replace(
                each, arguments=tuple(one.offset for one in declared.entries[each.kernel].params)
            )
            if isinstance(each, Launch)
            else each
            for each in operations
        )

    return msgspec.structs.replace(
        plan, setup=complete(plan.setup), operations=complete(plan.operations)
    )


def _silent(ended: Ended) -> _Refusal:
    """The process ended without an answer from the recorder."""
    if os.WIFSIGNALED(ended.status):
        name = signal.strsignal(os.WTERMSIG(ended.status))
        return _Refusal(verdict=Verdict.RE, message=f"host code was ended by {name}")
    status = os.WEXITSTATUS(ended.status)
    return _Refusal(verdict=Verdict.RE, message=f"host code ended its process with status {status}")


def _rejected(
    refusal: _Refusal, places: Mapping[int, tuple[str, int]], submission: Submission
) -> Rejected:
    """The rejection with the student's line, from the innermost frame in the student's files."""
    place = _innermost(refusal.frames, places)
    file, line = place or (None, None)
    kind = Kind.FORBIDDEN_CALL if refusal.verdict is Verdict.FE else Kind.BAD_LAUNCH
    if refusal.message.startswith(FUNCTION):
        kind = Kind.BAD_LAUNCH
    library = vendor_library(refusal.message)
    words = refusal_sentence(refusal.message)
    if kind is Kind.FORBIDDEN_CALL and library is not None:
        kind = Kind.LIBRARY
        words = phrase(
            "{function} cannot be used in run_custom: {library} is a compiled library, and its "
            "launches cannot be recorded, not even where the lab allows libraries",
            function=refusal.message.partition(" cannot be used")[0],
            library=library,
        )
    if refusal.message.startswith("host code"):
        kind = Kind.HOST_CRASH
    finding = Finding(kind=kind, severity=Severity.ERROR, message=words, file=file, line=line)
    if place:
        words = phrase("{place}: {what}", place=f"{file}:{line}", what=words)
    # What is defined in a file that nobody includes is called like a library that is not there.
    if kind is Kind.FORBIDDEN_CALL:
        words = with_hint(words, submission)
    return Rejected(refusal.verdict, words, (finding,))
