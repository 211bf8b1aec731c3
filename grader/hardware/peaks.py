"""FP32 peak of the GPU (SMs × lanes × 2 × clock), and the minimum time of a product."""

from __future__ import annotations

from grader.hardware.gpus import MULTIPROCESSORS
from grader.model import GpuInfo, Mnk

# Each level of Strassen's scheme saves 1/8 of the multiplications; no FP32 scheme saves a third.
_FEWEST_OPERATIONS = 2 / 3


def fp32_peak_tflops(capability: int, multiprocessors: int, clock_mhz: float) -> float | None:
    """Peak in TFLOPS at ``clock_mhz``; None for an unknown ``capability`` (80 means 8.0)."""
    sm = MULTIPROCESSORS.get(capability)
    return None if sm is None else sm.fp32_tflops(multiprocessors, clock_mhz)


def least_ms(size: Mnk, gpu: GpuInfo) -> float:
    """A lower bound on the time of an FP32 product of this size; 0 when the GPU is not known.

    A and B must come from DRAM once (the L2 was flushed), and the operations take the FP32 pipes.
    """
    times = [0.0]
    if gpu.fp32_peak_tflops:
        times.append(_FEWEST_OPERATIONS * size.flops / (gpu.fp32_peak_tflops * 1e12) * 1e3)
    if gpu.dram_gb_s:
        times.append(4 * (size.m + size.n) * size.k / (gpu.dram_gb_s * 1e9) * 1e3)
    return max(times)
