"""The GPU that host code sees, in the recorder's input format."""

from __future__ import annotations

from grader.hardware.gpus import standing_for
from grader.model import Record

_WARP = 32


class Target(Record):
    """The properties behind cudaGetDeviceProperties and the occupancy functions."""

    name: str
    major: int
    minor: int
    multiprocessors: int
    threads_per_multiprocessor: int
    blocks_per_multiprocessor: int
    registers_per_multiprocessor: int
    l2_bytes: int
    clock_khz: int
    memory_clock_khz: int
    bus_bits: int
    shared_per_multiprocessor: int  # bytes
    shared_optin: int  # bytes, the most that one block can have
    shared_reserved: int  # bytes that the system takes from every block
    memory_bytes: int


def target_for(arch: str) -> Target:
    """The target of an architecture ("sm_80", "sm_90a")."""
    gpu = standing_for(arch)
    sm, memory = gpu.multiprocessor, gpu.memory
    assert gpu.device is not None
    assert memory is not None
    return Target(
        name=gpu.device,
        major=gpu.capability // 10,
        minor=gpu.capability % 10,
        multiprocessors=gpu.multiprocessors,
        threads_per_multiprocessor=sm.warps * _WARP,
        blocks_per_multiprocessor=sm.blocks,
        registers_per_multiprocessor=sm.registers,
        l2_bytes=memory.l2_bytes,
        clock_khz=round(gpu.clock_mhz * 1000),
        memory_clock_khz=memory.clock_mhz * 1000,
        bus_bits=memory.bus_bits,
        shared_per_multiprocessor=sm.shared_kib << 10,
        shared_optin=sm.block_shared_kib << 10,
        shared_reserved=sm.shared_reserved,
        memory_bytes=memory.bytes,
    )
