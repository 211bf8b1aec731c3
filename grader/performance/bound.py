"""How fast the counts of a call let it be on a GPU: a bound, and an estimate.

For every kind of launch, each resource needs a certain time for the kernel's requests if it is
never idle. The longest time bounds the launch; launches run one after the other. The busiest
multiprocessor runs ceil(blocks / multiprocessors) blocks. The sum over all launches is a hard
bound: no kernel with these counts is faster.

The estimate also counts the time that warps wait in the issue model, and the DRAM traffic of
launches that hardly compute. It depends on the order in which schedulers choose warps, which is not
published, so a kernel may be somewhat faster than the estimate. Only the bound may be called "at
most".

In the bound
    issue           warp instructions, one per scheduler and cycle
    FP32            FFMA, FADD, FMUL: a warp's worth per 32 lanes and cycle
    tensor cores    their operations, by types and by whether warps or warpgroups ask for them
    shared memory   wavefronts of loads (ldmatrix, too), stores, cp.async and bulk copies, one per
                    multiprocessor and cycle; and of 128 bytes that wgmma reads
    L1              lines of 128 bytes that requests to global memory touch, one per cycle
    L2              sectors that cp.async and bulk copies bring past the L1, and stores: the
                    published bytes per cycle, or 64 per multiprocessor
    DRAM            each input read once, each output written once
    latency         a lone warp's time, with the warps that fit at a time (``serial.py``)

In the estimate too
    waiting         the main loop in the issue model, with all warps that fit (``waiting.py``)
    DRAM            what a pass before or after the main work reads and writes, each byte once

Not modelled: memsets and copies that the host asks for, the time between launches, misses of the L2
beyond the first and the load on DRAM that follows, code outside the main loop except its
instructions, the instruction cache, clocks under load, the last wave's tail beyond the busiest
multiprocessor. All of these make a kernel slower, never faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from grader.hardware import gpus
from grader.hardware.gpus import Gpu
from grader.model import Bound, KernelCounts, KernelInfo, Limit, Waiting
from grader.performance.loop_steps import MainLoop
from grader.performance.waiting import Wave, waited
from grader.problems.work import Work

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
            seconds["DRAM"] = _touched(each) / (gpu.dram_gb_s * 1e9)
        about += max(seconds.values())
    sums["DRAM"] = work.bytes / (gpu.dram_gb_s * 1e9)
    hard = max(hard, sums["DRAM"])
    about = max(about, hard)
    if not counts or not hard:
        return None
    limits = sorted(
        (
            Limit(resource=resource, speed=work.speed(seconds))
            for resource, seconds in sums.items()
            if seconds
        ),
        key=lambda limit: limit.speed,
    )
    busiest = next(limit for limit in limits if limit.resource != "waiting")
    return Bound(
        gpu=gpu.name,
        size=work.size.dims,
        speed=work.speed(about),
        resource=limits[0].resource,
        limits=tuple(limits),
        peak=work.peak(gpu.peak_tflops(work.arithmetic), gpu.dram_gb_s),
        waiting=waiting,
        most=Limit(resource=busiest.resource, speed=work.speed(hard)),
    )


def _touched(counts: KernelCounts) -> int:
    """Bytes of global memory that all launches of a kind read and write."""
    return sum(
        each.bytes
        for each in (
            *(counts.global_loads, counts.global_copies, counts.global_stores),
            *(counts.bulk_loads, counts.bulk_stores),
        )
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
    most = -(-_blocks(counts) // gpu.multiprocessors)
    resident = min(fits.blocks, most)
    return Wave(
        blocks=resident, warps=fits.warps // fits.blocks, times=most / resident * counts.times
    )


def _blocks(counts: KernelCounts) -> int:
    """Of one launch."""
    return counts.grid[0] * counts.grid[1] * counts.grid[2]


def _seconds(counts: KernelCounts, wave: Wave | None, gpu: Gpu) -> dict[str, float]:
    """The time that each resource needs for one kind of launch."""
    sm = gpu.multiprocessor
    blocks = _blocks(counts)
    busiest = -(-blocks // gpu.multiprocessors) / blocks  # share of one multiprocessor
    lines = counts.global_loads.lines + counts.global_stores.lines + counts.global_copies.lines
    waves = counts.shared_loads.cost + counts.shared_stores.cost + counts.shared_copies.passes
    waves += counts.matrix_loads.cost + counts.matrix_stores.cost + counts.bulk_shared.cost
    read = sum(each.shared_bytes for each in counts.tensor) / _WAVEFRONT
    beyond = (counts.global_copies, counts.global_stores, counts.bulk_loads, counts.bulk_stores)
    cycles = {
        "issue": counts.instructions / sm.schedulers * busiest,
        "FP32": counts.floats * 32 / sm.fp32_lanes * busiest,
        "tensor cores": _tensor_cycles(counts, gpu) * busiest,
        "shared memory": (waves + read) * busiest,
        "L1": lines * busiest,
        "L2": sum(each.cost for each in beyond)
        * _SECTOR
        / (gpu.l2_bytes_per_clock or _L2_BYTES * gpu.multiprocessors),
    }
    if wave is not None:
        cycles["latency"] = counts.warp_cycles * wave.times
    return {name: value / (gpu.clock_mhz * 1e6) for name, value in cycles.items()}


def _tensor_cycles(counts: KernelCounts, gpu: Gpu) -> float:
    """Of one multiprocessor that does it all; without what is not known of its tensor cores."""
    rates = (
        (each.flops / 2, gpu.tensor_rate(each.kind, each.sums, by_warps=not each.by_warpgroup))
        for each in counts.tensor
    )
    return sum(products / rate for products, rate in rates if rate)
