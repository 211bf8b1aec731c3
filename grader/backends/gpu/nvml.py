"""What NVML says of one GPU, or of one MIG slice of it.

NVML reports what CUDA does not: other processes, the current clock, and why it is not higher. Each
answer is None where it gives none: ``nvidia-ml-py`` is not installed, the driver hides something
from this user, or a slice has no such figure. Nothing here changes a setting.
"""

from __future__ import annotations

import importlib.util
import math
from typing import Any

_MEMORY_SLICES = 8  # a card's memory is divided into so many parts, and its bandwidth with it
_TRANSFERS = 2  # per clock of the memory


class Nvml:
    """Asks about the GPU with this UUID; one that begins with ``MIG-`` names a slice.

    Memory, processes and multiprocessors are the slice's own. The clock, and what slows it down,
    belong to the whole card.
    """

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
        """The current clock of the multiprocessors."""
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
        """Peak bandwidth of the memory; of a slice, the part that its share of the memory has.

        The share is rounded up to whole memory slices, as the driver reserves some bytes of each.
        """
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
