"""Runs a program beside its device: one process for each, a socket and a memory file between."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from ptxsim.execution import messages
from ptxsim.execution.building import stand_in
from ptxsim.execution.device import Device, Settings
from ptxsim.execution.found import leak
from ptxsim.execution.host_code import HostCode
from ptxsim.execution.program_file import LIBRARY, check_calls, check_program
from ptxsim.execution.serving import program_environment
from ptxsim.execution.sources import Sources
from ptxsim.findings.finding import Severity
from ptxsim.findings.remarks import Remark, in_words
from ptxsim.findings.writes import ElementWrite, in_lines
from ptxsim.launching import default_engine
from ptxsim.outcome import Reason, RefusedProgram
from ptxsim.text import Message, phrase

_SEALS = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
_TICK = 0.1  # seconds
_TOO_LITTLE = phrase("too little memory on this machine; give smaller arrays")
_BROKEN = phrase("host code wrote into the channel to its device")
_USUAL = Settings()


@dataclass(frozen=True)
class Execution:
    """How a program ended, and what is wrong with it. ``str()`` is for people."""

    status: int  # its own; -N: by signal N
    remarks: tuple[Remark[str], ...]
    launches: int
    skipped: int  # of these, since they would have changed nothing
    notes: tuple[Message, ...]  # though nothing is wrong
    refused: RefusedProgram | None  # why it could not go on
    writes: tuple[ElementWrite, ...]  # to watched elements, in order
    writes_left_out: int  # further ones
    mistakes: tuple[str, ...]  # in what is watched
    printed: str | None  # on its standard output, where that was captured
    sources: Sources = field(repr=False)  # of which excerpts are shown

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong; notes say nothing against a program."""
        notes = all(each.severity is Severity.NOTE for each in self.remarks)
        return notes and self.refused is None

    def __str__(self) -> str:
        return "\n\n".join(self.paragraphs())

    def paragraphs(self) -> Iterator[str]:
        """Findings, with excerpts of the sources, and notes."""
        if writes := "\n".join(in_lines(self.writes, self.writes_left_out, self.sources.text)):
            yield writes
        yield from in_words(self.remarks, self.sources.text)
        yield from (f"note: {each}" for each in self.notes)


def execute(
    program: Path | str,
    arguments: Sequence[str] = (),
    settings: Settings = _USUAL,
    *,
    captured: bool = False,
    folders: Sequence[Path] = (),
) -> Execution:
    """Run a program that ``ptxsim nvcc`` has built to its end, with this process's own standard
    input and, unless it is ``captured``, output.

    folders: of sources, beside the current one and that of the program. Raises CompileError for a
    program that was built in another way, EngineError, OSError.
    """
    program = Path(program)
    check_program(program)
    library = stand_in()
    check_calls(program, library / LIBRARY)
    host, engine = HostCode(program, folders), default_engine()
    with ExitStack() as stack:
        memory = device_memory()
        stack.callback(os.close, memory)
        device = Device(engine, memory, host, settings)
        stack.callback(device.close)
        ours, theirs = map(stack.enter_context, socket.socketpair())
        environment = {**os.environ, **program_environment(library, theirs.fileno(), memory)}
        if others := os.environ.get("LD_LIBRARY_PATH"):
            environment["LD_LIBRARY_PATH"] += f":{others}"
        # A pipe would end only with the last of the program's own children.
        output = stack.enter_context(tempfile.TemporaryFile()) if captured else None
        with theirs:
            running = subprocess.Popen(
                [program.absolute(), *arguments],
                env=environment,
                pass_fds=(theirs.fileno(), memory),
                stdout=output,
            )
        why: RefusedProgram | messages.BrokenChannel | MemoryError | None = None
        interrupted = False
        with ThreadPoolExecutor(1) as beside:  # so that this thread may be interrupted
            served = beside.submit(device.serve, ours)
            try:
                while not wait([served], _TICK).done:
                    device.progress.update()
                    if running.poll() is not None:  # though its own children may hold the channel
                        ours.shutdown(socket.SHUT_RD)
                if served.result():
                    running.kill()
                running.wait()
            except (RefusedProgram, messages.BrokenChannel, MemoryError) as error:
                why = error.with_traceback(None)  # which would hold the memory
                running.kill()
            except KeyboardInterrupt:
                interrupted = True
                kill = signal.signal(signal.SIGINT, lambda *_: running.kill())  # if impatient
                stack.callback(signal.signal, signal.SIGINT, kill)
                running.send_signal(signal.SIGINT)
                engine.library.sim_interrupt(True)
                stack.callback(engine.library.sim_interrupt, False)
                ours.shutdown(socket.SHUT_RDWR)
            except ConnectionError:  # it ended while its kernel ran
                pass
            except BaseException:
                running.kill()
                raise
        status = running.wait()
        printed = None
        if output:
            output.seek(0)
            printed = output.read().decode(errors="replace")
    remarks = device.found.remarks()
    if isinstance(why, messages.BrokenChannel):
        remarks.insert(0, Remark(kind="host-access", severity=Severity.ERROR, message=_BROKEN))
    refused = why if isinstance(why, RefusedProgram) else None
    if isinstance(why, MemoryError):
        refused = RefusedProgram(Reason.TOO_LARGE, _TOO_LITTLE)
    if status == 0 and not (interrupted or refused) and device.left:
        remarks.append(leak(device.left))
    return Execution(
        status=-signal.SIGINT if interrupted else status,
        remarks=tuple(remarks),
        launches=device.launches.total(),
        skipped=device.skipped,
        notes=tuple(device.notes),
        refused=refused,
        writes=device.log.writes,
        writes_left_out=device.log.left_out,
        mistakes=tuple(device.log.mistakes),
        printed=printed,
        sources=host.sources,
    )


def device_memory() -> int:
    """A file for the memory of a device, which nobody can resize; both processes map it."""
    memory = os.memfd_create("device-memory", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(memory, messages.ARENA_BYTES)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, _SEALS)
    return memory
