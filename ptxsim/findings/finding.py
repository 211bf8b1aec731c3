"""What comes out of the simulator, as data: findings and counts."""

from __future__ import annotations

from enum import Enum, IntEnum

from ptxsim.message import NOTHING, Message
from ptxsim.records import Dim3, Operation, Place, Record


class Severity(str, Enum):
    ERROR = "error"  # the program is wrong, whatever the values came out as
    WARNING = "warning"  # legal, but likely not meant
    NOTE = "note"  # for the instructor; never changes a score


class Kind(str, Enum):
    """What a finding is about."""

    OUT_OF_BOUNDS = "out-of-bounds"
    MISALIGNED = "misaligned"
    RACE = "race"
    UNINITIALIZED_READ = "uninitialized-read"
    BARRIER_DIVERGENCE = "barrier-divergence"
    ENDLESS_LOOP = "endless-loop"
    TRAP = "trap"
    TENSOR_CORE = "tensor-core"
    UNSUPPORTED = "unsupported"


class Event(IntEnum):
    """What the engine saw, numbered as event.hpp's EventKind."""

    OUT_OF_BOUNDS = 0
    MISALIGNED = 1
    RACE = 2
    ASYNC_RACE = 3  # with a cp.async that nobody waited for
    UNDEFINED_STORE = 4
    UNDEFINED_ADDRESS = 5
    UNDEFINED_BRANCH = 6
    DIVERGENT_BARRIER = 7
    DIVERGENT_WARP_OP = 8
    DEADLOCK = 9
    ENDLESS = 10
    TRAP = 11
    ASSERTION = 12
    BARRIER_UNINITIALISED = 13
    BARRIERS_MIXED = 14  # whole warps at different barriers; every GPU lets them go on
    COPY_NOT_COMMITTED = 15  # a race with a cp.async that no wait covers: it is in no group
    MASK_WITHOUT_CALLER = 16  # a lane gives a warp operation a mask that lacks itself
    MASK_BEYOND_BLOCK = 17  # a shuffle's mask names lanes that the warp never had
    WAITS_FOR_EVER = 18  # for a flag, a counter or an mbarrier that nothing changes any more
    NOT_ALL_RESIDENT = 19  # the same, since not all blocks can run at the same time
    NEVER_SET = 20  # a variable without a value reaches a result, an address or a branch
    ABSENT_LANE = 21  # so does what a shuffle took from a lane that takes no part
    STACK_OVERFLOW = 22  # recursive calls take more than a thread's stack
    PART_OF_A_WARP = 23  # not all 32 lanes execute what a warp must execute as a whole
    MBARRIER_NEVER_COMPLETES = 24  # a phase lacks arrivals, or its transaction count is wrong
    BULK_COPY_RACE = 25  # with a bulk copy whose mbarrier nobody waited for
    OPERAND_OVERWRITTEN = 26  # shared memory that a wgmma or a bulk copy may still be reading
    PROXY_FENCE_MISSING = 27  # between a plain write and an access of the async proxy
    PROXY_FENCE_AFTER_COPY = 28  # the same, where the write is a cp.async
    WGMMA_NOT_FENCED = 29  # a wgmma with no wgmma.fence before it
    WGMMA_REGISTERS_SET = 30  # its registers were set after the last wgmma.fence
    WGMMA_NOT_WAITED_FOR = 31  # its result is used before wgmma.wait_group
    WARPS_NOT_ORDERED = 32  # of a warpgroup: wgmma reads what another of its warps wrote
    BAD_TENSOR_MAP = 33  # no tensor map at all, or one that does not fit its use
    PEER_EXITED = 34  # the block of the cluster whose shared memory is accessed
    PEER_NOT_STARTED = 35  # the same
    UNUSED_RACE = 36  # in shared memory, with a read whose value nothing uses
    BEFORE_GRID_WAIT = 37  # with a kernel that may still run: this launch is programmatic
    TILE_MISALIGNED = 38  # in its tensor a tile does not begin at a multiple of 16 bytes
    TILE_BEFORE_TENSOR = 39  # that is stored: a coordinate is negative


class Accessed(Record):
    """The allocation, array or variable that an address belongs to, or lies next to."""

    name: str  # "" when there is none
    start: int  # address
    size: int  # bytes


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


class Finding(Record):
    """One thing that is wrong with a program, or worth a note, as data."""

    kind: Kind
    severity: Severity
    place: Place | None  # the line to change; None where the PTX does not say
    event: Event | None = None  # None: it stands in the text, whether or not it runs
    text: Message = NOTHING  # of a finding in the text: the instruction, or why none simulates it
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
    # Threads at a barrier or a warp operation; blocks that fit the GPU, and of the grid; calls that
    # have not returned, and bytes of the stack; arrivals at an mbarrier, and those that a phase
    # takes; dimensions of a tensor map (0: it is none), and of the instruction that uses it; the
    # innermost coordinate of a tile, in 32 bits with a sign, and the bytes of an element.
    arrived: int = 0
    expected: int = 0
    count: int = 1  # how many times it happened
    # Of a warp operation: the lanes that it names, as bits. Of an mbarrier: the bytes that it still
    # expects, in 32 bits and negative where more came.
    mask: int = 0
    lanes: int = 0  # the lanes that execute it
    streams: Crossing | None = None  # of a race between operations on two streams
    plain_launch: bool = False  # of a trap: a barrier of the grid in a launch not cooperative


class LineCount(Record):
    """What one source line did in one run of the simulator, summed over all threads."""

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
