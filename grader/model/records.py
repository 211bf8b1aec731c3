"""Why a kernel is as fast as it is: machine code, counts, bounds, advice."""

import msgspec

from grader.base import Dims
from ptxsim.plan import Dim3, Record
from ptxsim.text import Message


class OpcodeCount(Record):
    kind: str  # "FFMA", "LDS.128", "integer", "branch", …
    count: int


class SassLine(Record):
    """A source line's share of a loop."""

    file: str
    line: int
    instructions: int
    ffma: int
    tensor: int = 0  # on tensor cores


class SassLoop(Record):
    """One iteration of a kernel's main loop, as one warp executes it."""

    address: int  # bytes from the start of the kernel
    instructions: int
    ffma: int
    accumulators: int  # chains of dependent FFMA, or tensor-core sums: elements of a thread
    unroll: int  # steps in one iteration: products for each accumulator
    mix: tuple[OpcodeCount, ...]  # most frequent first; adds up to ``instructions``
    bank_conflicts: int  # cycles for which its FFMA wait for register banks
    stall_cycles: int | None  # sum of the control codes: the least a lone warp needs
    lines: tuple[SassLine, ...]
    tensor: int = 0  # instructions on tensor cores


class KernelSass(Record):
    """Figures of one kernel that ptxas compiled for one architecture."""

    name: str  # mangled
    arch: str  # "sm_90"
    instructions: int  # without padding
    local_loads: int  # LDL: spilled registers, or arrays that found no place in registers
    local_stores: int  # STL
    tensor: tuple[str, ...]  # tensor-core opcodes
    loop: SassLoop | None  # null when no loop multiplies and adds


class Traffic(Record):
    """Accesses of one kind, by all warps of all launches."""

    requests: int  # warp instructions with at least one lane
    cost: int  # sectors of 32 bytes in global memory, wavefronts in shared memory
    lines: int  # lines of 128 bytes in global memory, one after the other for each request
    bytes: int  # requested, if every lane were active
    # Of shared loads and stores: wavefronts, were there no bank conflicts. Of copies to shared
    # memory: those that take time. Of atomics: turns, in which lanes change a word of a sector.
    passes: int = 0


NO_TRAFFIC = Traffic(requests=0, cost=0, lines=0, bytes=0)


class TensorCount(Record):
    """The tensor-core instructions of one kind, by all warps of all launches."""

    kind: str  # type of the inputs: "f16", "bf16", "tf32"
    sums: str  # type of the sums: "f32", "f16"
    by_warpgroup: bool  # HGMMA (wgmma), not HMMA (wmma, mma.sync)
    count: int  # of warps
    flops: int
    shared_bytes: int  # that wgmma reads from shared memory


class Split(Record):
    """A branch that some lanes of a warp follow while the others wait."""

    file: str | None
    line: int | None
    reached: int  # executions by a warp
    splits: int  # of them those after which a part of the lanes was off
    lost: float  # issue slots: an instruction with a quarter of the lanes off loses a quarter


class KernelCounts(Record):
    """The machine code that one kind of launch executes at one size, with counts."""

    name: str  # mangled
    grid: Dim3
    block: Dim3
    shared_bytes: int  # dynamic
    times: int  # launches of this kind
    complete: bool  # false: scaled by operations, from a part of a block or from uneven blocks
    instructions: int  # of warps
    floats: int  # of them FFMA, FADD, FMUL
    flops: int  # of threads; FMA = 2
    warp_cycles: float  # the minimum time of a warp that runs alone: all loads hit the L1
    mix: tuple[OpcodeCount, ...]  # most frequent first
    global_loads: Traffic
    global_stores: Traffic
    global_copies: Traffic  # cp.async, the global side
    shared_loads: Traffic
    shared_stores: Traffic
    shared_copies: Traffic  # cp.async, the shared side
    splits: tuple[Split, ...] = ()  # those that cost most first
    tensor: tuple[TensorCount, ...] = ()  # of tensor-core kernels
    matrix_loads: Traffic = NO_TRAFFIC  # ldmatrix
    matrix_stores: Traffic = NO_TRAFFIC  # stmatrix
    # Bulk copies and TMA: sectors of global memory; and wavefronts of shared memory, in each block
    # that a copy reaches.
    bulk_loads: Traffic = NO_TRAFFIC
    bulk_stores: Traffic = NO_TRAFFIC
    bulk_shared: Traffic = NO_TRAFFIC
    global_atomics: Traffic = NO_TRAFFIC  # bytes: of the active lanes alone
    shared_atomics: Traffic = NO_TRAFFIC  # cost: turns of lanes that change the same word
    local_lines: int = 0  # of 128 bytes: spilled registers, arrays that found no place in them
    strong_sectors: int = 0  # of the global loads, those that no L1 may serve
    meetings: float = 0.0  # of each block with others, which it waits for
    heaviest: float = 0.0  # share of a launch that one block does
    # Changes of the word of global memory that changes most, if those of each instruction are
    # spread evenly over the words that it touches.
    hottest: float = 0.0
    # Turns of atomics in the L2, over the slices that the words of each lie in.
    crowded: float = 0.0
    far_cycles: float = 0.0  # a lone warp's time, beyond ``warp_cycles``, if DRAM served all loads
    # Bytes of the sectors that each loop loads from global memory, and last the code outside.
    loaded: tuple[int, ...] = ()
    scattered: int = 0  # sectors of stores, beyond those that would hold what they write
    units: tuple[OpcodeCount, ...] = ()  # warp instructions of the units of units.py


class HostCopies(Record):
    """Copies and memsets of a call, which the host asks for and no kernel makes."""

    calls: int
    bytes: int  # read and written, all together


