"""Base of the records of all stages."""

import functools
import threading
from collections.abc import Mapping
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
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


Dims = dict[str, int]  # a size: its dimensions by name, in their order


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


class SourceFile(Record):
    name: str  # path inside the submission folder, '/' separated
    sha256: str
    size: int  # bytes


class Submission(Record):
    """The file to hand in and any local headers, exactly as read; not yet compiled."""

    student: str  # the name in the list of submissions
    folder: Path  # absolute; for messages only: it is never read again
    files: tuple[SourceFile, ...]  # sorted by name; what the build may see
    contents: Mapping[str, bytes]  # of ``files`` by name: what is compiled, hashed and shown
    sha256: str  # over names and contents of ``files``
    main: str  # of ``files``: the one that is compiled
    defines: tuple[str, ...] = ()  # macros that the build gets: "BM=64"


class KernelInfo(Record):
    """One __global__ function as its cubin describes it."""

    name: str  # mangled
    registers: int  # per thread
    shared_bytes: int  # static, per block
    spill_bytes: int  # stores plus loads, per thread
