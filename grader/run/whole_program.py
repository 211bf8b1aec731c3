"""One run of a whole program, beside ptxsim's device in another sandbox.

The two share a channel and the device's memory, nothing else: the program can neither see nor end
the device's process, and what that found leaves by a pipe that the program never holds.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from grader import base
from grader.build import WholeBuild, runtime_folder
from grader.labs import Limits, open_folder, read
from grader.run.process import Cage, WorkerProcess, decoded
from grader.run.simulator.device import engine_library
from grader.sandbox import Completed, ProcessLimits, Sandbox
from ptxsim import Seen, device_memory, program_environment, serving_command
from ptxsim.plan import Record
from ptxsim.text import phrase

ALL = sys.maxsize  # launches
_ARENA_MB = (1 << 20) + 4096  # of address space: the device's memory, mapped once
_OUTPUT_BYTES = 4 << 20
_SETTLING_S = 30.0  # CPU, for the device to say what it found
_DECODER: msgspec.json.Decoder[Seen] = base.decoder(Seen)


class ProgramRun(Record):
    done: Completed
    seen: Seen | None  # by ptxsim's device; None: on a GPU
    files: dict[str, bytes | None]  # that it wrote, of those asked for; None: it did not


def run_program(
    build: WholeBuild,
    arguments: Sequence[str],
    stdin: str,
    given: Mapping[str, bytes],
    wanted: Sequence[str],
    sandbox: Sandbox,
    limits: Limits,
    launches: int = ALL,
) -> ProgramRun:
    """given: files that it finds; wanted: those to bring back. launches: so many are carried out,
    others do nothing. Raises MachineError."""
    engine, library = engine_library().compiled(), runtime_folder()
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="sgemm-run-"))
        folder = Path(name).resolve()
        for each, content in given.items():
            (folder / each).parent.mkdir(parents=True, exist_ok=True)
            (folder / each).write_bytes(content)
        said = stack.enter_context(tempfile.TemporaryFile())
        said.write(stdin.encode())
        said.seek(0)
        ours, theirs = (each.detach() for each in socket.socketpair())
        memory = device_memory()
        shared = os.dup(memory)
        command = serving_command(
            engine, build.program, build.sources, ours, memory, limits.simulate_s, launches
        )
        cage = Cage(
            sandbox=sandbox,
            limits=ProcessLimits(
                cpu_s=limits.simulate_s, memory_mb=limits.memory_mb, shared_mb=_ARENA_MB
            ),
            readable=(engine, build.program, build.sources),
            handed=(ours, memory),
        )
        device = stack.enter_context(WorkerProcess(command, cage))
        done = sandbox.run(
            [str(build.program), *arguments],
            cwd=folder,
            limits=ProcessLimits(
                cpu_s=limits.simulate_s,
                memory_mb=limits.memory_mb,
                shared_mb=2 * _ARENA_MB,
                output_bytes=_OUTPUT_BYTES,
            ),
            readable=[build.program, library],
            writable=[folder],
            env=program_environment(library, theirs, shared),
            handed=(theirs, shared),
            stdin=said.fileno(),
            beside=(device.pid,),
        )
        who = phrase("ptxsim's device")
        answers = decoded(who, device.work(b"", _SETTLING_S), _DECODER)
        seen = next(answers, None)
        if seen is None and not done.timed_out:
            raise device.ended(who)
        descriptor = open_folder(folder)
        stack.callback(os.close, descriptor)
        return ProgramRun(
            done=done, seen=seen, files={name: _taken(name, descriptor) for name in wanted}
        )


def _taken(name: str, folder: int) -> bytes | None:
    try:
        return read(name, _OUTPUT_BYTES, folder)
    except OSError:
        return None
