"""Traffic of launches between the L2 and DRAM."""

from math import prod

from grader.base import gpus
from grader.model.accesses import SECTOR
from grader.model.issue_model import Wave
from grader.model.records import KernelCounts
from grader.problems import Work

PASS = 0.01  # of the operations that the task needs; a launch with fewer prepares or collects
LINE = 128  # bytes
_GLOBAL = ("global_loads", "global_copies", "global_stores", "bulk_loads", "bulk_stores")
_COPIED = ("global_copies", "bulk_loads")
_WRITTEN = ("global_stores", "bulk_stores", "global_atomics")


def far_share(counts: KernelCounts, wave: Wave | None, work: Work, gpu: gpus.Gpu) -> float:
    """Return the share of the loads that DRAM serves."""
    loaded = sum(counts.loaded)
    return min(_fetched(counts, wave, work, gpu) / loaded, 1.0) if loaded else 0.0


def fits_l1(counts: KernelCounts, wave: Wave, gpu: gpus.Gpu) -> bool:
    """Whether the L1 holds the local memory of all resident threads, beside shared memory."""
    used = (wave.local_bytes + wave.shared_bytes) * wave.blocks
    return not counts.local_lines or used <= gpu.multiprocessor.shared_kib << 10


def dram_bytes(counts: KernelCounts, wave: Wave | None, work: Work, gpu: gpus.Gpu) -> int:
    """Return the bytes that the launches move. 0 where the L2 holds all operands: that these move
    once is counted for the whole call."""
    moved = 0
    if counts.flops < PASS * work.operations:
        moved = sum(getattr(counts, field).bytes for field in _GLOBAL)
    elif work.bytes > _l2_bytes(gpu):
        copied, stored = (
            sum(getattr(counts, field).cost for field in fields) * SECTOR
            for fields in (_COPIED, _WRITTEN)
        )
        written = (work.bytes - work.read) * counts.times
        moved = _fetched(counts, wave, work, gpu)
        moved += min(copied, work.read * counts.times) + min(stored, written)
    if wave is not None and not fits_l1(counts, wave, gpu):
        spilled = wave.local_bytes * wave.blocks * gpu.multiprocessors > _l2_bytes(gpu)
        moved += counts.local_lines * LINE if spilled else 0
    return moved


def _fetched(counts: KernelCounts, wave: Wave | None, work: Work, gpu: gpus.Gpu) -> int:
    """Return the bytes that loads bring from DRAM.

    A loop brings everything once, at most: what it loads again is near. The next loop over the same
    data finds it there where the resident blocks' part of it fits, and else brings it again.
    """
    most = work.read * counts.times
    brought = sum(min(bytes_, most) for bytes_ in counts.loaded)
    blocks = prod(counts.grid)
    resident = min(wave.blocks * gpu.multiprocessors / blocks, 1.0) if wave else 1.0
    return min(brought, most) if resident * work.read <= _l2_bytes(gpu) else brought


def _l2_bytes(gpu: gpus.Gpu) -> int:
    memory = gpu.memory or gpus.standing_for(f"sm_{gpu.capability}").memory
    return memory.l2_bytes if memory else 0
