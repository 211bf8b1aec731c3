"""What goes into the simulator and what comes out: launch plans, findings, counts.

Every record is immutable, keyword-only and strict about unknown fields.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:  # Python 3.10 has none, and at run time it does nothing

    def dataclass_transform(**_options):
        return lambda cls: cls


Dim3 = tuple[int, int, int]


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every record: immutable, keyword-only, strict about unknown fields."""


class Severity(str, Enum):
    ERROR = "error"  # the program is wrong, whatever the values came out as
    WARNING = "warning"  # legal, but likely not meant
    NOTE = "note"  # for the instructor; never changes a score


class Mnk(Record, array_like=True):
    """One problem size."""

    m: int
    n: int
    k: int

    def __str__(self) -> str:
        return f"{self.m}×{self.n}×{self.k}"

    @property
    def flops(self) -> int:
        """Floating-point operations of one product: 2·M·N·K."""
        return 2 * self.m * self.n * self.k


class KernelParam(Record):
    offset: int  # bytes from the start of the parameter block
    size: int  # bytes


class Allocation(Record):
    """A device allocation, at the address that the recorder gave it. A GPU maps its memory there,
    except for symbols, which lie where the driver loads them."""

    name: str  # "A", "B", "C", "workspace 1", …, or the symbol
    address: int
    size: int  # bytes
    symbol: str | None = None  # mangled name when this is a __device__ variable, not an allocation


class PointerSlot(Record):
    """A device pointer in what a launch or a symbol write passes. Any eight bytes may hold one."""

    offset: int  # bytes into Launch.params or SymbolWrite.data
    allocation: int  # index into Plan.allocations
    delta: int  # bytes from the allocation's start; may be negative or past its end


class Place(Record):
    """A source line."""

    file: str
    line: int


class Issued(Record, kw_only=True):
    """after: which operations of its call it must follow, by how many places they lie before it. It
    also follows what those follow, and what the host has waited for. None: all before it.

    Where there are several streams, the recorder gives ``frame``, the host code's return address;
    ``place`` is its line in the source.
    """

    after: tuple[int, ...] | None = None
    frame: int = 0
    place: Place | None = None


class Launch(Issued, tag="launch"):
    kernel: str  # mangled name
    grid: Dim3
    block: Dim3
    shared_bytes: int  # dynamic
    params: bytes  # raw parameter block, laid out as the PTX .entry says
    pointers: tuple[PointerSlot, ...]
    carveout: int = -1  # preferred shared-memory carve-out in percent; -1 is the driver's choice
    stack_bytes: int = 1024  # of a thread, as cudaLimitStackSize says
    cooperative: bool = False  # all blocks run at the same time, and grid.sync() works
    cluster: Dim3 = (1, 1, 1)  # blocks that share their shared memory, where the launch says so


class Memset(Issued, tag="memset"):
    allocation: int
    delta: int
    value: int  # byte
    size: int  # bytes


class Copy(Issued, tag="copy"):
    """Device to device."""

    source: int
    source_delta: int
    target: int
    target_delta: int
    size: int


class SymbolWrite(Issued, tag="symbol"):
    """cudaMemcpyToSymbol: bytes written into a __device__ or __constant__ variable."""

    symbol: str  # mangled name
    delta: int
    data: bytes
    pointers: tuple[PointerSlot, ...] = ()
    blocking: bool = False  # the host waits for the device before it copies


class Allocate(Issued, tag="allocate"):
    """cudaMalloc; cudaMallocAsync where it is ``ordered`` in a stream."""

    allocation: int
    ordered: bool = False


class Free(Issued, tag="free"):
    """cudaFree, which waits for the device; cudaFreeAsync where it is ``ordered``."""

    allocation: int
    ordered: bool = False


class Synchronise(Issued, tag="synchronise"):
    """The host waits for the device."""


Operation = Launch | Memset | Copy | SymbolWrite | Allocate | Free | Synchronise


class Plan(Record):
    """What calls of run_custom asked the device to do, in order.

    ``setup`` runs once and leaves its memory as it is. ``operations`` are one later call, which may
    run any number of times: it is verified, counted and timed. ``allocations`` begins with A, B, C.
    Order is program order, which is one of those that ``after`` allows: streams are serialised.
    """

    size: Mnk
    allocations: tuple[Allocation, ...]
    operations: tuple[Operation, ...]
    setup: tuple[Operation, ...] = ()  # () where a call leaves nothing behind for the next
    unsettled: str = ""  # how the call differs from the one before it; "" when it does not
    variables: tuple[str, ...] = ()  # __device__ variables, whose contents live on between calls

    @property
    def own(self) -> frozenset[int]:
        """The allocations that ``operations`` make: nothing in them lives on from call to call."""
        return frozenset(o.allocation for o in self.operations if isinstance(o, Allocate))

    @property
    def freed(self) -> frozenset[int]:
        """What ``operations`` free and an earlier call allocated."""
        return frozenset(o.allocation for o in self.operations if isinstance(o, Free)) - self.own

    @property
    def host_calls(self) -> int:
        """How many of ``operations`` are work of the host: allocating, freeing, waiting."""
        return sum(
            isinstance(o, Allocate | Free | Synchronise)
            or (isinstance(o, SymbolWrite) and o.blocking)
            for o in self.operations
        )

    @property
    def waits(self) -> bool:
        """Whether the host waits for the device somewhere in ``operations``."""
        return any(
            isinstance(o, Synchronise)
            or (isinstance(o, Free) and not o.ordered)
            or (isinstance(o, SymbolWrite) and o.blocking)
            for o in self.operations
        )


class Thread(Record):
    """A place in the launch grid."""

    block: Dim3
    thread: Dim3


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
    """What the engine saw, numbered as engine.hpp's EventKind."""

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
    text: str = ""  # of a finding in the text: the instruction, or why it cannot be simulated
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
    # have not returned, and bytes of the stack.
    arrived: int = 0
    expected: int = 0
    count: int = 1  # how many times it happened
    mask: int = 0  # of a warp operation: the lanes that it names, as bits
    lanes: int = 0  # the lanes that execute it
    streams: Crossing | None = None  # of a race between operations on two streams


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
