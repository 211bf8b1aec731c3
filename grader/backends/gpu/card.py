"""The GPU's identity and its peaks, from its own attributes."""

from __future__ import annotations

from pathlib import Path

import cupy
from cupy.cuda import runtime

from grader.backends.gpu.nvml import Nvml
from grader.backends.probe import gpu_uuid
from grader.hardware.peaks import Attributes, gpu_info
from grader.model import GpuInfo


def describe(nvml: Nvml) -> GpuInfo:
    """The first GPU, as CUDA and NVML describe it. Makes no context."""
    device = cupy.cuda.Device()
    properties = runtime.getDeviceProperties(device.id)
    attributes = device.attributes
    name = properties["name"].decode(errors="replace")
    # Two transfers a clock: the memory's rate is given in kHz, its bus in bits.
    dram = 2 * attributes["MemoryClockRate"] * 1e3 * attributes["GlobalMemoryBusWidth"] / 8 / 1e9
    return gpu_info(
        Attributes(
            name=name,
            uuid=gpu_uuid(bytes(properties["uuid"]), name),
            driver=_driver_version(),
            memory_bytes=int(properties["totalGlobalMem"]),
            capability=10 * properties["major"] + properties["minor"],
            multiprocessors=attributes["MultiProcessorCount"],
            clock_mhz=attributes["ClockRate"] // 1000,
            dram_gb_s=dram or None,
        ),
        cores=nvml.cores(),
        shared_dram_gb_s=nvml.dram_gb_s(),
    )


def _driver_version() -> str:
    try:
        line = Path("/proc/driver/nvidia/version").read_text(errors="replace").splitlines()[0]
    except OSError:
        return str(runtime.driverGetVersion())
    return next((word for word in line.split() if word[0].isdigit()), line)
