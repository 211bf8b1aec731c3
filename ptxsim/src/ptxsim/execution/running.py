"""Runs a program beside its device: one process for each, a socket and a memory file between."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

from ptxsim.execution import messages
from ptxsim.execution.building import LIBRARY, stand_in
from ptxsim.execution.device import Device
from ptxsim.execution.found import leak
from ptxsim.execution.host_code import HostCode
from ptxsim.execution.sources import Sources
from ptxsim.findings.finding import Severity
from ptxsim.findings.remarks import Remark, in_words
from ptxsim.launching import default_engine
from ptxsim.nvcc import CompileError
from ptxsim.outcome import Reason, RefusedProgram
from ptxsim.text import phrase

_SEALS = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
_ANOTHER = "not linked with CUDA's shared runtime: build it by ptxsim nvcc, with nvcc's options"
_TOO_LITTLE = phrase("too little memory on this machine; give smaller arrays")
_BROKEN = phrase("host code wrote into the channel to its device")


@dataclass(frozen=True)
class Execution:
    """How a program ended, and what is wrong with it. ``str()`` is for people."""

    status: int  # its own; -N: by signal N
    remarks: tuple[Remark[str], ...]
    launches: int
    refused: RefusedProgram | None  # why it could not go on
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
        """What is wrong, with excerpts of the sources."""
        return in_words(self.remarks, self.sources.text)


def execute(
    program: Path | str,
    arguments: Sequence[str] = (),
    *,
    seconds: float = 600.0,
    stops: bool = False,
    captured: bool = False,
    folders: Sequence[Path] = (),
) -> Execution:
    """Run a program that ``ptxsim nvcc`` has built to its end, with this process's own standard
    input and, unless it is ``captured``, output.

    seconds: of CPU time for one launch. stops: at the first error. folders: of sources, beside the
    current one and that of the program. Raises CompileError for a program that was built in another
    way, EngineError, OSError.
    """
    program = Path(program)
    if LIBRARY.encode() not in program.read_bytes():
        raise CompileError(f"{program}: {_ANOTHER}")
    folder = stand_in()
    memory = os.memfd_create("device-memory", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(memory, messages.ARENA_BYTES)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, _SEALS)
    ours, theirs = socket.socketpair()
    host = HostCode(program, folders)
    device = Device(default_engine(), memory, host, seconds)
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
        why = _serve(device, ours, running, stops)
        status = _end(running)
        text = None
        if printed:
            printed.seek(0)
            text = printed.read().decode(errors="replace")
    os.close(memory)
    remarks = device.found.remarks()
    if isinstance(why, messages.BrokenChannel):
        remarks.insert(0, Remark(kind="host-access", severity=Severity.ERROR, message=_BROKEN))
    refused = why if isinstance(why, RefusedProgram) else None
    if status == 0 and refused is None and device.left:
        remarks.append(leak(device.left))
    launches = device.launches.total()
    return Execution(status, tuple(remarks), launches, refused, text, host.sources)


def _serve(
    device: Device, channel: socket.socket, running: subprocess.Popen[bytes], stops: bool
) -> Exception | None:
    """Answer the program until it has ended, or cannot go on: why."""
    Thread(target=_close_behind, args=(running.pid, channel), daemon=True).start()
    try:
        for request, more in messages.requests(channel):
            answer = device.answer(request, more)
            if stops and device.found.errors:
                running.kill()
                break
            if answer is not None:
                messages.reply(channel, answer)
    except (RefusedProgram, messages.BrokenChannel) as why:
        running.kill()
        return why
    except MemoryError:
        running.kill()
        return RefusedProgram(Reason.TOO_LARGE, _TOO_LITTLE)
    except KeyboardInterrupt:
        running.send_signal(signal.SIGINT)
    except ConnectionError:  # it ended while its kernel ran
        pass
    except BaseException:
        running.kill()
        raise
    return None


def _close_behind(process: int, channel: socket.socket) -> None:
    """Let nothing more come once the program has ended, whoever else holds the channel."""
    with suppress(OSError):  # who waits for the program itself may be faster
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
        channel.shutdown(socket.SHUT_RD)


def _end(running: subprocess.Popen[bytes]) -> int:
    try:
        return running.wait()
    except KeyboardInterrupt:
        running.kill()
        return running.wait()
