"""Counts of a launch of which only some blocks were simulated."""

from __future__ import annotations

from ptxsim.message import NOTHING, Message
from ptxsim.records import Dim3, Place, Record


class Branch(Record):
    """A branch that some lanes of a warp followed while others did not."""

    row: int  # line of the PTX text
    place: Place | None  # in the source
    warps: int  # executions, in the sampled blocks
    active: int  # lanes, summed over these
    splits: int  # executions that split the warp
    outer: int  # row of the branch that split warps on their way here; 0: none
    loops: bool  # lanes that it keeps in a loop come back to it


class RowCount(Record):
    """One PTX instruction in the sampled blocks. ``cost`` counts 32-byte sectors of global memory
    or wavefronts of shared memory; cost8 and cost16 what it would be at 8 and 16 bytes a lane;
    passes8 and passes16 how many of these wavefronts would be left without bank conflicts."""

    row: int  # line of the PTX text
    head: int  # line at which its basic block begins
    warps: int  # executions by a warp with at least one lane, its guard aside
    flops: int
    space: str  # "global", "shared" or ""
    width: int  # bytes that a lane moves; 0: no access
    requests: int  # executions with at least one lane that its guard lets through
    cost: int
    cost8: int
    cost16: int
    passes8: int
    passes16: int
    lines: int  # of 128 bytes, in global memory
    source_requests: int  # the global side of cp.async
    source_sectors: int
    source_lines: int
    source_zeros: int  # wavefronts of the copies that write zeros, if only from some lanes
    # Of an access to shared memory: where its lanes went, in the execution with the most bank
    # conflicts. Bytes from the start of the array; None for a lane that took no part.
    lanes: tuple[int | None, ...] = ()  # () or 32
    array: int = 0  # which shared array of the kernel
    array_bytes: int = 0
    active: int = 0  # lanes, summed over ``warps``
    branch: int = 0  # line of the innermost branch that split warps on their way here; 0: none
    # The global side of a bulk copy; its shared side, in each block that it reaches, is ``cost``.
    source_bytes: int = 0
    parts: int = 1  # accesses that one execution makes: several for a wmma fragment


class LaunchSample(Record):
    """One kind of launch: the same kernel and shape."""

    kernel: str  # mangled
    grid: Dim3
    block: Dim3
    shared_bytes: int  # dynamic
    times: int  # how often the plan launches it
    blocks: int  # sampled; where there are clusters, all of theirs
    stopped: str | None  # "time", "deadlock" or "trap": why they did not run to their ends
    rows: tuple[RowCount, ...]
    branches: tuple[Branch, ...] = ()
    mistake: Message = NOTHING  # the first error found in them
    uneven: bool = False  # sampled blocks do not do as many operations, or only one was sampled

    @property
    def complete(self) -> bool:
        return self.stopped is None

    @property
    def all_blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def warps(self) -> int:
        """Return the warps of one block."""
        return -(-self.block[0] * self.block[1] * self.block[2] // 32)

    @property
    def all_warps(self) -> int:
        """Return the warps of all launches of this kind."""
        return self.warps * self.all_blocks * self.times

    @property
    def flops(self) -> int:
        return sum(row.flops for row in self.rows)
