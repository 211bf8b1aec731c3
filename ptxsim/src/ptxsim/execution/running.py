"""Runs a program beside its device: one process for each, a socket and a memory file between."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from ptxsim.engine import Engine
from ptxsim.execution import messages
from ptxsim.execution.building import LIBRARY, stand_in
from ptxsim.execution.device import Device
from ptxsim.execution.host_code import HostCode
from ptxsim.execution.missing import check_calls
from ptxsim.execution.program_file import check_program
from ptxsim.execution.progress import Progress
from ptxsim.findings.finding import Severity
from ptxsim.findings.remarks import Remark
from ptxsim.findings.writes import Element, Write
from ptxsim.outcome import RefusedProgram
from ptxsim.text import Message, phrase

_SEALS = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
_TICK = 0.1  # seconds
_BROKEN = phrase("host code wrote into the channel to its device")


@dataclass(frozen=True)
class Execution:
    """How a program ended."""

    status: int  # its own; -N: by signal N
    remarks: tuple[Remark[str], ...]
    launches: int
    skipped: int  # of these, since they would have changed nothing
    notes: tuple[Message, ...]  # though nothing is wrong
    refused: RefusedProgram | None  # why it could not go on
    writes: tuple[Write, ...]  # to watched elements, in order
    writes_left_out: int  # further ones
    mistakes: tuple[str, ...]  # in what is watched


def execute(
    program: Path,
    arguments: Sequence[str],
    engine: Engine,
    seconds: float,
    watch: Sequence[Element] = (),
    *,
    skips: bool = True,
) -> Execution:
    """Run ``program`` to its end, with this process's own standard streams. Raises CompileError,
    EngineError, OSError."""
    check_program(program)
    folder = stand_in()
    check_calls(program, folder / LIBRARY)
    memory = device_memory()
    ours, theirs = socket.socketpair()
    device = Device(engine, memory, HostCode(program), seconds, watch, skips=skips)
    paths = [str(folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": ":".join(paths),
        "PTXSIM_CHANNEL": f"{theirs.fileno()},{memory}",
    }
    with ours:
        with theirs:
            running = subprocess.Popen(
                [program.absolute(), *arguments],
                env=environment,
                pass_fds=(theirs.fileno(), memory),
            )
        refused, broken, interrupted = None, False, False
        progress = Progress()
        with ThreadPoolExecutor(1) as beside:  # so that this thread may be interrupted
            served = beside.submit(_serve, ours, device, progress)
            try:
                while not wait([served], _TICK).done:
                    progress.update()
                served.result()
                running.wait()
            except RefusedProgram as why:
                refused = why
                running.kill()
            except messages.BrokenChannel:
                broken = True
                running.kill()
            except KeyboardInterrupt:
                interrupted = True
                signal.signal(signal.SIGINT, lambda *_: running.kill())  # if it is impatient
                running.send_signal(signal.SIGINT)
                engine.library.sim_interrupt()
                ours.shutdown(socket.SHUT_RDWR)
            except ConnectionError:  # it ended while its kernel ran
                pass
    status = running.wait()
    os.close(memory)
    remarks = tuple(device.remarks)
    if broken:
        remarks += (Remark(kind="host-access", severity=Severity.ERROR, message=_BROKEN),)
    launches = device.launches.total()
    status = -signal.SIGINT if interrupted else status
    seen = device.watcher
    return Execution(
        status,
        remarks,
        launches,
        device.skipped,
        tuple(device.notes),
        refused,
        seen.writes,
        seen.left_out,
        tuple(seen.mistakes),
    )


def device_memory() -> int:
    """A file for the memory of a device, which nobody can resize; both processes map it."""
    memory = os.memfd_create("device-memory", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(memory, messages.ARENA_BYTES)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, _SEALS)
    return memory


def _serve(channel: socket.socket, device: Device, progress: Progress) -> None:
    for request, more in messages.requests(channel):
        progress.begin(request)
        try:
            answer = device.answer(request, more)
        finally:
            progress.end()
        if answer is not None:
            messages.reply(channel, answer)
