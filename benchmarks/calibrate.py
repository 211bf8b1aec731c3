"""Measure what differs between cards, for estimates of a card on which nobody fitted them.

    python -m benchmarks.calibrate FILE.json     on a machine with the GPU; less than a minute

Put the file into ``$SGEMM_GRADER_PREPARED/calibration/``, the folder of ``grade doctor --prepare``:
from then on a report carries the estimate's constants over to this card (docs/explain.md). The GPU
must be idle. Times are the least of a few launches, cycles those of the boost clock.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import cupy
import msgspec
import numpy as np

from benchmarks.calibration.latencies_h200 import LINES, SOURCE, from_dram
from benchmarks.measure import machine, table
from grader.base import gpus
from grader.model.calibration import FITTED, CardFigures
from grader.run.probe import gpu_names

KERNELS = Path(__file__).parent / "calibration" / "card.cu"
TURNS = 5
ROUNDS = 4096
L2_BYTES, DRAM_BYTES = 8 << 20, 1 << 30  # that are read; the former fit any L2 since Volta's
WAVES = 256


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    name = gpu_names()[0]
    if (gpu := gpus.find(name)) is None:
        raise SystemExit(f"{name} is not in grader/base/gpus.json: add it first")
    started = time.monotonic()
    figures = measured(name, gpu)
    Path(sys.argv[1]).write_bytes(msgspec.json.format(msgspec.json.encode(figures)) + b"\n")
    mine, fitted = msgspec.to_builtins(figures), msgspec.to_builtins(FITTED.card)
    rows = [
        [field, *(f"{figure:.4g}" if isinstance(figure, float) else str(figure) for figure in pair)]
        for field in mine
        if (pair := (mine[field], fitted[field])) and field not in ("gpu", "where")
    ]
    print(f"{figures.gpu}, {figures.where}, {time.monotonic() - started:.0f} s\n")
    print(table(["figure", "this card", FITTED.card.gpu], rows))


def measured(name: str, gpu: gpus.Gpu) -> CardFigures:
    depth = 16 if gpu.capability >= 80 else 8  # of a product of mma.sync
    options = ("--std=c++17", f"-DTENSOR_K={depth}")
    module = cupy.RawModule(code=KERNELS.read_text(), options=options)
    chains = cupy.RawModule(code=SOURCE.read_text(), options=("--std=c++17",))
    clock, sms, sm = gpu.clock_mhz * 1e6, gpu.multiprocessors, gpu.multiprocessor
    out = cupy.zeros(2 * LINES, cupy.uint32)
    data = cupy.zeros(DRAM_BYTES, cupy.uint8)

    def seconds(kernel: str, grid: int, threads: int, *given: object) -> float:
        function = module.get_function(kernel)
        return least(lambda: function((grid,), (threads,), given))

    def cycles(kernel: str, threads: int, *given: object) -> np.ndarray:
        chains.get_function(kernel)((1,), (threads,), (out, *given))
        return out.get().astype(float)

    def again(kernel: str, grid: int, threads: int, *given: object) -> float:
        """Seconds of ROUNDS rounds, without the start and the end of the launch."""
        few, many = (seconds(kernel, grid, threads, *given, np.int32(r)) for r in (8, 8 + ROUNDS))
        return many - few

    # --- rates
    ffma = 4 * sms * 256 * 16 * 16 * ROUNDS
    took = seconds("multiply_add", 4 * sms, 256, out, np.int32(ROUNDS), np.float32(0.999))
    fp32_share = ffma / took / (sms * sm.fp32_lanes * clock)
    tensor_share = None
    rate = gpu.tensor_rate("f16", "f32")
    if rate and gpu.capability >= 75:
        took = seconds("tensor", 4 * sms, 256, out, np.int32(ROUNDS))
        tensor_share = 4 * sms * 8 * 8 * (16 * 8 * depth) * ROUNDS / took / (sms * rate * clock)
    quads = np.uint32(L2_BYTES // 16)
    once, often = (seconds("read", 2 * sms, 1024, data, out, quads, np.int32(p)) for p in (2, 10))
    l2_bytes = 8 * 2 * L2_BYTES / (often - once) / clock
    took = seconds("stream", 8 * sms, 256, data, out, np.uint32(DRAM_BYTES // 16))

    # --- latencies
    lines = cupy.arange(16 * LINES, dtype=cupy.uint64) * 8
    lines += np.uint64(lines.data.ptr)
    l2_latency = float(np.median(cycles("l2_chain", 1, lines, np.int32(LINES))[:LINES] / 16))
    dram_latency = float(np.median(from_dram(cycles, 8)[0]))

    # --- starts
    blocks = sms * sm.warps // 8  # as many of 8 warps as fit
    few, many = (seconds("nothing", blocks * waves, 256) for waves in (1, 1 + WAVES))
    nothing = module.get_function("nothing")

    def launches() -> None:
        for _ in range(WAVES):
            nothing((1,), (32,), ())

    # --- additions to one word
    return CardFigures(
        gpu=name,
        where=machine(),
        fp32_share=fp32_share,
        tensor_share=tensor_share,
        dram_share=DRAM_BYTES / took / (gpu.dram_gb_s * 1e9),
        l2_bytes=l2_bytes,
        l2_latency=l2_latency,
        dram_latency=dram_latency,
        block_cycles=(many - few) / WAVES * clock,
        launch_us=least(launches) / WAVES * 1e6,
        atomic_cycles=again("add_one_word", sms, 32, out) / (32 * sms * ROUNDS) * clock,
        shared_atomic_cycles=again("add_shared_word", 1, 256, out) / (256 * ROUNDS) * clock,
    )


def least(work: Callable[[], object]) -> float:
    """Seconds on the GPU, the least of a few turns after one that does not count."""
    work()
    times = []
    for _ in range(TURNS):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        work()
        stop.record()
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop) / 1e3)
    return min(times)


if __name__ == "__main__":
    main()
