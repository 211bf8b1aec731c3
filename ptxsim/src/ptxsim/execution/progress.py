"""A line on the terminal about the launch that a program waits for."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from ptxsim.execution.messages import LaunchKernel, Request
from ptxsim.findings.names import plain_name
from ptxsim.findings.remarks import clean
from ptxsim.text import phrase

_SILENT = 2.0  # seconds, from the program's start
_LINE = phrase("ptxsim: {kernel}, launch {number}, {seconds} s")
# Below the cursor, which comes back to where the program left it; the last row moves up before.
_SHOW, _HIDE = "\x1bD\x1b[A\x1b7\x1b[B\r\x1b[2K{text}\x1b8", "\x1b7\x1b[B\r\x1b[2K\x1b8"


class Progress:
    """Shows the line while a launch runs: so the program writes nothing meanwhile."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._shows = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._lock = Lock()
        self._kernel, self._number, self._shown = "", 0, ""

    @contextmanager
    def during(self, request: Request) -> Iterator[None]:
        """Answer a request meanwhile."""
        if isinstance(request, LaunchKernel):
            self._kernel, self._number = request.kernel, self._number + 1
        try:
            yield
        finally:
            with self._lock:
                self._kernel = ""
                if self._shown:
                    print(_HIDE, end="", file=sys.stderr, flush=True)
                self._shown = ""

    def update(self) -> None:
        seconds = time.monotonic() - self._started
        with self._lock:
            if not (self._shows and self._kernel and seconds >= _SILENT):
                return
            kernel, number = clean(plain_name(self._kernel)), self._number
            text = str(_LINE.given(kernel=kernel, number=number, seconds=int(seconds)))
            if text != self._shown:
                self._shown = text  # first: Ctrl-C may come at any time
                width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
                print(_SHOW.format(text=text[: width - 1]), end="", file=sys.stderr, flush=True)
