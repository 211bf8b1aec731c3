"""Peaks of the GPU at hand, from its own attributes, and the minimum time of work."""

from __future__ import annotations

from grader.hardware.gpus import MULTIPROCESSORS, PRODUCTS, Gpu, find, fp32_tflops
from grader.model import GpuInfo, Record, TensorPeak


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
        tensor_peaks=_tensor_peaks(cuda),
    )


def _tensor_peaks(cuda: Attributes) -> tuple[TensorPeak, ...]:
    if cuda.capability not in MULTIPROCESSORS:
        return ()
    model = find(cuda.name)
    at_hand = Gpu(
        name=cuda.name,
        matches=cuda.name,
        capability=cuda.capability,
        multiprocessors=cuda.multiprocessors,
        clock_mhz=cuda.clock_mhz,
        dram_gb_s=0.0,
        tensor=model.tensor if model else None,
        half_rate_sums=model.half_rate_sums if model else False,
    )
    peaks = ((f"{kind}.{sums}", at_hand.tensor_tflops(kind, sums)) for kind, sums in PRODUCTS)
    return tuple(TensorPeak(arithmetic=name, tflops=peak) for name, peak in peaks if peak)


def least_ms(operations: float, bytes_read: float, gpu: GpuInfo, arithmetic: str = "f32") -> float:
    """A lower bound on the time of so many operations of an arithmetic ("f32", "f16.f32") and
    bytes from DRAM (the L2 was flushed); 0 when the GPU is not known."""
    times = [0.0]
    peak = gpu.peak_tflops(arithmetic)
    if peak:
        times.append(operations / (peak * 1e12) * 1e3)
    if gpu.dram_gb_s:
        times.append(bytes_read / (gpu.dram_gb_s * 1e9) * 1e3)
    return max(times)
