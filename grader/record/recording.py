"""Build → launch plans: runs the host code in the sandbox and records its calls.

The host library is loaded by ``recorder/`` beside ptxsim's stand-in for CUDA's runtime, in one
process per problem size; ``calls.py`` makes one plan of its calls. The answer comes from an
untrusted process: it is decoded strictly and checked against the build before anything uses it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from grader import base
from grader.build import Build, Toolchain
from grader.labs import Limits, Submission, with_hint
from grader.problems import Operand, Problem, vendor_library
from grader.record import refusals
from grader.record.calls import MAX_REPLY_BYTES, Recorded, assembled, macros
from grader.record.plan_check import Known, flaw
from grader.record.refusals import find_refusal, refusal_sentence, refused
from grader.sandbox import PATIENCE, ProcessLimits, Sandbox
from grader.sandbox import seccomp as lockdown
from ptxsim import Declarations, runtime
from ptxsim.findings import Severity
from ptxsim.plan import Launch, Operation, Place, Plan, Record, Refused, RefusedCall, Size
from ptxsim.text import phrase

Traced = TypeVar("Traced", Operation, RefusedCall)


class _Refusal(Record):
    """Why a call of run_custom was rejected."""

    refused: Refused
    after: Refused | None = None  # the last call that had failed before
    call: int = 1  # of run_custom, for one size
    frames: tuple[int, ...] = ()  # return addresses in the host library, innermost first


class _Reply(Record):
    """The recorder's answer for one size: exactly one field is set."""

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
    declared: Declarations,
    limits: Limits,
    target: base.gpus.Gpu | None = None,
    located: bool = True,
) -> tuple[Plan | base.Rejected, ...]:
    """One plan, or the reason why there is none, for each of ``sizes``.

    If host code never returns for a size, the answer ends there.
    ``declared`` is what the build's PTX declares. ``target`` is the GPU that host code is told
    about; by default one that fits the build's architecture. ``located`` asks for lines: binutils
    then reads the host library. Raises MachineError when the recorder itself fails.
    """
    if not sizes:
        return ()
    # Kernels that ptxas does not mention have no figures.
    figures = {
        name: base.KernelInfo(name=name, registers=0, shared_bytes=0, spill_bytes=0)
        for name in declared.entries
    } | {kernel.name: kernel for kernel in build.info.kernels}
    target = target or base.gpus.standing_for(build.arch)
    known = Known(declared=declared, figures=figures, target=target)
    given = [(size, problem.operands(size)) for size in sizes]
    request = _request(known, problem, *given[0], limits.record_s)
    # Of each size the lengths of the vectors, and the other arguments.
    lines = []
    for size, vectors in given:
        scalars = (each.word for each in problem.scalars(size))
        numbers = (*(each.count for each in vectors), *size.extents, *scalars)
        lines.append(" ".join(map(str, numbers)))
    recorder, library = recorder_program(toolchain).compiled(), build.host_library
    ended = _run_recorder(recorder, library, request, lines, sandbox, limits)
    outcomes = [
        _outcome(one, *own, known, limits.record_s) for one, own in zip(ended, given, strict=False)
    ]
    traced = [
        (*one.setup, *one.operations, *one.refused) if isinstance(one, Plan) else (one,)
        for one in outcomes
    ]
    frames = {frame for own in traced for each in own for frame in each.frames}
    places = locate(frames, build, submission, sandbox) if located else {}
    return tuple(
        _completed(one, places, declared)
        if isinstance(one, Plan)
        else _rejected(one, places, submission)
        for one in outcomes
    )


def _completed(plan: Plan, places: Mapping[int, Place], declared: Declarations) -> Plan:
    """The plan with the lines of its operations, as far as the recorder asked for them, and with
    the places of its launches' parameters, which the recorder is not asked for."""

    def complete(traced: Sequence[Traced]) -> Iterator[Traced]:
        for each in traced:
            more: dict[str, tuple[int, ...]] = {}
            if isinstance(each, Launch):
                params = declared.entries[each.kernel].params
                more = {"arguments": tuple(one.offset for one in params)}
            place = _innermost(each.frames, places)
            yield msgspec.structs.replace(each, frames=(), place=place, **more)

    return msgspec.structs.replace(
        plan,
        setup=tuple(complete(plan.setup)),
        operations=tuple(complete(plan.operations)),
        refused=tuple(complete(plan.refused)),
    )


def _innermost(frames: Sequence[int], places: Mapping[int, Place]) -> Place | None:
    return next((places[frame] for frame in frames if frame in places), None)


