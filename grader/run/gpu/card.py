"""Figures that differ between cards, measured on the first GPU: ``grade calibrate``."""

from __future__ import annotations

import ctypes
from pathlib import Path
from time import strftime

import cupy
from cupy.cuda import runtime

from grader.base import CardFigures, MachineError, gpus
from grader.run.gpu.device import Locks, Right
from grader.run.gpu.messages import checks_cubin, host_library
from grader.run.gpu.session import describe
from grader.run.gpu.watch import Nvml
from grader.run.probe import first_gpu_arch, first_gpu_uuid

SOURCE = Path(__file__).with_name("card.cu")
_FIGURES = 9  # of card.cu
_TURNS, _LAUNCHES = 5, 256
_DEPTHS = {75: 8}  # of a product of mma.sync; 16 from Ampere on


def measure_card() -> CardFigures:
    """Measure the first GPU while nobody else uses it. Raises MachineError, ToolchainError."""
    locks, arch = Locks(), first_gpu_arch()
    for right in Right:
        locks.take(right)
    try:
        info = describe(Nvml(first_gpu_uuid()))
        gpu = gpus.find(info.name) or gpus.of(info)
        if gpu is None or arch is None:
            raise MachineError.saying("{gpu}: too little is known of it", gpu=info.name)
        measured, launch = _measured(gpu, arch), _launch_seconds(arch)
    finally:
        locks.give(*reversed(Right))
    ffma, products, dram, l2, *loads, wave, addition, shared = measured
    clock, sms, sm = gpu.clock_mhz * 1e6, gpu.multiprocessors, gpu.multiprocessor
    rate = gpu.tensor_rate("f16", "f32") if gpu.capability >= 75 else 0.0
    return CardFigures(
        gpu=info.name,
        where=f"driver {info.driver}, CUDA {runtime.runtimeGetVersion()}, {strftime('%Y-%m-%d')}",
        fp32_share=ffma / (sms * sm.fp32_lanes * clock),
        tensor_share=products / (sms * rate * clock) if rate else None,
        dram_share=dram / (gpu.dram_gb_s * 1e9),
        l2_bytes=l2 / (sms * clock),
        l2_latency=loads[0],
        dram_latency=loads[1],
        block_cycles=wave * clock,
        launch_us=launch * 1e6,
        atomic_cycles=addition * clock,
        shared_atomic_cycles=shared * clock,
    )


def _measured(gpu: gpus.Gpu, arch: str) -> list[float]:
    """Return the figures of card.cu, in its order."""
    library, found = ctypes.CDLL(str(host_library(arch, SOURCE))), (ctypes.c_double * _FIGURES)()
    resident = gpu.multiprocessors * gpu.multiprocessor.warps // 8  # blocks of 8 warps
    depth = _DEPTHS.get(gpu.capability, 16)
    if error := library.measure_card(gpu.multiprocessors, resident, depth, found):
        raise MachineError.saying("{gpu}: CUDA error {code}", gpu=gpu.name, code=error)
    return list(found)


def _launch_seconds(arch: str) -> float:
    """From one launch of CuPy's, which is what a grade times, to the next: the least of a few turns
    after one that does not count."""
    nothing = cupy.RawModule(path=str(checks_cubin(arch, SOURCE))).get_function("nothing")
    times: list[float] = []
    for _ in range(_TURNS + 1):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        for _ in range(_LAUNCHES):
            nothing((1,), (32,), ())
        stop.record()
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop) / 1e3 / _LAUNCHES)
    return min(times[1:])
