"""One run of a whole program, beside ptxsim's device in another sandbox.

The two share a channel and the device's memory, nothing else: the program can neither see nor end
the device's process, and what that found leaves by a pipe that the program never holds.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

import msgspec

from grader import base
from grader.build import runtime_folder
from grader.labs import Limits, read
from grader.run.gpu.device import Locks, Right
from grader.run.probe import VISIBLE
from grader.run.process import Cage, WorkerProcess, decoded
from grader.run.simulator.device import engine_library
from grader.sandbox import Completed, ProcessLimits, Sandbox, Starved, TookTooLong
from ptxsim import ARENA_BYTES, Seen, device_memory, program_environment, serving_command
from ptxsim.plan import Record
from ptxsim.text import phrase

ALL = sys.maxsize  # launches
_ARENA_MB = (ARENA_BYTES >> 20) + 4096  # of addresses: the device's memory, mapped once
_GPUS_MB = 1 << 36  # as much as CUDA may reserve
_CAPS = "nvidia-caps/*"  # devices of slices of a GPU
_OUTPUT_BYTES = 4 << 20  # of standard output, and of each file
_STARTING_S = 5.0  # CPU, for the device to load what it needs
_SETTLING_S = 30.0  # CPU, for it to say what it found
_DECODER: msgspec.json.Decoder[Seen] = base.decoder(Seen)


class ProgramRun(Record):
    done: Completed
    seen: Seen | None  # by ptxsim's device; None: on a GPU
    files: dict[str, bytes | None]  # that it wrote, of those asked for; None: it did not


class ProgramJob(Record):
    """A program, and what it gets."""

    program: Path  # beside its sources
    arguments: tuple[str, ...]
    stdin: str
    given: Mapping[str, bytes]  # files that it finds, by name
    wanted: tuple[str, ...]  # files to bring back


def simulate(job: ProgramJob, sandbox: Sandbox, limits: Limits, launches: int = ALL) -> ProgramRun:
    """launches: so many are carried out, others do nothing. Raises MachineError."""
    engine, library = engine_library().compiled(), runtime_folder()
    with _folder(job) as (folder, said), ExitStack() as stack:
        ours, theirs = (each.detach() for each in socket.socketpair())
        memory = device_memory()
        shared, watched = os.dup(memory), os.dup(memory)
        stack.callback(os.close, watched)
        sources = job.program.parent
        command = serving_command(
            engine, job.program, sources, ours, memory, limits.simulate_s, launches
        )
        cage = Cage(
            sandbox=sandbox,
            limits=ProcessLimits(
                cpu_s=limits.simulate_s, memory_mb=limits.memory_mb, shared_mb=_ARENA_MB
            ),
            readable=(engine, sources),
            handed=(ours, memory),
        )
        with WorkerProcess(command, cage) as device:
            done = sandbox.run(
                [str(job.program), *job.arguments],
                cwd=folder,
                limits=ProcessLimits(
                    cpu_s=limits.simulate_s + _STARTING_S,
                    memory_mb=limits.memory_mb,
                    shared_mb=2 * _ARENA_MB,
                    output_bytes=_OUTPUT_BYTES,
                ),
                readable=[job.program, library],
                writable=[folder],
                env=program_environment(library, theirs, shared),
                handed=(theirs, shared),
                stdin=said.fileno(),
                beside=(device.pid,),
                shared=watched,
            )
            who = phrase("ptxsim's device")
            seen = None
            with suppress(TookTooLong, Starved):
                seen = next(decoded(who, device.work(b"", _SETTLING_S), _DECODER), None)
            if seen is None and not done.timed_out:
                raise device.ended(who)
        return ProgramRun(done=done, seen=seen, files=_taken(job.wanted, folder))


def run_on_gpu(job: ProgramJob, sandbox: Sandbox, limits: Limits) -> ProgramRun:
    """The same with CUDA's own runtime. Its host code talks to the driver; while it runs, nobody
    else has a context. Raises MachineError."""
    locks = Locks()
    with _folder(job) as (folder, said):
        try:
            for right in Right:
                locks.take(right)
            done = sandbox.run(
                [str(job.program), *job.arguments],
                cwd=folder,
                limits=ProcessLimits(
                    cpu_s=limits.launch_s,
                    memory_mb=limits.memory_mb,
                    shared_mb=_GPUS_MB,
                    output_bytes=_OUTPUT_BYTES,
                ),
                readable=[job.program, Path("/sys")],
                writable=[folder, *Path("/dev").glob("nvidia*[!s]"), *Path("/dev").glob(_CAPS)],
                env={VISIBLE: os.environ.get(VISIBLE, "0")},
                stdin=said.fileno(),
                watches=True,
            )
        finally:
            locks.give(*reversed(Right))
        return ProgramRun(done=done, seen=None, files=_taken(job.wanted, folder))


@contextmanager
def _folder(job: ProgramJob) -> Iterator[tuple[Path, IO[bytes]]]:
    """The program's own folder with what it finds there, and its standard input."""
    with (
        tempfile.TemporaryDirectory(prefix="sgemm-run-") as name,
        tempfile.TemporaryFile() as said,
    ):
        folder = Path(name).resolve()
        for each, content in job.given.items():
            (folder / each).parent.mkdir(parents=True, exist_ok=True)
            (folder / each).write_bytes(content)
        said.write(job.stdin.encode())
        said.seek(0)
        yield folder, said


def _taken(names: Sequence[str], folder: Path) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = dict.fromkeys(names)
    for name in names:
        with suppress(OSError):
            found[name] = read(folder / name, _OUTPUT_BYTES)
    return found
