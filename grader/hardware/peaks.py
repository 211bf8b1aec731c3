"""Peaks of the GPU at hand, from its own attributes, and the minimum time of work."""

from __future__ import annotations

from grader.hardware.gpus import MULTIPROCESSORS, fp32_tflops
from grader.model import GpuInfo, Record


class Attributes(Record):
    """What CUDA says of a GPU, or of a MIG slice of one."""

    name: str
    uuid: str
    driver: str
    memory_bytes: int
    capability: int  # 80 means 8.0
    multiprocessors: int  # of a slice: its own
    clock_mhz: int  # the highest
    dram_gb_s: float | None  # clock × bus width, of a slice perhaps those of the whole card


def gpu_info(cuda: Attributes, *, cores: int | None, shared_dram_gb_s: float | None) -> GpuInfo:
    """The GPU of a result.

    cores: FP32 lanes of the whole card, by NVML, for a card that is newer than our table.
    shared_dram_gb_s: of a slice, its part of the card's bandwidth, by NVML. Without it a slice has
    no known bandwidth: CUDA's figure may be the card's.
    """
    sm = MULTIPROCESSORS.get(cuda.capability)
    is_slice = cuda.uuid.startswith("MIG-")
    peak = None
    if sm is not None:
        peak = sm.fp32_tflops(cuda.multiprocessors, cuda.clock_mhz)
    elif cores is not None and not is_slice:
        peak = fp32_tflops(cores, cuda.clock_mhz)
    return GpuInfo(
        name=cuda.name,
        uuid=cuda.uuid,
        driver=cuda.driver,
        sm_clock_mhz=cuda.clock_mhz,
        memory_bytes=cuda.memory_bytes,
        compute_capability=f"{cuda.capability // 10}.{cuda.capability % 10}",
        multiprocessors=cuda.multiprocessors,
        fp32_peak_tflops=peak,
        dram_gb_s=shared_dram_gb_s if is_slice else cuda.dram_gb_s,
    )


def least_ms(operations: float, bytes_read: float, gpu: GpuInfo) -> float:
    """A lower bound on the time of so many FP32 operations and bytes from DRAM (the L2 was
    flushed); 0 when the GPU is not known."""
    times = [0.0]
    if gpu.fp32_peak_tflops:
        times.append(operations / (gpu.fp32_peak_tflops * 1e12) * 1e3)
    if gpu.dram_gb_s:
        times.append(bytes_read / (gpu.dram_gb_s * 1e9) * 1e3)
    return max(times)
