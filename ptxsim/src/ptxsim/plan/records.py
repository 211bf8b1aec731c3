"""Input of the simulator: launch plans. What comes out is in findings/finding.py."""

from __future__ import annotations

import msgspec

from ptxsim.record import Record as Record

Dim3 = tuple[int, int, int]


class Size(Record):
    """One size of a problem: its dimensions by name, in the order of the host function; behind
    them perhaps a word that says which inputs it is run on, which may be all there is."""

    dims: dict[str, int | str]

    @staticmethod
    def of(**dims: int | str) -> Size:
        return Size(dims=dims)

    def __getitem__(self, name: str) -> int:
        extent = self.dims[name]
        assert isinstance(extent, int)
        return extent

    def __hash__(self) -> int:
        return hash(tuple(self.dims.items()))

    def __str__(self) -> str:
        text = "×".join(map(str, self.extents))
        if len(self.extents) == 1:
            text = f"{next(iter(self.dims))} = {text}"
        return ", ".join(filter(None, (text, self.inputs)))

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(each for each in self.dims.values() if isinstance(each, int))

    @property
    def inputs(self) -> str:
        """Return the word for the inputs; "" where there is none."""
        return next((each for each in self.dims.values() if isinstance(each, str)), "")


class KernelParam(Record):
    offset: int  # bytes from the start of the parameter block
    size: int  # bytes
    type: str = ""  # as the PTX declares it: "f32", "u64"


class Allocation(Record):
    """A device allocation, at the address that the plan gives it. A GPU maps its memory there,
    except for symbols, which lie where the driver loads them."""

    name: str  # of the operand, "workspace 1", …, or the symbol
    address: int
    size: int  # bytes
    symbol: str | None = None  # mangled name when this is a __device__ variable, not an allocation


class PointerSlot(Record):
    """A device pointer in what a launch or a symbol write passes. Any eight bytes may hold one."""

    offset: int  # bytes into Launch.params, SymbolWrite.data or Write.data
    allocation: int  # index into Plan.allocations
    delta: int  # bytes from the allocation's start; may be negative or past its end


class Place(Record):
    """A source line."""

    file: str
    line: int


class Issued(Record, kw_only=True):
    """after: which operations of its call it must follow, by how many places they lie before it. It
    also follows what those follow, and what the host has waited for. None: all before it.

    Where there are several streams, and for work of the host, there are ``frames``: the host code's
    return addresses, innermost first. ``place`` is the line in the source.
    """

    after: tuple[int, ...] | None = None
    frames: tuple[int, ...] = ()
    place: Place | None = None


class Launch(Issued, tag="launch"):
    kernel: str  # mangled name
    grid: Dim3
    block: Dim3
    shared_bytes: int  # dynamic
    params: bytes  # raw parameter block, laid out as the PTX .entry says
    pointers: tuple[PointerSlot, ...]
    # Bytes into params at which each parameter begins. Machine code may place them elsewhere.
    arguments: tuple[int, ...] = ()
    carveout: int = -1  # preferred shared-memory carve-out in percent; -1 is the driver's choice
    stack_bytes: int = 1024  # of a thread, as cudaLimitStackSize says
    cooperative: bool = False  # all blocks run at the same time, and grid.sync() works
    # It may begin while the launch just before it in its stream still runs (see griddepcontrol).
    programmatic: bool = False
    # Blocks that reach each other's shared memory, for a kernel that does not say it itself.
    cluster: Dim3 = (1, 1, 1)


class Memset(Issued, tag="memset"):
    allocation: int
    delta: int
    value: int  # byte
    size: int  # bytes


# Memory that nobody wrote holds one of these, call by call: quiet NaNs in FP64, FP32 and, in either
# half, in FP16 and BF16, and none that a computation gives.
POISONS = (0x7FFB7FFD, 0xFFF9FFFB, 0x7FFDFFFA)
MOST_ROWS = 1 << 20  # of one copy


