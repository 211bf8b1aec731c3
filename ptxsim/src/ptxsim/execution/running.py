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
from typing import IO

from ptxsim.execution import messages
from ptxsim.execution.building import LIBRARY, stand_in
from ptxsim.execution.device import Device
from ptxsim.execution.found import leak
from ptxsim.execution.host_code import HostCode
from ptxsim.execution.missing import check_calls
from ptxsim.execution.program_file import check_program
from ptxsim.execution.progress import Progress
from ptxsim.execution.sources import Sources
from ptxsim.findings.finding import Severity
from ptxsim.findings.remarks import Remark, in_words
from ptxsim.findings.writes import Element, Write, in_lines
from ptxsim.launching import default_engine
from ptxsim.outcome import Reason, RefusedProgram
from ptxsim.text import Message, phrase

_SEALS = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
_TICK = 0.1  # seconds
_TOO_LITTLE = phrase("too little memory on this machine; give smaller arrays")
_BROKEN = phrase("host code wrote into the channel to its device")


@dataclass(frozen=True)
class Execution:
    """How a program ended, and what is wrong with it. ``str()`` is for people."""

    status: int  # its own; -N: by signal N
    remarks: tuple[Remark[str], ...]
    launches: int
    skipped: int  # of these, since they would have changed nothing
    notes: tuple[Message, ...]  # though nothing is wrong
    refused: RefusedProgram | None  # why it could not go on
    writes: tuple[Write, ...]  # to watched elements, in order
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
        """What is wrong, with excerpts of the sources, and notes."""
        if writes := "\n".join(in_lines(self.writes, self.writes_left_out, self.sources.text)):
            yield writes
        yield from in_words(self.remarks, self.sources.text)
        yield from (f"note: {each}" for each in self.notes)


def execute(
    program: Path | str,
    arguments: Sequence[str] = (),
    *,
    seconds: float = 600.0,
    watch: Sequence[Element] = (),
    skips: bool = True,
    stops: bool = False,
    captured: bool = False,
    folders: Sequence[Path] = (),
) -> Execution:
    """Run a program that ``ptxsim nvcc`` has built to its end, with this process's own standard
    input and, unless it is ``captured``, output.

    seconds: of CPU time for one launch. watch: elements of which every write is listed. skips:
    launches that would change nothing. stops: at the first error. folders: of sources, beside the
    current one and that of the program. Raises CompileError for a program that was built in another
    way, EngineError, OSError.
    """
    program = Path(program)
    check_program(program)
    folder = stand_in()
    check_calls(program, folder / LIBRARY)
    memory = device_memory()
    ours, theirs = socket.socketpair()
    host, engine = HostCode(program, folders), default_engine()
    device = Device(engine, memory, host, seconds, watch, skips=skips)
    paths = [str(folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": ":".join(paths),
        "PTXSIM_CHANNEL": f"{theirs.fileno()},{memory}",
    }
    with ExitStack() as stack:
        stack.enter_context(ours)
        # A pipe would end only with the last of the program's own children.
        printed = stack.enter_context(tempfile.TemporaryFile()) if captured else None
        with theirs:
            running = subprocess.Popen(
                [program.absolute(), *arguments],
                env=environment,
                pass_fds=(theirs.fileno(), memory),
                stdout=printed,
            )
        why: RefusedProgram | messages.BrokenChannel | None = None
        interrupted = False
        progress = Progress()
        with ThreadPoolExecutor(1) as beside:  # so that this thread may be interrupted
            served = beside.submit(_serve, ours, device, progress, stops)
            try:
                while not wait([served], _TICK).done:
                    progress.update()
                    if running.poll() is not None:  # though its own children may hold the channel
                        ours.shutdown(socket.SHUT_RD)
                if served.result():
                    running.kill()
                running.wait()
            except (RefusedProgram, messages.BrokenChannel) as error:
                why = error
                running.kill()
            except MemoryError:
                why = RefusedProgram(Reason.TOO_LARGE, _TOO_LITTLE)
                running.kill()
            except KeyboardInterrupt:
                interrupted = True
                signal.signal(signal.SIGINT, lambda *_: running.kill())  # if it is impatient
                running.send_signal(signal.SIGINT)
                engine.library.sim_interrupt()
                ours.shutdown(socket.SHUT_RDWR)
            except ConnectionError:  # it ended while its kernel ran
                pass
            except BaseException:
                running.kill()
                raise
        status = running.wait()
        status = -signal.SIGINT if interrupted else status
        text = _text(printed) if printed else None
    os.close(memory)
    remarks = device.found.remarks()
    if isinstance(why, messages.BrokenChannel):
        remarks.insert(0, Remark(kind="host-access", severity=Severity.ERROR, message=_BROKEN))
    refused = why if isinstance(why, RefusedProgram) else None
    if status == 0 and refused is None and device.left:
        remarks.append(leak(device.left))
    return Execution(
        status=status,
        remarks=tuple(remarks),
        launches=device.launches.total(),
        skipped=device.skipped,
        notes=tuple(device.notes),
        refused=refused,
        writes=device.watcher.writes,
        writes_left_out=device.watcher.left_out,
        mistakes=tuple(device.watcher.mistakes),
        printed=text,
        sources=host.sources,
    )


def device_memory() -> int:
    """A file for the memory of a device, which nobody can resize; both processes map it."""
    memory = os.memfd_create("device-memory", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(memory, messages.ARENA_BYTES)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, _SEALS)
    return memory


def _serve(channel: socket.socket, device: Device, progress: Progress, stops: bool) -> bool:
    """Answer the program; return whether it has to be ended, at its first error."""
    for request, more in messages.requests(channel):
        progress.begin(request)
        try:
            answer = device.answer(request, more)
        finally:
            progress.end()
        if stops and device.found.errors:
            return True
        if answer is not None:
            messages.reply(channel, answer)
    return False


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
