"""From JSON to records, in any thread.

msgspec builds the description of a type when it is first decoded to. A second thread that needs
the same type in that moment reads half of it, and the process crashes. So descriptions are built
here, by one thread at a time; ``tests/test_layers.py`` sees that nobody else does it.
"""

from __future__ import annotations

import functools
import threading
from typing import Any, TypeVar, overload

import msgspec

_T = TypeVar("_T")
_BUILDING = threading.Lock()


@overload
def decoder(kind: type[_T]) -> msgspec.json.Decoder[_T]: ...
@overload
def decoder(kind: Any) -> msgspec.json.Decoder[Any]: ...  # a union
def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return _decoder(kind)


def decode(content: bytes | str, kind: type[_T]) -> _T:
    """Raises msgspec.MsgspecError, and UnicodeDecodeError for what is not UTF-8."""
    return decoder(kind).decode(content)


def convert(document: Any, kind: type[_T]) -> _T:
    """A record of what a file or a record holds. Raises msgspec.ValidationError."""
    _built(kind)
    return msgspec.convert(document, kind)


@functools.cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return _built(kind)


def _built(kind: Any) -> msgspec.json.Decoder[Any]:
    with _BUILDING:
        return msgspec.json.Decoder(kind)
