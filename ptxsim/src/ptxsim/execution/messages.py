"""Requests that a program makes of the device: messages from an untrusted process.

A message is two lengths (32 bits each), JSON, and bytes that JSON would only blow up: PTX, or the
parameters of a launch. ``sink/channel.cpp`` has the other end.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import IO, Annotated, Literal

import msgspec

from ptxsim.engine_header import TEXTURE_MAGIC, fields
from ptxsim.plan.limits import LIMITS
from ptxsim.plan.records import MOST_ROWS, Dim3, Refused
from ptxsim.record import Record

FIRST_ADDRESS = 0x6A5D_0000_0000  # of device memory
ARENA_BYTES = 1 << 44  # none of it is used twice
STRIDE = 1 << 20  # allocations begin at its multiples; half of one, at least, is nobody's
_MOST_TEXT, _MOST_BYTES = 1 << 16, 1 << 28
_HEAD = struct.Struct("<II")

Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 56)]
Frames = tuple[Count, ...]  # return addresses in the program's file, innermost first

Arguments = Annotated[tuple[int, ...], msgspec.Meta(max_length=32)]


class AskDevice(Record, tag="device"):
    """Asks for the figures of the device."""


class NewModule(Record, tag="module"):
    """Brings PTX, as the message's bytes: one text or several to be linked, each ended by a zero.
    Modules count from 0 in the order of these messages."""


class LoadModules(Record, tag="load"):
    """Says that the modules are complete; the answer is that their variables hold their values."""


class FindKernel(Record, tag="kernel"):
    """Asks for the figures of a kernel."""

    name: str  # mangled
    module: Count


class MeasureKernel(FindKernel, tag="measure"):
    """Asks for the figures of a kernel that ptxas has to tell."""


class ListVariables(Record, tag="variables"):
    """Asks for the names and sizes of a module's variables."""

    module: Count


class NewAllocation(Record, tag="allocate"):
    address: Count
    size: Count
    frames: Frames


class NewVariable(NewAllocation, tag="variable"):
    """A __device__ or __constant__ variable that host code knows."""

    name: str  # mangled
    module: Count


class FreeAllocation(Record, tag="free"):
    address: Count
    frames: Frames


class DefineBytes(Record, tag="define", kw_only=True):
    """The host has written rows here."""

    address: Count
    size: Count  # bytes of a row
    rows: Annotated[int, msgspec.Meta(ge=1, le=MOST_ROWS)]
    pitch: Count  # bytes from the start of one to the next
    frames: Frames = ()  # where elements are watched; the call then waits for an answer
    waits: bool = False


class ShareMemory(DefineBytes, tag="share"):
    """Host code may read and write here without a call."""


class CopyBytes(DefineBytes, tag="copy"):
    """Rows here are now what those at ``source`` are."""

    source: Count
    source_pitch: Count


class ReadBytes(DefineBytes, tag="read"):
    """The host copies this to its own memory."""

    frames: Frames


class HostFault(Record, tag="fault"):
    """Host code touched device memory, and ends."""

    address: Count
    frames: Frames


class FailedCall(Record, tag="refused"):
    """A call failed, and host code goes on."""

    refused: Refused
    frames: Frames
    address: Count  # of the device memory that it is about; 0: none
    told: bool  # host code has the error, as the call's value


class AskForError(Record, tag="asked"):
    """Host code has asked for the error of launches that failed."""


class UsedRows(Record):
    """Memory that a copy or a memset uses: rows of ``size`` bytes."""

    address: Count
    size: Count
    rows: Annotated[int, msgspec.Meta(ge=1, le=MOST_ROWS)]
    pitch: Count  # bytes from the start of one row to the next
    writes: bool


class IssueOperation(Record, tag="issue"):
    """Comes before each operation of a program whose streams may run side by side."""

    what: Literal["launch", "copy", "memset", "free", "wait"]
    after: tuple[Count, ...] | None  # as Issued has it
    waits: bool  # host code does, for its end
    parts: Annotated[tuple[UsedRows, ...], msgspec.Meta(max_length=2)]  # () of a launch
    frames: Frames


class AskElapsed(Record, tag="elapsed"):
    """Asks how long something took, which the program itself answers."""


class LaunchKernel(Record, tag="launch"):
    """Asks for a launch; the message's bytes are its parameters."""

    kernel: str
    module: Count
    grid: Dim3
    block: Dim3
    shared_bytes: Count
    stack_bytes: Count
    cooperative: bool
    cluster: Dim3
    frames: Frames


class CallLibrary(Record, tag="library"):
    """A function of cuBLAS; the message's bytes are what its factors point to on the host, 16 of
    each. The answer: cublasStatus_t, and a result for the host."""

    function: str
    arguments: Arguments
    on_device: bool  # factors and results
    frames: Frames


Request = (
    AskDevice
    | CallLibrary
    | NewModule
    | LoadModules
    | FindKernel
    | MeasureKernel
    | ListVariables
    | NewAllocation
    | NewVariable
    | FreeAllocation
    | ShareMemory
    | DefineBytes
    | CopyBytes
    | ReadBytes
    | HostFault
    | FailedCall
    | AskForError
    | IssueOperation
    | AskElapsed
    | LaunchKernel
)
_DECODER: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)


class BrokenChannel(Exception):  # noqa: N818 - the program's fault, and no error of ours
    """The program sent what is no message: its host code wrote where it should not."""


def requests(channel: socket.socket) -> Iterator[tuple[Request, bytes]]:
    """Messages with their bytes, until the program has ended. Raises BrokenChannel."""
    with channel.makefile("rb") as incoming:
        while len(head := _received(incoming, _HEAD.size)) == _HEAD.size:
            text, more = _HEAD.unpack(head)
            if text > _MOST_TEXT or more > _MOST_BYTES:
                raise BrokenChannel
            try:
                request = _DECODER.decode(_received(incoming, text))
            except (msgspec.DecodeError, UnicodeDecodeError):
                raise BrokenChannel from None
            yield request, _received(incoming, more)


def reply(channel: socket.socket, answer: bytes) -> None:
    channel.sendall(struct.pack("<I", len(answer)) + answer)


def _received(incoming: IO[bytes], count: int) -> bytes:
    """So many bytes; fewer where the program ends."""
    try:
        return incoming.read(count)
    except ConnectionError:
        return b""


def macros() -> tuple[str, ...]:
    """These figures, and CUDA's limits, as options of the sink's compiler."""
    figures = {
        "FIRST_ADDRESS": FIRST_ADDRESS,
        "ARENA_BYTES": ARENA_BYTES,
        "STRIDE": STRIDE,
        "MAX_MESSAGE_BYTES": _MOST_TEXT,
        "MAX_BLOB_BYTES": _MOST_BYTES,
        "MAX_ROWS": MOST_ROWS,
        "TEXTURE_MAGIC": TEXTURE_MAGIC,
        **LIMITS,
    }
    given = (f"-D{name}={value}ull" for name, value in figures.items())
    return (*given, f"-DTEXTURE_FIELDS={fields('Texture')}")