def _request(
    known: Known, problem: Problem, size: Size, operands: Sequence[Operand], record_s: float
) -> str:
    """The recorder's input but for the sizes, of which this is one: one item a line, in the order
    that main.cpp reads them."""
    kernels = []
    for name, entry in known.declared.entries.items():
        figures = known.figures[name]
        cluster = " ".join(map(str, entry.cluster or (0, 0, 0)))
        params = " ".join(f"{param.offset} {param.size}" for param in entry.params)
        kernels.append(
            f"{name} {figures.registers} {figures.shared_bytes} {entry.max_threads} "
            f"{cluster} {len(entry.params)} {params}"
        )
    lines = [
        f"{record_s} {PATIENCE * record_s}",
        str(known.target.device),
        " ".join(map(str, known.target.host_figures())),
        str(len(kernels)),
        *kernels,
        f"{len(operands)} {len(size.extents)} {len(problem.scalars(size))}",
        *(f"{each.name} {each.element.bytes}" for each in operands),
    ]
    return "\n".join(lines) + "\n"


def _outcome(
    ended: Ended, size: Size, operands: Sequence[Operand], known: Known, record_s: float
) -> Plan | _Refusal:
    """The recorder's answer for one size, as far as it can be trusted."""
    if ended.timed_out:
        return _Refusal(refused=refused("LATE", seconds=f"{record_s:g}"))
    try:
        reply = base.decode(ended.reply, _Reply)
    except (msgspec.DecodeError, UnicodeDecodeError):
        if os.WIFSIGNALED(ended.status):
            name = signal.strsignal(os.WTERMSIG(ended.status))
            return _Refusal(refused=refused("KILLED", signal=str(name)))
        status = os.WEXITSTATUS(ended.status)
        return _Refusal(refused=refused("ENDED", status=str(status)))
    if (refusal := reply.refusal) is not None:  # which host code may have forged
        row = find_refusal(refusal.refused)
        after = refusal.after is None or find_refusal(refusal.after) is not None
        if after and row is not None and row.verdict in (base.Verdict.FE, base.Verdict.RE):
            return refusal
    wrong: str | None = "it holds no calls"
    if reply.recorded is not None:
        plan = assembled(reply.recorded, size, operands, known.variables, known.declared.entries)
        wrong = flaw(plan, operands, known)
        if wrong is None:
            return plan
    return _Refusal(refused=refused("CORRUPTED", how=str(wrong)))


def _rejected(
    refusal: _Refusal, places: Mapping[int, Place], submission: Submission
) -> base.Rejected:
    """The rejection with the student's line, from the innermost frame in the student's files."""
    row = find_refusal(refusal.refused)
    assert row
    verdict, kind, words = row.verdict, row.kind, refusal_sentence(refusal.refused)
    function = refusal.refused.args.get("function", "")
    library = vendor_library(function)
    if kind is base.Kind.FORBIDDEN_CALL and library is not None:
        kind = base.Kind.LIBRARY
        words = phrase(
            "{function} cannot be used in run_custom: {library} is a compiled library, and its "
            "launches cannot be recorded, not even where the lab allows libraries",
            function=function,
            library=library,
        )
    # A failed call explains a crash, or why nothing was launched.
    if refusal.after and (kind is base.Kind.HOST_CRASH or row.name == "NO_KERNEL"):
        verdict = base.Verdict.RE
        before = refusal_sentence(refusal.after)
        words = phrase("{what} after {failure}", what=words, failure=before)
    if refusal.call > 1:
        words = phrase(
            "{what}, in call {call} of run_custom for one size", what=words, call=refusal.call
        )
    place = _innermost(refusal.frames, places)
    finding = base.Finding.at(place, kind, Severity.ERROR, words)
    if place:
        words = phrase("{place}: {what}", place=f"{place.file}:{place.line}", what=words)
    # What is defined in a file that nobody includes is called like a library that is not there.
    if kind is base.Kind.FORBIDDEN_CALL:
        words = with_hint(words, submission)
    return base.Rejected(verdict, words, (finding,))


_LAST_ADDRESS = 2**48
_MAX_FRAMES = 1024
_PLACE = re.compile(r"^(?P<file>.+):(?P<line>\d+)(?: \(discriminator \d+\))?$")


