"""Build → launch plans: runs the host code in the sandbox and records its calls.

The host library is loaded by ``cudart/``, our stand-in for CUDA's runtime, in one process per
problem size. It calls run_custom three times; ``calls.py`` makes one plan of the calls. The answer
comes from an untrusted process: it is decoded strictly and checked against the build before
anything uses it.
"""

from __future__ import annotations

import os
import re
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from grader.errors import MachineError, Rejected
from grader.hardware.targets import Target, target_for
from grader.model import (
    Build,
    Finding,
    KernelInfo,
    Kind,
    Operation,
    Plan,
    Record,
    Severity,
    Size,
    Submission,
    Verdict,
)
from grader.problems.problem import FUNCTION, Problem, vendor_library
from grader.record.calls import Given, Recorded, assembled
from grader.record.plan_bounds import MAX_REPLY_BYTES, macros
from grader.record.plan_check import Known, flaw
from grader.record.source_lines import locate
from grader.sandbox.meter import PATIENCE
from grader.sandbox.running import Completed, Limits, Sandbox
from grader.submission.folder import left_out
from grader.toolchain.discovery import Toolchain
from grader.toolchain.native import Native
from ptxsim.findings.names import readable
from ptxsim.frontend.interface import Interface
from ptxsim.records import Place

__all__ = ["Target", "prepare_recorder", "record_plans", "recorder_program", "target_for"]

_SOURCES = Path(__file__).parent / "cudart"
_HEAD = re.compile(rb"([012]) (\d+) (\d+)\n")
_HEAD_BYTES = 64  # of a frame, at most
_MAX_MESSAGE = 600  # characters
_ATTEMPTS = 2  # one more if another process kills the recorder, or host code recorded nothing
_START_S = 5.0  # allowed on top of the sizes' own time


class _Refusal(Record):
    """Why a call of run_custom was rejected."""

    verdict: Verdict
    message: str
    frames: tuple[int, ...] = ()  # return addresses in the host library, innermost first


class _Reply(Record):
    """What the recorder writes about one size: one of the two."""

    recorded: Recorded | None = None
    refusal: _Refusal | None = None


class _Ended(Record):
    """How the process of one size ended."""

    timed_out: bool  # it used its time
    starved: bool  # the machine was too busy to give it its time
    status: int  # as from waitpid
    reply: bytes


def recorder_program(toolchain: Toolchain) -> Native:
    """The recorder, to be compiled with this toolkit's headers."""
    version = toolchain.cuda_version.replace(".", "_")
    flags = (
        "-O1",
        "-rdynamic",
        f"-I{toolchain.include}",
        f"-DTOOLKIT_{version}",
        *macros(),
        "-ldl",
    )
    sources = tuple(sorted(_SOURCES.glob("*.cpp")))
    return Native(name="recorder", sources=sources, shared=False, flags=flags)


def prepare_recorder(toolchain: Toolchain) -> Path:
    """The recorder, compiled unless it is in the cache."""
    return recorder_program(toolchain).compiled()


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
    with tempfile.TemporaryDirectory(prefix="sgemm-record-") as name:
        scratch = Path(name).resolve()
        request = scratch / "request"
        request.write_text(_request(build, known, given, record_s))
        for _ in range(_ATTEMPTS):
            done = sandbox.run(
                [str(recorder), str(request)],
                cwd=scratch,
                limits=Limits(
                    cpu_s=record_s * len(sizes) + _START_S,
                    memory_mb=memory_mb,
                    result_bytes=(MAX_REPLY_BYTES + _HEAD_BYTES) * len(sizes),
                ),
                readable=[recorder, build.host_library, scratch],
            )
            ended = _split(done.result, len(sizes))
            cut_short = _cut_short(ended, len(sizes), done)
            killed = any(map(_killed, ended))
            starved = done.starved or any(each.starved for each in ended)
            if not cut_short and not killed and not starved:
                break
    if starved:
        raise MachineError(
            f"the machine was too busy to give host code its {record_s:g} s of CPU time"
        )
    if killed:
        raise MachineError("host code was killed twice from outside; is there enough memory?")
    if cut_short:
        words = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
        raise MachineError(f"the recorder does not run to its end: {words[0]}")
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
        return [each.frame for each in (*outcome.setup, *outcome.operations) if each.frame]
    return outcome.frames


