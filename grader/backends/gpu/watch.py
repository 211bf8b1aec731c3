"""Other activity on the GPU during a measurement, as far as NVML lets us see it."""

from __future__ import annotations

import os

from grader.backends.gpu.nvml import Nvml
from grader.model import Message, Record, listed, phrase

# Bits of nvmlDeviceGetCurrentClocksEventReasons (nvml.h). Idleness and manually set
# clocks are ignored. The power cap affects submission and baseline alike, so it is only reported.
_TOLD = {0x4: phrase("power cap")}
_DISTURBING = {
    0x8: phrase("hardware slowdown"),
    0x20: phrase("temperature"),
    0x40: phrase("temperature (hardware)"),
    0x80: phrase("power brake"),
}


class Sight(Record):
    """The GPU at one moment."""

    clock_mhz: int | None  # None: NVML does not tell
    slowed: tuple[Message, ...]  # why the clock is not higher
    disturbance: Message | None  # why a repetition must be dropped, in words
    unseen: tuple[Message, ...] = ()  # what NVML does not tell, in words


class Watch:
    """Watches the GPU or the MIG slice that this process uses.

    Create it before this process has a CUDA context. NVML may number processes differently from us,
    so ``begin`` recognises our process as the one that has appeared since.
    """

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._before = nvml.processes() or frozenset()
        self._ours: frozenset[int] = frozenset()

    def begin(self) -> None:
        """Our context exists now; every other process belongs to someone else."""
        self._ours = ((self._nvml.processes() or frozenset()) - self._before) | {os.getpid()}

    def look(self) -> Sight | None:
        """None when NVML is not there or tells nothing."""
        clock, reasons = self._nvml.clock_mhz(), self._nvml.clock_reasons()
        processes = self._nvml.processes()
        answers = {
            phrase("the SM clock"): clock,
            phrase("what slows the clock down"): reasons,
            phrase("other processes"): processes,
        }
        unseen = tuple(what for what, answer in answers.items() if answer is None)
        if len(unseen) == len(answers):
            return None
        slow = [words for bit, words in _DISTURBING.items() if (reasons or 0) & bit]
        told = [words for bit, words in _TOLD.items() if (reasons or 0) & bit]
        others = sorted((processes or frozenset()) - self._ours)
        disturbance: Message | None = None
        if others:
            disturbance = phrase(
                "in use by process {numbers}", numbers=", ".join(map(str, others[:5]))
            )
        elif slow:
            disturbance = phrase("slowed by {reasons}", reasons=listed(slow))
        return Sight(clock_mhz=clock, slowed=(*told, *slow), disturbance=disturbance, unseen=unseen)
