"""NVML's answers about one GPU, or about one MIG slice of it.

NVML reports what CUDA does not: other processes, the current clock, and why it is not higher. Each
answer is None where it gives none: ``nvidia-ml-py`` is not installed, the driver hides something
from this user, or a slice has no such figure. Nothing here changes a setting.
"""

import importlib.util
import math
import os
from typing import Any

from grader.base import MachineError
from grader.results import Watched
from ptxsim.plan import Record
from ptxsim.text import Message, listed, phrase

_MEMORY_SLICES = 8  # a card's memory is divided into so many parts, and its bandwidth with it
_TRANSFERS = 2  # per clock of the memory


class Nvml:
    """Asks about the GPU with this UUID; one that begins with ``MIG-`` names a slice. Memory,
    processes and multiprocessors are the slice's own. The clock, and what slows it down, belong to
    the whole card."""

    def __init__(self, uuid: str | None) -> None:
        self._nvml: Any = None
        self._device: Any = None
        self._card: Any = None
        if uuid is None or importlib.util.find_spec("pynvml") is None:
            return
        import pynvml

        try:
            pynvml.nvmlInit()
            self._device = self._card = pynvml.nvmlDeviceGetHandleByUUID(uuid.encode())
        except pynvml.NVMLError:
            return
        self._nvml = pynvml
        if uuid.startswith("MIG-"):
            self._card = self._ask("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", self._device)

    def clock_mhz(self) -> int | None:
        clock: int | None = self._ask("nvmlDeviceGetClockInfo", self._card, "NVML_CLOCK_SM")
        return clock

    def clock_reasons(self) -> int | None:
        """Why the clock is not higher: nvmlDeviceGetCurrentClocksEventReasons's bits."""
        reasons: int | None = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", self._card)
        return reasons

    def processes(self) -> frozenset[int] | None:
        """Compute processes only, without a desktop's graphics."""
        running = self._ask("nvmlDeviceGetComputeRunningProcesses", self._device)
        return None if running is None else frozenset(int(process.pid) for process in running)

    def cores(self) -> int | None:
        """FP32 lanes of all multiprocessors of the card."""
        cores: int | None = self._ask("nvmlDeviceGetNumGpuCores", self._card)
        return cores

    def dram_gb_s(self) -> float | None:
        """Peak bandwidth of the memory; of a slice, the part that its share of the memory has. The
        share is rounded up to whole memory slices, as the driver reserves some bytes of each."""
        clock = self._ask("nvmlDeviceGetMaxClockInfo", self._card, "NVML_CLOCK_MEM")
        bits = self._ask("nvmlDeviceGetMemoryBusWidth", self._card)
        own = self._ask("nvmlDeviceGetMemoryInfo", self._device)
        whole = self._ask("nvmlDeviceGetMemoryInfo", self._card)
        if not clock or not bits or own is None or whole is None or not whole.total:
            return None
        slices = min(math.ceil(_MEMORY_SLICES * own.total / whole.total), _MEMORY_SLICES)
        bandwidth: float = _TRANSFERS * clock * 1e6 * bits / 8 / 1e9 * slices / _MEMORY_SLICES
        return bandwidth

    def _ask(self, function: str, handle: Any, constant: str | None = None) -> Any:
        """One answer; None where this NVML, this driver or this device gives none."""
        if self._nvml is None or handle is None or not hasattr(self._nvml, function):
            return None
        words = () if constant is None else (getattr(self._nvml, constant),)
        try:
            return getattr(self._nvml, function)(handle, *words)
        except self._nvml.NVMLError:
            return None


# Bits of nvmlDeviceGetCurrentClocksEventReasons (nvml.h). Idleness and manually set
# clocks are ignored. The power cap affects submission and baseline alike, so it is only reported.
_TOLD = {0x4: phrase("power cap")}
_DISTURBING = {
    0x8: phrase("hardware slowdown"),
    0x20: phrase("temperature"),
    0x40: phrase("temperature (hardware)"),
    0x80: phrase("power brake"),
}


class GpuSnapshot(Record):
    clock_mhz: int | None  # None: NVML does not tell
    slowed: tuple[Message, ...]  # why the clock is not higher
    disturbance: Message | None  # why a repetition must be dropped, in words
    unseen: tuple[Message, ...] = ()  # what NVML does not tell, in words


class GpuWatch:
    """Watches the GPU or the MIG slice that this process uses. Create it before this process has a
    CUDA context. NVML may number processes differently from us, so ``begin`` recognises our process
    as the one that has appeared since."""

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._before = nvml.processes() or frozenset()
        self._ours: frozenset[int] = frozenset()

    def begin(self) -> None:
        """Our context exists now; every other process belongs to someone else."""
        self._ours = ((self._nvml.processes() or frozenset()) - self._before) | {os.getpid()}

    def look(self) -> GpuSnapshot | None:
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
            numbers = ", ".join(map(str, others[:5]))
            disturbance = phrase("in use by process {numbers}", numbers=numbers)
        elif slow:
            disturbance = phrase("slowed by {reasons}", reasons=listed(slow))
        return GpuSnapshot(
            clock_mhz=clock, slowed=(*told, *slow), disturbance=disturbance, unseen=unseen
        )


# This many repetitions may be disturbed, or as many as were not, whichever is more.
_MAY_BE_DISTURBED = 10


class DisturbanceLog:
    """Observations between the repetitions, and how many repetitions were disturbed."""

    def __init__(self) -> None:
        self._snapshots: list[GpuSnapshot] = []
        self.disturbed = 0
        self._good = 0

    def accepts(self, snapshot: GpuSnapshot | None) -> bool:
        """Whether the repetition counts. Raises MachineError when too many did not."""
        if snapshot is not None:
            self._snapshots.append(snapshot)
        if snapshot is None or snapshot.disturbance is None:
            self._good += 1
            return True
        self.disturbed += 1
        if self.disturbed > max(_MAY_BE_DISTURBED, self._good):
            raise MachineError.saying(
                "the GPU was shared: {disturbed} of {all} repetitions were disturbed "
                "({how}); grade again when it is free",
                disturbed=self.disturbed,
                all=self.disturbed + self._good,
                how=snapshot.disturbance,
            )
        return False

    def seen(self) -> Watched | None:
        if not self._snapshots:
            return None
        clocks = [each.clock_mhz for each in self._snapshots if each.clock_mhz is not None]
        slowed = dict.fromkeys(reason for each in self._snapshots for reason in each.slowed)
        unseen = dict.fromkeys(what for each in self._snapshots for what in each.unseen)
        return Watched(
            sm_clock_mhz=(min(clocks), max(clocks)) if clocks else None,
            slowed=tuple(slowed),
            unseen=tuple(unseen),
        )
