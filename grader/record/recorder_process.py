"""The recorder's process: how it is compiled, run in the sandbox, and what it answers."""

from __future__ import annotations

import os
import re
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path

from grader.base import MachineError, Native
from grader.build import Toolchain
from grader.labs import Limits
from grader.record import refusals
from grader.record.calls import MAX_REPLY_BYTES, macros
from grader.sandbox import ProcessLimits, Sandbox
from grader.sandbox import seccomp as lockdown
from ptxsim.records import Record
from ptxsim.tensor_maps import ENGINE_HEADERS

_SOURCE = Path(__file__).with_name("cudart.cpp")
_HEAD = re.compile(rb"([012]) (\d+) (\d+)\n")
_HEAD_BYTES = 64  # of a frame, at most
_ATTEMPTS = 2  # one more if another process kills the recorder, or host code recorded nothing
_START_S = 5.0  # allowed on top of the sizes' own time


class Ended(Record):
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
        f"-I{ENGINE_HEADERS}",
        f"-DTOOLKIT_{version}",
        *macros(),
        *refusals.macros(),
        *lockdown.macros(),
        "-Wl,--no-as-needed",  # what a host library is linked with is there when it is loaded
        "-lm",
        "-ldl",
    )
    return Native(name="recorder", sources=(_SOURCE,), shared=False, flags=flags)


def run_recorder(
    recorder: Path,
    request: str,
    sizes: Sequence[str],
    sandbox: Sandbox,
    *,
    host_library: Path,
    limits: Limits,
) -> list[Ended]:
    """How the process of each of the ``sizes`` ended, up to one that never ended by itself. Raises
    MachineError when the recorder itself fails."""
    count = len(sizes)
    with tempfile.TemporaryDirectory(prefix="sgemm-record-") as name:
        scratch = Path(name).resolve()
        (scratch / "request").write_text(request)
        (scratch / "sizes").write_text("".join(f"{size}\n" for size in sizes))
        allowed = lockdown.host_code_filter() if sandbox.filtered else b""
        (scratch / "filter").write_bytes(allowed)
        for _ in range(_ATTEMPTS):
            done = sandbox.run(
                [str(recorder), str(scratch)],
                cwd=scratch,
                limits=ProcessLimits(
                    cpu_s=limits.record_s * count + _START_S,
                    memory_mb=limits.memory_mb,
                    result_bytes=(MAX_REPLY_BYTES + _HEAD_BYTES) * count,
                ),
                readable=[recorder, host_library, scratch],
                watches=True,
            )
            ended = _split(done.result, count)
            limit = done.timed_out or any(each.timed_out for each in ended[-1:])
            killed = any(map(_killed, ended))
            starved = done.starved or any(each.starved for each in ended)
            if not killed and not starved and (limit or len(ended) == count):
                return ended
    if starved:
        raise MachineError.saying(
            "the machine was too busy to give host code its {seconds:g} s of CPU time",
            seconds=limits.record_s,
        )
    if killed:
        raise MachineError.saying(
            "host code was killed twice from outside; is there enough memory?"
        )
    words = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
    raise MachineError.saying("the recorder does not run to its end: {words}", words=words[0])


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
