"""CUDA's limits that are the same on every GPU; C++ gets them under these names."""

from __future__ import annotations

import math

LIMITS = {
    "MAX_GRID_X": 2**31 - 1,
    "MAX_GRID_YZ": 65535,
    "MAX_BLOCK_XY": 1024,
    "MAX_BLOCK_Z": 64,
    "MAX_THREADS": 1024,  # of a block
    "MAX_REGISTERS": 65536,  # of a block
    "REGISTER_UNIT": 256,  # a warp gets registers in multiples of this
    "DEFAULT_SHARED": 48 << 10,  # bytes of a block, before cudaFuncSetAttribute
    "MAX_LOCAL_BYTES": 512 << 10,  # of a thread
    "MAX_CLUSTER": 16,  # blocks
    "PORTABLE_CLUSTER": 8,  # blocks that every GPU with clusters can run
}
MAX_THREADS, MAX_REGISTERS = LIMITS["MAX_THREADS"], LIMITS["MAX_REGISTERS"]
REGISTER_UNIT, MAX_LOCAL_BYTES = LIMITS["REGISTER_UNIT"], LIMITS["MAX_LOCAL_BYTES"]
MAX_CLUSTER, PORTABLE_CLUSTER = LIMITS["MAX_CLUSTER"], LIMITS["PORTABLE_CLUSTER"]
MAX_GRID = (LIMITS["MAX_GRID_X"], LIMITS["MAX_GRID_YZ"], LIMITS["MAX_GRID_YZ"])
MAX_BLOCK = (LIMITS["MAX_BLOCK_XY"], LIMITS["MAX_BLOCK_XY"], LIMITS["MAX_BLOCK_Z"])


def is_grid(grid: tuple[int, int, int]) -> bool:
    return all(1 <= n <= most for n, most in zip(grid, MAX_GRID, strict=True))


def is_block(block: tuple[int, int, int]) -> bool:
    shape = all(1 <= n <= most for n, most in zip(block, MAX_BLOCK, strict=True))
    return shape and math.prod(block) <= MAX_THREADS