NO_COPIES = HostCopies(calls=0, bytes=0)


class Limit(Record):
    # "issue", "FP32", "FP64", "integers", "special functions", "tensor cores", "shared memory",
    # "L1", "L2", "DRAM", "latency", "atomics" or "waiting"
    resource: str
    speed: float  # what this resource alone would allow


class Waiting(Record):
    """The issue model of the main loop, with all warps that one multiprocessor holds.

    Shares of the schedulers' cycles: in ``issued`` they issue; in the others no warp is ready, for
    the reason that the field names; the sum is 1, up to rounding. ``warp_…``: shares of a warp's
    own time, which other warps may hide.
    """

    cycles: float  # for one round of the loop by all of them
    issued: float
    stalls: float  # stall counts, results of arithmetic, pipes other than these
    fp32: float  # the FP32 pipe is busy, or the tensor core
    banks: float  # registers of an FFMA, all in one bank
    shared_loads: float
    global_loads: float
    barriers: float
    warp_global_loads: float  # of a warp's own time
    warp_barriers: float  # of a warp's own time


_REASONS = ("stalls", "banks", "shared_loads", "global_loads", "barriers")  # for waiting
_ALIKE = 1 / 3  # of the longest wait


class Bound(Record):
    """The speed of all launches of a call together on one GPU: the most that their counts allow,
    and an estimate that includes waiting."""

    gpu: str
    size: Dims
    speed: float  # the estimate; less than ``most``
    resource: str  # the one that limits the estimate
    limits: tuple[Limit, ...]  # of the estimate, lowest first
    peak: float
    waiting: Waiting | None = None  # of the launch that takes longest; null: it has no main loop
    # What no kernel with these counts can exceed: the time of each launch's busiest resource,
    # without the issue model. Null where the counts are of a part of a block.
    most: Limit | None = None
    interval: tuple[float, float] | None = None  # of the speed, for four kernels in five
    calibrated: bool = True  # the estimate's constants were measured on its kind of multiprocessor

    @property
    def causes(self) -> tuple[str, ...]:
        """Return the resource that limits the estimate, or what warps wait for, most first: fields
        of ``Waiting``. A busy pipe is the goal, not a cause of waiting."""
        if self.resource != "waiting" or self.waiting is None:
            return (self.resource,)
        shares = sorted(((getattr(self.waiting, name), name) for name in _REASONS), reverse=True)
        return tuple(name for share, name in shares if share >= _ALIKE * shares[0][0])

    @property
    def expected(self) -> tuple[float, float]:
        """Return the least and the most that is expected."""
        return self.interval or (self.speed, self.speed)

    @property
    def ceiling(self) -> float:
        """Return a speed that no kernel with these counts exceeds. Counts of a part of the blocks
        may miss some FFMA; the peak holds all the same."""
        return min(self.most.speed, self.peak) if self.most else self.peak


class BankMap(Record):
    """One access of a warp to shared memory that has bank conflicts."""

    lanes: tuple[int | None, ...]  # the first word that each accesses; null: it takes no part
    width: int  # words of each lane


class KnownRung(Record):
    """A rung of the reference ladder, which may show an idea."""

    name: str  # "sgemm/19_warp_tile"
    pays: bool  # neither its header nor the measured ladder speaks against it
    lesson: bool  # false: a detour or research
    gain: float | None  # its speed / that of the fastest before it, measured; null: it was not


class AccessMap(BankMap):
    """One of the accesses that move most bytes, for all of its line that look alike. In global
    memory its lanes hold numbers of sectors: which of those that the warp touches."""

    file: str | None
    line: int | None
    in_global: bool
    cost: float  # sectors of global memory, or wavefronts of shared, for each request
    least: float  # sectors that could hold its words; wavefronts without bank conflicts
    share: float  # of the bytes of all sectors and wavefronts of the launch


class Advice(Record):
    """The next idea to try, and the counts that support it."""

    idea: str  # of a rung of the reference ladder: "tile32"
    rung: str | None  # its folder below reference/, if available
    message: Message  # evidence and remedy, as a student reads them
    file: str | None
    line: int | None
    gain: float | None  # how many times faster the model's bound becomes; null: it cannot say
    # How many times faster its rung is than those before it, on the measured ladder; null: unknown.
    measured: float | None = None
    rule: str = ""  # that found it: "bank-conflicts"; several lead to one rung
    banks: BankMap | None = None  # of the access that it is about


class Tile(Record):
    """How a launch divides C."""

    rows: int | None  # of C for each block; null when the grid does not show it
    columns: int | None
    threads: int  # of a block
    elements: float  # of C for each thread


class Explanation(Record):
    """Why the kernel is as fast as it is, at one size. See docs/explain.md."""

    arch: str  # of the machine code looked at: "sm_80"
    size: Dims
    operations: int  # that the task needs at this size
    bytes: int  # the fewest that must come from memory or go there
    kernels: tuple[KernelSass, ...]  # all of the submission's
    counts: tuple[KernelCounts, ...]  # one for each kind of launch at ``size``
    tile: Tile | None  # of the launch that does most of the work
    bounds: tuple[Bound, ...]  # for the GPU graded on; in the simulator for a few known ones
    advice: tuple[Advice, ...]  # the most promising first; () unless accepted
    missing: Message | None  # why there are no counts; the rest is empty or incomplete then
    # Of the launch that does most of the work, those that move most bytes first.
    accesses: tuple[AccessMap, ...] = ()
    # What the lab keeps from students: of "advice", "rungs" and "answers" those that it does, and
    # until when, ISO 8601; null: for good. Advice and rungs are then not above either.
    withheld: dict[str, str | None] = msgspec.field(default_factory=dict)
