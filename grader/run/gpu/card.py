"""What differs between cards, measured on the first GPU: ``grade calibrate``.

Times are the least of a few launches, cycles those of the boost clock.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import strftime
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime

from grader.base import CardFigures, MachineError, gpus
from grader.run.gpu.device import Locks, Right
from grader.run.gpu.messages import checks_cubin
from grader.run.gpu.session import describe
from grader.run.gpu.watch import Nvml
from grader.run.probe import first_gpu_arch, first_gpu_uuid

KERNELS = Path(__file__).with_name("card.cu")
_TURNS = 5
_ROUNDS = 4096
_L2_BYTES, _DRAM_BYTES = 8 << 20, 1 << 30  # that are read; the former fit any L2 since Volta's
_WAVES = 256
_DEPTHS = {75: 8}  # of a product of mma.sync; 16 from Ampere on
LINES = 2048  # whose latencies are looked at one by one
_APART = 1 << 16  # bytes between places that are read from DRAM
_PLACES = 256
_FLUSH = 1 << 29  # bytes, more than any L2

Cycles = Callable[..., np.ndarray]  # of a kernel of one block, by name and threads: what it wrote


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
        module = cupy.RawModule(path=str(checks_cubin(arch, KERNELS)))
        where = f"driver {info.driver}, CUDA {runtime.runtimeGetVersion()}, {strftime('%Y-%m-%d')}"
        return _figures(module, info.name, where, gpu)
    finally:
        locks.give(*reversed(Right))


def _figures(module: Any, name: str, where: str, gpu: gpus.Gpu) -> CardFigures:
    clock, sms, sm = gpu.clock_mhz * 1e6, gpu.multiprocessors, gpu.multiprocessor
    out = cupy.zeros(2 * LINES, np.uint32)
    data = cupy.zeros(_DRAM_BYTES, np.uint8)

    def seconds(kernel: str, grid: int, threads: int, *given: object) -> float:
        function = module.get_function(kernel)
        return _least(lambda: function((grid,), (threads,), given))

    def again(kernel: str, grid: int, threads: int) -> float:
        """Seconds of _ROUNDS rounds, without the start and the end of the launch."""
        few, many = (seconds(kernel, grid, threads, out, np.int32(r)) for r in (8, 8 + _ROUNDS))
        return many - few

    # --- rates
    ffma = 4 * sms * 256 * 16 * 16 * _ROUNDS
    took = seconds("multiply_add", 4 * sms, 256, out, np.int32(_ROUNDS), np.float32(0.999))
    fp32_share = ffma / took / (sms * sm.fp32_lanes * clock)
    tensor_share, rate = None, gpu.tensor_rate("f16", "f32")
    if rate and gpu.capability >= 75:
        products = 4 * sms * 8 * 8 * 16 * 8 * _DEPTHS.get(gpu.capability, 16) * _ROUNDS
        took = seconds("tensor", 4 * sms, 256, out, np.int32(_ROUNDS))
        tensor_share = products / took / (sms * rate * clock)
    quads = np.uint32(_L2_BYTES // 16)
    once, often = (seconds("read", 2 * sms, 1024, data, out, quads, np.int32(p)) for p in (2, 10))
    stream = seconds("stream", 8 * sms, 256, data, out, np.uint32(_DRAM_BYTES // 16))

    # --- latencies
    def cycles(kernel: str, threads: int, *given: object) -> np.ndarray:
        module.get_function(kernel)((1,), (threads,), (out, *given))
        found: np.ndarray = out.get().astype(float)
        return found

    words = np.arange(16 * LINES, dtype=np.uint64) * 8
    lines = cupy.asarray(words)
    lines.set(words + np.uint64(lines.data.ptr))
    l2_latency = float(np.median(cycles("l2_chain", 1, lines, np.int32(LINES))[:LINES] / 16))
    dram_latency = float(np.median(from_dram(cycles, 8)[0]))

    # --- starts
    blocks = sms * sm.warps // 8  # as many of 8 warps as fit
    few, many = (seconds("nothing", blocks * waves, 256) for waves in (1, 1 + _WAVES))
    nothing = module.get_function("nothing")

    def launches() -> None:
        for _ in range(_WAVES):
            nothing((1,), (32,), ())

    return CardFigures(
        gpu=name,
        where=where,
        fp32_share=fp32_share,
        tensor_share=tensor_share,
        dram_share=_DRAM_BYTES / stream / (gpu.dram_gb_s * 1e9),
        l2_bytes=8 * 2 * _L2_BYTES / (often - once) / clock,
        l2_latency=l2_latency,
        dram_latency=dram_latency,
        block_cycles=(many - few) / _WAVES * clock,
        launch_us=_least(launches) / _WAVES * 1e6,
        atomic_cycles=again("add_one_word", sms, 32) / (32 * sms * _ROUNDS) * clock,
        shared_atomic_cycles=again("add_shared_word", 1, 256) / (256 * _ROUNDS) * clock,
    )


def from_dram(cycles: Cycles, beside: int) -> np.ndarray:
    """Latencies of places that no cache holds, and of the words ``beside`` further."""
    order = np.random.default_rng(1).permutation(_PLACES)
    places = cupy.zeros(_PLACES * _APART // 8, np.uint64)
    addresses = places.data.ptr + order.astype(np.uint64) * _APART
    words = np.zeros(len(places), np.uint64)
    words[order * (_APART // 8)] = np.roll(addresses, -1)
    places.set(words)
    cupy.empty(_FLUSH, np.uint8).data.memset(1, _FLUSH)
    first = cupy.ndarray((1,), np.uint64, memptr=places.data + int(order[0]) * _APART)
    found = cycles("dram_chain", 1, first, np.int32(_PLACES), np.int32(beside))
    pairs: np.ndarray = found[: 2 * _PLACES].reshape(-1, 2).T
    return pairs


def _least(work: Callable[[], object]) -> float:
    """Seconds on the GPU, the least of a few turns after one that does not count."""
    work()
    times: list[float] = []
    for _ in range(_TURNS):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        work()
        stop.record()
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop) / 1e3)
    return min(times)