class Copy(Issued, tag="copy"):
    """Device to device: rows of ``size`` bytes."""

    source: int
    source_delta: int
    target: int
    target_delta: int
    size: int
    rows: int = 1
    source_pitch: int = 0  # bytes from the start of one row to the next
    target_pitch: int = 0

    @property
    def sound(self) -> bool:
        """Whether its rows are apart, and no more than anybody needs."""
        pitches = (self.source_pitch, self.target_pitch)
        if self.rows == 1:
            return pitches == (0, 0)  # a forged one may be no machine's number
        return 1 < self.rows <= MOST_ROWS and min(pitches) >= self.size > 0

    @property
    def source_span(self) -> int:
        """Bytes from the first that it reads to the last."""
        return (self.rows - 1) * self.source_pitch + self.size

    @property
    def target_span(self) -> int:
        return (self.rows - 1) * self.target_pitch + self.size


class SymbolWrite(Issued, tag="symbol"):
    """cudaMemcpyToSymbol: bytes written into a __device__ or __constant__ variable."""

    symbol: str  # mangled name
    delta: int
    data: bytes
    pointers: tuple[PointerSlot, ...] = ()
    blocking: bool = False  # the host waits for the device before it copies


class Write(Issued, tag="write"):
    """cudaMemcpy from the host: bytes written into an allocation."""

    allocation: int
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


Operation = Launch | Memset | Copy | SymbolWrite | Write | Allocate | Free | Synchronise


def host_waits(operation: Operation) -> bool:
    """Whether the host goes on only when the device has done all that comes before."""
    match operation:
        case Free(ordered=ordered):
            return not ordered
        case SymbolWrite(blocking=blocking) | Write(blocking=blocking):
            return blocking
    return isinstance(operation, Synchronise)


class Refused(Record):
    """A refusal by its number in its maker's table, with the arguments of its sentence."""

    number: int
    args: dict[str, str] = msgspec.field(default_factory=dict)


class RefusedCall(Record):
    """A call that CUDA refuses, and the program went on: it did nothing."""

    refused: Refused
    bytes: int = 0  # of memory that it asked for
    frames: tuple[int, ...] = ()  # the host code's return addresses, until ``place`` is known
    place: Place | None = None


class Plan(Record):
    """Operations that calls of a host function asked the device to do, in order.

    ``setup`` runs once and leaves its memory as it is. ``operations`` are one later call, which may
    run any number of times: it is verified, counted and timed. ``allocations`` begins with the
    memory that the caller gives: ``inputs`` that hold data, then ``outputs``.
    Order is program order, which is one of those that ``after`` allows: streams are serialised.
    """

    size: Size
    allocations: tuple[Allocation, ...]
    operations: tuple[Operation, ...]
    setup: tuple[Operation, ...] = ()  # () where a call leaves nothing behind for the next
    calls_differ: str = ""  # how the call differs from the one before it; "" when it does not
    refused: tuple[RefusedCall, ...] = ()  # of all calls
    variables: tuple[str, ...] = ()  # __device__ variables, whose contents live on between calls
    inputs: int = 0  # allocations
    outputs: int = 0

    @property
    def given(self) -> int:
        """How many allocations are the caller's."""
        return self.inputs + self.outputs

    @property
    def own(self) -> frozenset[int]:
        """The allocations that ``operations`` make: nothing in them lives on from call to call."""
        return frozenset(o.allocation for o in self.operations if isinstance(o, Allocate))

    @property
    def freed(self) -> frozenset[int]:
        """Return the allocations of an earlier call that ``operations`` free."""
        return frozenset(o.allocation for o in self.operations if isinstance(o, Free)) - self.own

    @property
    def host_calls(self) -> int:
        """How many of ``operations`` are work of the host: allocating, freeing, waiting."""
        return sum(isinstance(o, Allocate | Free) or host_waits(o) for o in self.operations)

    @property
    def waits(self) -> bool:
        """Whether the host waits for the device somewhere in ``operations``."""
        return any(map(host_waits, self.operations))


class Thread(Record):
    """A place in the launch grid."""

    block: Dim3
    thread: Dim3
