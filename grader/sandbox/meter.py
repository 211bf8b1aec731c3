"""Decides why processes take long: through their own work, or because the machine is too busy.

A limit counts work, not waiting. ``Meter`` charges the processes of a session for the CPU time of
all of them, and for the time in which none of them wanted a CPU, so that sleeping gains nothing.
Time in which they were ready and others ran is free. After ``PATIENCE`` times the limit, a wall
clock ends the processes that are left; the machine was then too busy.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

PATIENCE = 10  # wall time allowed for each second of a limit
_TICKS = os.sysconf("SC_CLK_TCK")
_WANTS_TO_GO_ON = ("R", "D")  # running or ready; waiting for a disk
# Of /proc/PID/stat behind the name: state, then utime, stime, cutime, cstime.
_STATE, _FIRST_TIME, _LAST_TIME = 0, 11, 15
_MOST_PAUSE_S, _LEAST_PAUSE_S = 0.25, 0.05


class TookTooLong(Exception):  # noqa: N818 - what the processes did, not a fault of ours
    """The processes used their CPU time, or slept instead."""


class FellAsleep(TookTooLong):
    """Most of that time none of them wanted a CPU."""


class Starved(Exception):  # noqa: N818
    """The wall clock ran out before they had it."""


class Meter:
    """Charges the processes of ``session`` from now on, against ``limit_s``."""

    def __init__(self, session: int, limit_s: float) -> None:
        self._session = session
        self._limit = limit_s
        self._started = self._looked = time.monotonic()
        self._cpu, _ = _use(session)
        self._charged = self._slept = 0.0

    @property
    def charged(self) -> float:
        """Seconds, as of the last look."""
        return self._charged

    def pause(self) -> float:
        """Look, and return after how many seconds to look again.

        Raises TookTooLong or Starved when there is no time left.
        """
        now = time.monotonic()
        if now - self._looked >= _LEAST_PAUSE_S:
            cpu, wanting = _use(self._session)
            # A process that was collected between two reads is missing once.
            spent = max(0.0, cpu - self._cpu)
            slept = 0.0 if wanting else max(0.0, now - self._looked - spent)
            self._charged += spent + slept
            self._slept += slept
            self._cpu, self._looked = max(cpu, self._cpu), now
        if self._charged > self._limit:
            raise FellAsleep if self._slept > self._charged / 2 else TookTooLong
        left = PATIENCE * self._limit - (now - self._started)
        if left <= 0:
            raise Starved
        soonest = (self._limit - self._charged) / (os.cpu_count() or 1)
        return min(left, max(_LEAST_PAUSE_S, min(_MOST_PAUSE_S, soonest)))


def _use(session: int) -> tuple[float, bool]:
    """CPU seconds of a session's processes and their dead children; whether any wants more."""
    ticks, wanting = 0, False
    for folder in Path("/proc").iterdir():
        try:
            if not folder.name.isdigit() or os.getsid(int(folder.name)) != session:
                continue
            words = _stat(folder)
            ticks += sum(map(int, words[_FIRST_TIME:_LAST_TIME]))
            wanting = wanting or words[_STATE] in _WANTS_TO_GO_ON or _thread_wants(folder)
        except OSError:  # ended meanwhile
            continue
    return ticks / _TICKS, wanting


def _thread_wants(process: Path) -> bool:
    return any(_stat(task)[_STATE] in _WANTS_TO_GO_ON for task in (process / "task").iterdir())


def _stat(folder: Path) -> list[str]:
    return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
