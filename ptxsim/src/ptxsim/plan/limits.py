"""CUDA's limits that are the same on every GPU; C++ gets them under these names."""

import math

from ptxsim.plan.records import Launch
from ptxsim.text import Message, phrase

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
MOST_NAME = 1 << 14  # characters of a kernel or a variable in PTX; CUTLASS's have a few thousand
MOST_SHARED = 1 << 20  # bytes, dynamic, beyond every GPU; limits.hpp has the same


_BLOCKS = phrase("{count} blocks in {axis}; CUDA allows 1 to {most}")
_THREADS = phrase("{count} threads in {axis}; CUDA allows 1 to {most}")
_IN_BLOCK = phrase("{count} threads in a block; CUDA allows 1 to {most}")
_SHARED = phrase("{count} bytes of dynamic shared memory; at most {most} are possible")
_STACK = phrase("{count} bytes of stack for a thread; at most {most} are possible")


def broken_limit(launch: Launch) -> Message | None:
    """The first limit that a launch does not keep, on every GPU."""
    threads = math.prod(launch.block)
    rows = [
        (_IN_BLOCK, "", 1, threads, MAX_THREADS),
        *((_BLOCKS, *row) for row in zip("xyz", (1, 1, 1), launch.grid, MAX_GRID, strict=True)),
        *((_THREADS, *row) for row in zip("xyz", (1, 1, 1), launch.block, MAX_BLOCK, strict=True)),
        (_SHARED, "", 0, launch.shared_bytes, MOST_SHARED),
        (_STACK, "", 0, launch.stack_bytes, MAX_LOCAL_BYTES),
    ]
    broken = (
        text.given(axis=axis, count=count, most=most)
        for text, axis, least, count, most in rows
        if not least <= count <= most
    )
    return next(broken, None)
