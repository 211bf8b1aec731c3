"""The GPU's identity, and other activity on it during a measurement.

NVML reports what CUDA does not: other processes, the current clock, and why it is not higher. If it
is missing (no ``nvidia-ml-py``, or a driver that hides it), the result says so.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import cupy
from cupy.cuda import runtime

from grader.backends.probe import first_gpu_uuid, gpu_uuid
from grader.hardware.peaks import fp32_peak_tflops
from grader.model import GpuInfo, Record

# Bits of nvmlDeviceGetCurrentClocksEventReasons (nvml.h). Idleness and manually set
# clocks are ignored. The power cap affects submission and baseline alike, so it is only reported.
_TOLD = {0x4: "power cap"}
_DISTURBING = {
    0x8: "hardware slowdown",
    0x20: "temperature",
    0x40: "temperature (hardware)",
    0x80: "power brake",
}


class Sight(Record):
    """The GPU at one moment."""

    clock_mhz: int
    slowed: tuple[str, ...]  # why the clock is not higher
    disturbance: str | None  # why a repetition must be dropped, in words


class Watch:
    """Watches through NVML the GPU that this process uses.

    Create it before this process has a CUDA context. NVML may number processes differently from us,
    so ``begin`` recognises our process as the one that has appeared since.
    """

    def __init__(self) -> None:
        self._nvml: Any = None
        self._device: Any = None
        self._before: frozenset[int] = frozenset()
        self._ours: frozenset[int] = frozenset()
        if importlib.util.find_spec("pynvml") is None:
            return
        import pynvml

        try:
            pynvml.nvmlInit()
            self._device = pynvml.nvmlDeviceGetHandleByUUID((first_gpu_uuid() or "").encode())
            self._nvml = pynvml
            self._before = self._processes()
        except pynvml.NVMLError:
            self._nvml = None

    def begin(self) -> None:
        """Our context exists now; every other process belongs to someone else."""
        if self._nvml is not None:
            self._ours = (self._processes() - self._before) | {os.getpid()}

    def look(self) -> Sight | None:
        """None when NVML is not there or does not answer."""
        if self._nvml is None:
            return None
        try:
            clock = self._nvml.nvmlDeviceGetClockInfo(self._device, self._nvml.NVML_CLOCK_SM)
            reasons = self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._device)
            others = sorted(self._processes() - self._ours)
        except self._nvml.NVMLError:
            return None
        slow = [words for bit, words in _DISTURBING.items() if reasons & bit]
        told = [words for bit, words in _TOLD.items() if reasons & bit]
        disturbance = None
        if others:
            disturbance = "in use by process " + ", ".join(map(str, others[:5]))
        elif slow:
            disturbance = "slowed by " + ", ".join(slow)
        return Sight(clock_mhz=clock, slowed=(*told, *slow), disturbance=disturbance)

    def _processes(self) -> frozenset[int]:
        """Compute processes only, without a desktop's graphics."""
        running = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._device)
        return frozenset(int(process.pid) for process in running)


def describe() -> GpuInfo:
    """The first GPU, as CUDA describes it."""
    device = cupy.cuda.Device()
    properties = runtime.getDeviceProperties(device.id)
    attributes = device.attributes
    major, minor = properties["major"], properties["minor"]
    clock = attributes["ClockRate"] // 1000
    count = attributes["MultiProcessorCount"]
    # Two transfers a clock: the memory's rate is given in kHz, its bus in bits.
    dram = 2 * attributes["MemoryClockRate"] * 1e3 * attributes["GlobalMemoryBusWidth"] / 8 / 1e9
    return GpuInfo(
        name=properties["name"].decode(errors="replace"),
        uuid=gpu_uuid(bytes(properties["uuid"])),
        driver=_driver_version(),
        sm_clock_mhz=clock,
        memory_bytes=int(properties["totalGlobalMem"]),
        compute_capability=f"{major}.{minor}",
        multiprocessors=count,
        fp32_peak_tflops=fp32_peak_tflops(10 * major + minor, count, clock),
        dram_gb_s=dram or None,
    )


def _driver_version() -> str:
    try:
        line = Path("/proc/driver/nvidia/version").read_text(errors="replace").splitlines()[0]
    except OSError:
        return str(runtime.driverGetVersion())
    return next((word for word in line.split() if word[0].isdigit()), line)