def _placed(plan: Plan, places: Mapping[int, tuple[str, int]]) -> Plan:
    """The plan with the lines of its operations, as far as the recorder asked for them."""
    if not _frames(plan):
        return plan

    lines = {frame: Place(file=file, line=line) for frame, (file, line) in places.items()}

    def placed(operations: Sequence[Operation]) -> tuple[Operation, ...]:
        return tuple(
            msgspec.structs.replace(each, frame=0, place=lines.get(each.frame))
            for each in operations
        )

    return msgspec.structs.replace(
        plan, setup=placed(plan.setup), operations=placed(plan.operations)
    )


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
        params = " ".join(f"{param.offset} {param.size}" for param in entry.params)
        kernels.append(
            f"{name} {figures.registers} {figures.shared_bytes} {entry.max_threads} "
            f"{len(entry.params)} {params}"
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


def _split(data: bytes, count: int) -> list[_Ended]:
    """The recorder's frames; fewer than ``count`` when it stopped early."""
    frames: list[_Ended] = []
    at = 0
    while len(frames) < count:
        head = _HEAD.match(data, at)
        if head is None:
            break
        at = head.end() + int(head[3])
        frames.append(
            _Ended(
                timed_out=head[1] == b"1",
                starved=head[1] == b"2",
                status=int(head[2]),
                reply=data[head.end() : at],
            )
        )
    return frames


def _cut_short(ended: list[_Ended], count: int, done: Completed) -> bool:
    """Whether the recorder ended before its work was done, other than by a time limit."""
    late = done.timed_out or done.starved or (ended and (ended[-1].timed_out or ended[-1].starved))
    return len(ended) < count and not late


def _killed(ended: _Ended) -> bool:
    """Killed from outside: the recorder reports its own kills, and host code cannot fake one."""
    killed = os.WIFSIGNALED(ended.status) and os.WTERMSIG(ended.status) == signal.SIGKILL
    return killed and not ended.timed_out and not ended.starved and not ended.reply


def _outcome(ended: _Ended, given: Given, known: Known, record_s: float) -> Plan | _Refusal:
    """The recorder's answer for one size, as far as it can be trusted."""
    if ended.timed_out:
        message = f"host code did not return within {record_s:g} s"
        return _Refusal(verdict=Verdict.TLE, message=message)
    try:
        reply = msgspec.json.decode(ended.reply, type=_Reply)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _silent(ended)
    refusal = reply.refusal
    if refusal is not None and refusal.verdict in (Verdict.FE, Verdict.RE):
        printable = "".join(c if c.isprintable() else "?" for c in refusal.message)
        return msgspec.structs.replace(refusal, message=readable(printable)[:_MAX_MESSAGE])
    plan = assembled(reply.recorded, given, known.variables) if reply.recorded else None
    wrong = flaw(plan, given, known) if plan else "it holds no calls"
    if plan is None or wrong is not None:
        message = f"host code corrupted the record of its launches: {wrong}"
        return _Refusal(verdict=Verdict.RE, message=message)
    return plan


def _silent(ended: _Ended) -> _Refusal:
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
    place = next((places[frame] for frame in refusal.frames if frame in places), None)
    file, line = place or (None, None)
    kind = Kind.FORBIDDEN_CALL if refusal.verdict is Verdict.FE else Kind.BAD_LAUNCH
    if refusal.message.startswith(FUNCTION):
        kind = Kind.BAD_LAUNCH
    if kind is Kind.FORBIDDEN_CALL and vendor_library(refusal.message):
        kind = Kind.LIBRARY
    if refusal.message.startswith("host code"):
        kind = Kind.HOST_CRASH
    finding = Finding(
        kind=kind, severity=Severity.ERROR, message=refusal.message, file=file, line=line
    )
    where = f"{file}:{line}: " if place else ""
    # What is defined in a file that nobody includes is called like a library that is not there.
    hint = left_out(submission) if kind is Kind.FORBIDDEN_CALL else ""
    return Rejected(refusal.verdict, where + refusal.message + hint, (finding,))
