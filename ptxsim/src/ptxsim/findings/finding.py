"""Data that comes out of the simulator: findings and counts."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ptxsim.findings.details import Detail
from ptxsim.plan.records import Dim3, Operation, Place
from ptxsim.record import Record
from ptxsim.text import NOTHING, Message

if TYPE_CHECKING:
    from ptxsim.findings.event_table import Event


class Severity(str, Enum):
    ERROR = "error"  # the program is wrong, whatever the values came out as
    WARNING = "warning"  # legal, but likely not meant
    NOTE = "note"  # for the instructor; never changes a score


class FindingKind(str, Enum):
    """The subject of a finding."""

    OUT_OF_BOUNDS = "out-of-bounds"
    MISALIGNED = "misaligned"
    RACE = "race"
    UNINITIALIZED_READ = "uninitialized-read"
    BARRIER_DIVERGENCE = "barrier-divergence"
    ENDLESS_LOOP = "endless-loop"
    TRAP = "trap"
    ORDER = "order-dependence"
    TENSOR_CORE = "tensor-core"
    UNSUPPORTED = "unsupported"
    HINT = "hint"


class Accessed(Record):
    """The allocation, array or variable that an address belongs to, or lies next to."""

    name: str  # "" when there is none
    start: int  # address
    size: int  # bytes
    element: int = 0  # bytes; 0: not known, as of a function's local arrays together
    whole: bool = False  # it is no array, or one element of an array, as its name says


class Access(Record):
    """One memory access."""

    space: str  # "global", "shared", "local", "parameter", "constant", or "" for none of them
    address: int
    size: int  # bytes
    write: bool
    accessed: Accessed


class Crossing(Record):
    """Two operations that use the same memory, and that nothing orders."""

    first: Operation
    second: Operation
    name: str  # of an allocation or a variable


class Overlap(Record):
    """Two extern shared arrays at one address, and where the later one ought to begin."""

    overwritten: str  # the array whose values were lost; of a race, the other access's
    written: str  # the one that was written through
    first: str  # of all, as they are declared
    later: str  # of the two
    # Bytes from the start of ``first`` at which ``later`` meets no other array; 0 in a race.
    offset: int
    element: int  # bytes of an element of ``first``


class Gap(Record):
    """A way without a barrier between two accesses that race."""

    after: Place
    before: Place
    again: bool  # it goes once round a loop


class Leavers(Record):
    """Threads of a block that had returned when the others passed their first barrier."""

    count: int
    returned: Place | None  # where the first of them did
    barrier: Place | None


class Finding(Record):
    """One thing that is wrong with a program, or worth a note, as data."""

    kind: FindingKind
    severity: Severity
    place: Place | None  # the line to change; None where the PTX does not say
    event: Event | None = None  # None: it stands in the text, whether or not it runs
    text: Message = NOTHING  # of a finding in the text: the instruction, or why none simulates it
    order: Message = NOTHING  # the one of several orders of blocks and warps in which it was seen
    ptx_line: int | None = None  # where it was seen, in the PTX
    here: Place | None = None  # the same in the source
    there: Place | None = None  # the other access, or where the value was read
    block: Dim3 | None = None
    thread: Dim3 | None = None
    other_block: Dim3 | None = None
    other_thread: Dim3 | None = None
    access: Access | None = None
    other_write: bool = False  # whether the access raced with is a write
    same_value: bool = False  # both accesses write the same
    updates: bool = False  # both threads read the element, change it and write it back
    detail: Detail | None = None  # what else is said of an event of this kind
    count: int = 1  # how many times it happened
    pointer: int | None = None  # the argument, from 0, by which a thread came to no memory
    overlap: Overlap | None = None  # where two extern shared arrays meet, also in a race
    gap: Gap | None = None  # of a race in a block
    reads_once: bool = False  # of an endless loop that waits for what it loads plainly
    leavers: Leavers | None = None  # of a read of shared memory that nobody wrote
    streams: Crossing | None = None  # of a race between operations on two streams
    plain_launch: bool = False  # of a trap: a barrier of the grid in a launch not cooperative


class LineCount(Record):
    """Counts of one source line in one run of the simulator, summed over all threads."""

    file: str
    line: int
    instructions: int  # warp instructions issued
    flops: int  # thread-level floating-point operations, FMA = 2
    global_requests: int  # warp-level global loads and stores
    global_sectors: int  # 32-byte sectors those requests touched
    global_bytes: int  # bytes the active threads asked for
    shared_requests: int
    shared_wavefronts: int  # PTX level: ptxas may merge requests
    shared_bytes: int


# --- launches of which only some blocks were simulated ----------------------------------------


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
    # conflicts. Bytes from the start of the array; None for a lane that took no part. Of one to
    # global memory: in the first execution of the most lanes, from a line of 128 bytes.
    lanes: tuple[int | None, ...] = ()  # () or 32
    array: int = 0  # which shared array of the kernel
    array_bytes: int = 0  # of global memory, the most that lanes may span
    active: int = 0  # lanes, summed over ``warps``
    branch: int = 0  # line of the innermost branch that split warps on their way here; 0: none
    # The global side of a bulk copy; its shared side, in each block that it reaches, is ``cost``.
    source_bytes: int = 0
    parts: int = 1  # accesses that one execution makes: several for a wmma fragment
    span: int = 0  # bytes of global memory from the first to the last that all executions touch


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
    heaviest: float = 0.0  # of what the sampled blocks do, the share of the one that does most

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
