"""Reads what a running program writes, until it ends."""

from __future__ import annotations

import os
import selectors
import subprocess
from collections.abc import Mapping
from contextlib import closing

from grader.sandbox.meter import Meter

_CHUNK = 1 << 16


class Sink:
    """Keeps the first ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.data = bytearray()

    def take(self, chunk: bytes) -> None:
        self.data += chunk[: self.limit - len(self.data)]


def drain(process: subprocess.Popen[bytes], sinks: Mapping[int, Sink], meter: Meter) -> None:
    """Read every pipe until the program ends. Raises what ``meter`` raises.

    A pipe can outlive the program in a grandchild's hands, so its end is not waited for.
    """
    with selectors.DefaultSelector() as selector, closing(_EndWatch(process)) as ended:
        for fd in sinks:
            selector.register(fd, selectors.EVENT_READ)
        if ended.fd >= 0:
            selector.register(ended.fd, selectors.EVENT_READ)
        while True:
            ready = selector.select(min(meter.pause(), ended.interval))
            for key, _ in ready:
                if key.fd == ended.fd:
                    continue
                chunk = os.read(key.fd, _CHUNK)
                sinks[key.fd].take(chunk)
                if not chunk:
                    selector.unregister(key.fd)
            quiet = all(key.fd == ended.fd for key, _ in ready)
            if quiet and process.poll() is not None:
                return


class _EndWatch:
    """Wakes the reader when the child ends: by pidfd, else by looking every 10 ms."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        try:
            self.fd = os.pidfd_open(process.pid)
            self.interval = 3600.0
        except OSError:  # a kernel or a container without pidfd_open
            self.fd = -1
            self.interval = 0.01

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
