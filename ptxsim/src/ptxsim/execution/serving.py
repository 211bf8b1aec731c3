"""The device of a program that somebody else runs, each in a process and a sandbox of its own.

The program holds one end of a channel, and nothing else of this process: it can neither see nor end
it, and what is found leaves by standard output, which only this process has.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ptxsim.engine import load_engine
from ptxsim.execution.device import Device, Settings
from ptxsim.execution.host_code import HostCode
from ptxsim.execution.messages import BrokenChannel
from ptxsim.findings.remarks import Remark
from ptxsim.outcome import RefusedProgram
from ptxsim.record import Record
from ptxsim.text import Message

_SET_DUMPABLE = 4  # of prctl


class Seen(Record):
    """All that the device saw of a program."""

    remarks: tuple[Remark[str], ...]
    launches: int
    refused: Message | None  # why it could not go on
    full: bool  # there was too little memory to watch all that it allocates
    broken: bool  # it wrote into the channel what is no message


def serving_command(
    engine: Path,
    program: Path,
    sources: Path,
    channel: int,
    memory: int,
    seconds: float,
    launches: int,
) -> tuple[str, ...]:
    """The command of such a process, which prints ``Seen`` as a line of JSON.

    sources: the folder where it was compiled. channel, memory: descriptors that it inherits.
    seconds: of CPU for one launch. launches: so many are carried out, others do nothing.
    """
    words = (engine, program, sources, channel, memory, seconds, launches)
    return (sys.executable, "-m", "ptxsim.execution.serving", *map(str, words))


def program_environment(library: Path, channel: int, memory: int) -> dict[str, str]:
    """The variables by which a program finds its device. library: the folder of the stand-in
    library."""
    return {"LD_LIBRARY_PATH": str(library), "PTXSIM_CHANNEL": f"{channel},{memory}"}


def _serve(words: Sequence[str]) -> Seen:
    engine, program, sources, channel, memory, seconds, launches = words
    os.chdir(sources)  # places are relative to it
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)  # addr2line reads the program, too
    host = HostCode(Path(program))
    settings = Settings(seconds=float(seconds), most=int(launches))
    device = Device(load_engine(Path(engine)), int(memory), host, settings)
    refused, full, broken = None, False, False
    with socket.socket(fileno=int(channel)) as ours:
        try:
            device.serve(ours)
        except RefusedProgram as why:
            refused = why.message
        except MemoryError:
            full = True
        except BrokenChannel:
            broken = True
        except ConnectionError:  # it ended while its kernel ran
            pass
    return Seen(
        remarks=tuple(device.found.remarks()),
        launches=device.launches.total(),
        refused=refused,
        full=full,
        broken=broken,
    )


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(_serve(sys.argv[1:])).decode() + "\n")
