"""How fast the counts of a call let it be on a GPU: a bound, and an estimate.

For every kind of launch, each resource needs a certain time for the kernel's requests if it is
never idle. The longest time bounds the launch on the busiest multiprocessor; launches run one after
the other. No kernel with these counts is faster, so only the bound may be called "at most". The
estimate also counts the time that warps wait in the issue model, and the DRAM traffic of launches
that hardly compute. docs/explain.md lists the resources, and what is not modelled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from math import prod

from grader.base import Bound, Gpu, KernelCounts, KernelInfo, Limit, Waiting, gpus
from grader.explain.issue_model import Wave, waited
from grader.explain.loop_steps import MainLoop
from grader.problems import Work

_GLOBAL = ("global_loads", "global_copies", "global_stores", "bulk_loads", "bulk_stores")
_PASS = 0.01  # of the operations that the task needs; a launch with fewer prepares or collects
_SECTOR = 32  # bytes
_WAVEFRONT = 128  # bytes
_L2_BYTES = 64  # to one multiprocessor in each cycle


def bound(
    counts: Sequence[KernelCounts],
    kernels: Mapping[str, KernelInfo],
    work: Work,
    gpu: Gpu,
    loops: Sequence[MainLoop | None] = (),
) -> Bound | None:
    """kernels: by mangled name, as built for ``gpu``'s architecture or one like it. loops: of the
    same launches as ``counts``; without them the estimate has no waiting.

    None when there are no counts, or a block does not fit on this GPU.
    """
    hard, about, longest = 0.0, 0.0, 0.0
    waiting: Waiting | None = None
    sums: dict[str, float] = {}  # of each resource, over all launches
    for index, (each, loop) in enumerate(zip_longest(counts, loops)):
        kernel = kernels.get(each.name)
        wave = _wave(each, kernel, gpu) if kernel is not None else None
        if kernel is not None and wave is None:
            return None
        seconds = _seconds(each, wave, gpu)
        hard += max(seconds.values())
        for resource, value in seconds.items():
            sums[resource] = sums.get(resource, 0.0) + value
        found = waited(loop, wave, gpu, cold=not index) if loop and wave else None
        if found is not None:
            seconds["waiting"] = found[0]
            sums["waiting"] = sums.get("waiting", 0.0) + found[0]
        if found is not None and found[0] > longest:
            longest, waiting = found
        if each.flops < _PASS * work.operations:
            touched = sum(getattr(each, field).bytes for field in _GLOBAL)
            seconds["DRAM"] = touched / (gpu.dram_gb_s * 1e9)
        about += max(seconds.values())
    sums["DRAM"] = work.bytes / (gpu.dram_gb_s * 1e9)
    hard = max(hard, sums["DRAM"])
    about = max(about, hard)
    if not counts or not hard:
        return None
    limits = sorted(
        (
            Limit(resource=name, speed=work.speed(seconds))
            for name, seconds in sums.items()
            if seconds
        ),
        key=lambda limit: limit.speed,
    )
    certain = all(each.complete for each in counts)
    busiest = next(limit for limit in limits if limit.resource != "waiting")
    return Bound(
        gpu=gpu.name,
        size=work.size.dims,
        speed=work.speed(about),
        resource=limits[0].resource,
        limits=tuple(limits),
        peak=work.peak(gpu.peak_tflops(work.arithmetic), gpu.dram_gb_s),
        waiting=waiting,
        most=Limit(resource=busiest.resource, speed=work.speed(hard)) if certain else None,
    )


def _wave(counts: KernelCounts, kernel: KernelInfo, gpu: Gpu) -> Wave | None:
    """The blocks that the busiest multiprocessor holds at a time. None when not even one fits."""
    fits = gpus.occupancy(
        gpu.multiprocessor,
        block=counts.block,
        registers=kernel.registers,
        shared_bytes=kernel.shared_bytes + counts.shared_bytes,
    )
    if fits is None:
        return None
    most = -(-prod(counts.grid) // gpu.multiprocessors)
    resident = min(fits.blocks, most)
    return Wave(
        blocks=resident, warps=fits.warps // fits.blocks, times=most / resident * counts.times
    )


def _seconds(counts: KernelCounts, wave: Wave | None, gpu: Gpu) -> dict[str, float]:
    """The time that each resource needs for one kind of launch."""
    sm = gpu.multiprocessor
    blocks = prod(counts.grid)
    busiest = -(-blocks // gpu.multiprocessors) / blocks  # share of one multiprocessor
    lines = counts.global_loads.lines + counts.global_stores.lines + counts.global_copies.lines
    waves = counts.shared_loads.cost + counts.shared_stores.cost + counts.shared_copies.passes
    waves += counts.matrix_loads.cost + counts.matrix_stores.cost + counts.bulk_shared.cost
    read = sum(each.shared_bytes for each in counts.tensor) / _WAVEFRONT
    beyond = (counts.global_copies, counts.global_stores, counts.bulk_loads, counts.bulk_stores)
    rates = (
        (each.flops / 2, gpu.tensor_rate(each.kind, each.sums, by_warps=not each.by_warpgroup))
        for each in counts.tensor
    )
    cycles = {
        "issue": counts.instructions / sm.schedulers * busiest,
        "FP32": counts.floats * 32 / sm.fp32_lanes * busiest,
        # Products of unknown rate count nothing.
        "tensor cores": sum(products / rate for products, rate in rates if rate) * busiest,
        "shared memory": (waves + read) * busiest,
        "L1": lines * busiest,
        "L2": sum(each.cost for each in beyond)
        * _SECTOR
        / (gpu.l2_bytes_per_clock or _L2_BYTES * gpu.multiprocessors),
    }
    if wave is not None:
        cycles["latency"] = counts.warp_cycles * wave.times
    return {name: value / (gpu.clock_mhz * 1e6) for name, value in cycles.items()}