def locate(
    frames: Collection[int], build: Build, submission: Submission, sandbox: Sandbox
) -> dict[int, Place]:
    """File and line of every frame that lies in the submission's own files. The rest is left out;
    so is everything where there is no addr2line."""
    program = shutil.which("addr2line", path="/usr/bin:/bin")
    ordered = sorted(frame for frame in frames if 0 < frame <= _LAST_ADDRESS)[:_MAX_FRAMES]
    if program is None or not ordered:
        return {}
    # A return address may already belong to the next line: ask for the byte before it.
    addresses = [f"{frame - 1:#x}" for frame in ordered]
    done = sandbox.run(
        [program, "-e", str(build.host_library), *addresses],
        cwd=build.host_library.parent,
        limits=ProcessLimits(cpu_s=10),
        readable=[build.host_library.parent],
    )
    names = {file.name for file in submission.files}
    places: dict[int, Place] = {}
    for frame, answer in zip(ordered, done.stdout.splitlines(), strict=False):
        if (place := _PLACE.match(answer)) is not None:
            name = place["file"].rpartition("/source/")[2].removeprefix("./")
            if name in names:
                places[frame] = Place(file=name, line=int(place["line"]))
    return places


# --- the recorder's process --------------------------------------------------------------------

_SOURCES = (Path(__file__).with_name("recorder.cpp"), runtime.SOURCE)
_HEAD = re.compile(rb"([012]) (\d+) (\d+)\n")
_HEAD_BYTES = 64  # of a frame, at most
_ATTEMPTS = 2  # one more if another process kills the recorder, or host code recorded nothing
_START_S = 5.0  # allowed on top of the sizes' own time


class Ended(Record):
    timed_out: bool  # it used its time
    starved: bool  # the machine was too busy to give it its time
    status: int  # as from waitpid
    reply: bytes


def recorder_program(toolchain: Toolchain) -> base.Native:
    """The recorder, to be compiled with this toolkit's headers."""
    version = toolchain.cuda_version.replace(".", "_")
    flags = (
        "-O1",
        "-rdynamic",
        f"-I{toolchain.include}",
        f"-I{runtime.SOURCE.parent}",
        f"-DTOOLKIT_{version}",
        *macros(),
        *refusals.macros(),
        *lockdown.macros(),
        "-Wl,-z,now",  # the first call of a function leaves no trace
        "-Wl,--no-as-needed",  # what a host library is linked with is there when it is loaded
        "-lm",
        "-ldl",
    )
    return base.Native(name="recorder", sources=_SOURCES, shared=False, flags=flags)


def _run_recorder(
    recorder: Path, library: Path, request: str, sizes: list[str], sandbox: Sandbox, limits: Limits
) -> list[Ended]:
    """How the process of each of the ``sizes`` ended, up to one that never ended by itself. Raises
    MachineError when the recorder itself fails."""
    count = len(sizes)
    with tempfile.TemporaryDirectory(prefix="sgemm-record-") as name:
        scratch = Path(name).resolve()
        # The recorder is given no path: its memory, which host code reads, holds none.
        (scratch / "library").symlink_to(library)
        (scratch / "request").write_text(request)
        (scratch / "sizes").write_text("".join(f"{size}\n" for size in sizes))
        allowed = lockdown.host_code_filter() if sandbox.filtered else b""
        (scratch / "filter").write_bytes(allowed)
        for _ in range(_ATTEMPTS):
            done = sandbox.run(
                [str(recorder)],
                cwd=scratch,
                limits=ProcessLimits(
                    cpu_s=limits.record_s * count + _START_S,
                    memory_mb=limits.memory_mb,
                    result_bytes=(MAX_REPLY_BYTES + _HEAD_BYTES) * count,
                ),
                readable=[recorder, library, scratch],
                watches=True,
            )
            ended = _split(done.result, count)
            limit = done.timed_out or any(each.timed_out for each in ended[-1:])
            killed = any(map(_killed, ended))
            starved = done.starved or any(each.starved for each in ended)
            if not killed and not starved and (limit or len(ended) == count):
                return ended
    if starved:
        raise base.MachineError.saying(
            "the machine was too busy to give host code its {seconds:g} s of CPU time",
            seconds=limits.record_s,
        )
    if killed:
        raise base.MachineError.saying(
            "host code was killed twice from outside; is there enough memory?"
        )
    words = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
    raise base.MachineError.saying("the recorder does not run to its end: {words}", words=words[0])


def _split(data: bytes, count: int) -> list[Ended]:
    """The recorder's frames; fewer than ``count`` when it stopped early."""
    frames: list[Ended] = []
    at = 0
    while len(frames) < count and (head := _HEAD.match(data, at)):
        at = head.end() + int(head[3])
        late, status, reply = head[1], int(head[2]), data[head.end() : at]
        frames.append(
            Ended(timed_out=late == b"1", starved=late == b"2", status=status, reply=reply)
        )
    return frames


def _killed(ended: Ended) -> bool:
    """Killed from outside: the recorder reports its own kills, and host code cannot fake one."""
    killed = os.WIFSIGNALED(ended.status) and os.WTERMSIG(ended.status) == signal.SIGKILL
    return killed and not ended.timed_out and not ended.starved and not ended.reply
