"""Base of the records of all stages."""

import functools
import threading
from datetime import datetime, timezone
from enum import Enum
from typing import Any, TypeVar, overload

import msgspec

from ptxsim.plan import Record, Size


class Verdict(str, Enum):
    AC = "AC"  # accepted
    WA = "WA"  # wrong answer
    CE = "CE"  # compile error
    RE = "RE"  # runtime error: illegal access, launch failure, host crash
    TLE = "TLE"  # time limit
    FE = "FE"  # folder or interface not as the lab requires
    RF = "RF"  # rule forbidden
    IE = "IE"  # internal error; never a zero


Dims = dict[str, int | str]  # a size, as ``Size`` has it: its dimensions by name, in their order


def size_text(dims: Dims) -> str:
    """A size in words: "64×64×32", "n = 1024"."""
    return str(Size(dims=dims))


# --- decoding ----------------------------------------------------------------------------------

_T = TypeVar("_T")
_BUILDING = threading.Lock()


@overload
def decoder(kind: type[_T]) -> msgspec.json.Decoder[_T]: ...
@overload
def decoder(kind: Any) -> msgspec.json.Decoder[Any]: ...  # a union
def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return _built(kind)


def decode(content: bytes | str, kind: type[_T]) -> _T:
    """Raises msgspec.MsgspecError, and UnicodeDecodeError for what is not UTF-8."""
    return decoder(kind).decode(content)


def convert(document: Any, kind: type[_T]) -> _T:
    """A record of what a file holds, or of a record that has more fields. Raises
    msgspec.ValidationError."""
    decoder(kind)
    return msgspec.convert(document, kind, from_attributes=True)


@functools.cache
def _built(kind: Any) -> msgspec.json.Decoder[Any]:
    with _BUILDING:
        return msgspec.json.Decoder(kind)


def moment(text: str) -> datetime:
    """A time with its zone from ISO 8601; UTC if it names none. Raises ValueError."""
    value = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    return value if value.tzinfo else value.replace(tzinfo=timezone.utc)


class KernelInfo(Record):
    """One __global__ function as its cubin describes it."""

    name: str  # mangled
    registers: int  # per thread
    shared_bytes: int  # static, per block
    spill_bytes: int  # stores plus loads, per thread
    local_bytes: int = 0  # of local memory, per thread


class BuildInfo(Record):
    ok: bool
    command: str  # the command lines of the compilers
    log: str  # what the compilers printed, cut to a readable length
    seconds: float  # wall
    kernels: tuple[KernelInfo, ...]
    arch: str | None = None  # what the kernels' figures are for, e.g. "sm_90"
