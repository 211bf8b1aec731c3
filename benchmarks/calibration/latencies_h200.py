"""Latencies and rates that the issue model of a multiprocessor builds on:
`python -m benchmarks.calibration.latencies_h200` on a GPU machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cupy
import numpy as np

from benchmarks.measure import machine, table
from grader.run.probe import gpu_names

SOURCE = Path(__file__).with_name("latencies.cu")
LINES = 2048  # whose latencies are looked at one by one
APART = 1 << 16  # bytes between places that are read from DRAM
FLUSH = 1 << 29  # bytes, more than any L2


def main() -> None:
    print(f"{gpu_names()[0]}, {machine()}\n")
    module = cupy.RawModule(code=SOURCE.read_text(), options=("--std=c++17",))

    def cycles(name: str, threads: int, *arguments: object) -> np.ndarray:
        out = cupy.zeros(2 * LINES, cupy.uint32)
        module.get_function(name)((1,), (threads,), (out, *arguments))
        return out.get().astype(float)

    rows = []
    for size in (4, 8, 16):
        each = cycles(f"shared_chain{size}", 32)[0] / 128
        rows.append([f"shared memory, {size} bytes a lane", f"{each:.1f}", ""])
    lines = cupy.arange(16 * LINES, dtype=cupy.uint64) * 8
    lines += np.uint64(lines.data.ptr)
    for name in ("l1_chain", "l2_chain"):
        each = cycles(name, 1, lines, np.int32(LINES))[:LINES] / 16
        rows.append([f"{name[:2].upper()}, each of {LINES} lines", *least(each)])
    for beside in (4, 8, 12):
        both = from_dram(cycles, beside)
        rows.append([f"DRAM, and the sector {8 * beside} bytes on", *least(both[0])])
        rows.append(["", *least(both[1])])
    print(table(["load", "cycles, least", "median"], rows))
    print()
    counts = (1, 2, 4, 8, 16, 32)
    passed = [f"{cycles('barriers', 32 * warps)[0] / 64:.1f}" for warps in counts]
    print(table(["warps", *map(str, counts)], [["cycles of a barrier", *passed]]))
    print()
    rates = []
    for name in ("load4", "load8", "load16", "store4", "store16"):
        for shift in (0, 1, 2, 5):
            each = [cycles(name, 32 * w, np.int32(shift))[0] / 256 / w for w in (1, 4, 8, 16)]
            rates.append([name, str(shift), *(f"{value:.2f}" for value in each)])
    header = ["shared memory, cycles for each", "lane >>", *(f"{w} warps" for w in (1, 4, 8, 16))]
    print(table(header, rates))


def from_dram(cycles: Callable[..., np.ndarray], beside: int) -> np.ndarray:
    """Latencies of a place that no cache holds and of one ``beside`` words further."""
    count = 256
    places = cupy.zeros(count * APART // 8, cupy.uint64)
    order = np.random.default_rng(1).permutation(count)
    addresses = places.data.ptr + order.astype(np.uint64) * APART
    at = cupy.asarray(order * (APART // 8))
    places[at] = cupy.asarray(np.roll(addresses, -1))
    cupy.zeros(FLUSH // 4, cupy.uint32).fill(1)
    first = cupy.ndarray((1,), cupy.uint64, memptr=places.data + int(order[0]) * APART)
    return (
        cycles("dram_chain", 1, first, np.int32(count), np.int32(beside))[: 2 * count]
        .reshape(-1, 2)
        .T
    )


def least(values: np.ndarray) -> list[str]:
    return [f"{values.min():.0f}", f"{np.median(values):.0f}"]


if __name__ == "__main__":
    main()
