"""A worker's side of its pipe: requests come on stdin, replies leave on what was its stdout."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from queue import Queue
from typing import BinaryIO, TypeVar

import msgspec

from grader.model import Record

_T = TypeVar("_T")


class Replies:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, reply: Record) -> None:
        with self._lock:
            self._stream.write(msgspec.json.encode(reply) + b"\n")
            self._stream.flush()


@contextlib.contextmanager
def replying() -> Iterator[Replies]:
    """Only replies reach the pipe: file descriptor 1 becomes stderr."""
    with os.fdopen(os.dup(1), "wb") as stream:
        os.dup2(2, 1)
        yield Replies(stream)


def requests(decoder: msgspec.json.Decoder[_T]) -> Iterator[_T]:
    """The grader's requests. When the grader's end of the pipe closes, the process ends."""
    lines: Queue[bytes] = Queue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    while True:
        yield decoder.decode(lines.get())


def _listen(lines: Queue[bytes]) -> None:
    pending: list[bytes] = []  # of a line that has not ended
    while chunk := os.read(0, 1 << 16):  # not sys.stdin, whose lock would outlive the interpreter
        first, *rest = chunk.split(b"\n")
        pending.append(first)
        for piece in rest:
            lines.put(b"".join(pending))
            pending = [piece]
    os._exit(1)
