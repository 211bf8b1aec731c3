"""What the simulator saw or rejected → findings and messages for students."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grader.model import Dim3, Finding, Kind
from ptxsim import records as simulator
from ptxsim.errors import Reason, RefusedProgram
from ptxsim.findings.names import plain_name
from ptxsim.records import (
    Access,
    Allocate,
    Copy,
    Crossing,
    Event,
    Free,
    Launch,
    Memset,
    Operation,
    Place,
    Severity,
    SymbolWrite,
)

_MAIN_FILE = "sgemm.cu"  # messages name its lines without the file
_REFUSALS = {
    Reason.UNREADABLE: "the grader cannot read what nvcc made of this: {}",
    Reason.ASSEMBLY: "the grader cannot read the PTX that inline assembly makes here ({}); write "
    "plain instructions and declarations, as nvcc itself does",
    Reason.TAKEN_NAME: "{}; give yours another name",
    Reason.UNSUPPORTED: "{}; grade it on a GPU",
    Reason.TOO_LARGE: "{}; grade it on a GPU",
    Reason.UNSOUND: "{}",
    Reason.WRONG_PLAN: "the recorded launches do not fit the program: {}",
}
_NOT_UNDER_NULL = 4096  # lower addresses come from a null pointer


def worded(findings: Sequence[simulator.Finding], gpu: str = "") -> tuple[Finding, ...]:
    """gpu: that more blocks wait for each other than it holds, where one does."""
    return tuple(
        Finding(
            kind=Kind(seen.kind.value),
            severity=seen.severity,
            message=sentence(seen, gpu),
            file=seen.place.file if seen.place else None,
            line=seen.place.line if seen.place else None,
            block=seen.block,
            thread=seen.thread,
            count=seen.count,
        )
        for seen in findings
    )


def refusal_worded(refusal: RefusedProgram) -> tuple[str, tuple[Finding, ...]]:
    """The message for a rejected program, and its findings."""
    message = _REFUSALS[refusal.reason].format(refusal.message)
    place = f"{refusal.place.file}:{refusal.place.line}" if refusal.place else ""
    findings = worded(refusal.findings)
    if refusal.reason is Reason.ASSEMBLY:
        own = Finding(
            kind=Kind.UNSUPPORTED,
            severity=Severity.ERROR,
            message=message,
            file=refusal.place.file if refusal.place else None,
            line=refusal.place.line if refusal.place else None,
        )
        findings = (*findings, own)
    return f"{place}: {message}" if place else message, findings


def sentence(seen: simulator.Finding, gpu: str = "") -> str:
    if seen.streams is not None:
        return _stream_race(seen.streams)
    if seen.event is None:
        tensor_core = seen.kind is simulator.Kind.TENSOR_CORE
        return f"{seen.text} runs on tensor cores" if tensor_core else seen.text
    return _SENTENCES[seen.event](_Scene(seen, gpu))


def _stream_race(seen: Crossing) -> str:
    first, second = _operation_at(seen.first), _operation_at(seen.second)
    return (
        f"{first} on one stream and {second} on another use {seen.name}, and nothing orders them: "
        f"record an event behind the one and let the other's stream wait for it"
    )


def _operation_at(operation: Operation) -> str:
    at = f" at {_line(operation.place)}" if operation.place else ""
    return _operation(operation) + at


def _operation(operation: Operation) -> str:
    match operation:
        case Launch(kernel=kernel):
            return f"kernel `{plain_name(kernel)[:80]}`"
        case Memset(size=size):
            return f"the memset of {_bytes(size)}"
        case Copy(size=size):
            return f"the copy of {_bytes(size)}"
        case SymbolWrite(symbol=symbol):
            return f"the copy to {plain_name(symbol)[:80]}"
        case Allocate():
            return "the allocation"
        case Free():
            return "freeing"
    return "an operation"


class _Scene:
    """The names and numbers of one event, as its sentence needs them."""

    def __init__(self, seen: simulator.Finding, gpu: str) -> None:
        assert seen.access and seen.block and seen.thread
        assert seen.other_block and seen.other_thread
        self.seen = seen
        self.gpu = f"the {gpu}" if gpu else "the GPU"
        self.access = seen.access
        self.same_block = seen.block == seen.other_block
        self.here, self.there = _line(seen.here), _line(seen.there)
        self.this_thread = f"thread {_short(seen.thread)}"
        self.that_thread = f"thread {_short(seen.other_thread)}"
        self.who = f"block {_short(seen.block)} {self.this_thread}"
        self.that_one = f"block {_short(seen.other_block)} {self.that_thread}"
        self.in_block = f"(block {_short(seen.block)})"
        self.does = "writes" if self.access.write else "reads"
        self.did = "wrote" if seen.other_write else "read"
        self.element = _element(self.access)
        lowest = seen.lanes & ~seen.mask  # the first lane that executes it though it is not named
        self.lane = (lowest & -lowest).bit_length() - 1


def _line(place: Place | None) -> str:
    """ "line 12", with the file when it is not the main one."""
    if place is None:
        return "an unknown line"
    return f"line {place.line}" if place.file == _MAIN_FILE else f"{place.file}:{place.line}"


def _short(dim: Dim3) -> str:
    return f"({dim[0]},{dim[1]},{dim[2]})"


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count} bytes"


def _lanes(mask: int) -> str:
    """ "lanes 0-15 and 31" """
    runs: list[list[int]] = []
    for lane in (lane for lane in range(32) if mask >> lane & 1):
        if runs and runs[-1][-1] == lane - 1:
            runs[-1] = [runs[-1][0], lane]
        else:
            runs.append([lane])
    texts = ["-".join(map(str, run)) for run in runs]
    *first, last = texts or ["none"]
    noun = "lane" if mask.bit_count() == 1 else "lanes"
    return f"{noun} {', '.join(first)} and {last}" if first else f"{noun} {last}"


def _element(access: Access) -> str:
    """ "As[12]": all data are floats; bytes if the offset is not a multiple of 4."""
    name = access.accessed.name
    if not name:
        return f"address {access.address:#x}"
    offset = access.address - access.accessed.start
    return f"byte {offset} of {name}" if offset % 4 else f"{name}[{offset // 4}]"


def _out_of_bounds(s: _Scene) -> str:
    access, what = s.access, s.access.accessed
    operation = "write" if access.write else "read"
    head = f"{access.space} {operation}: {s.who} {s.does} {_bytes(access.size)} at "
    if not what.name and access.space != "parameter":
        null = access.address < _NOT_UNDER_NULL
        nothing = "a null pointer" if null else "no device memory"
        return f"{head}{access.address:#x}, which is {nothing}"
    if access.space == "global" and not what.size:
        return f"{head}{s.element}, which was freed before this launch"
    end = what.start + what.size
    if access.address < what.start:
        where = f"{_bytes(what.start - access.address)} before the start of"
    elif access.address >= end:
        where = f"{_bytes(access.address - end)} past the end of"
    else:
        where = "across the end of"
    if access.space == "local":
        return (
            f"local {operation}: {s.who} {s.does} {_bytes(access.size)}, {where} the local arrays "
            f"of {what.name}, which have {_bytes(what.size)}"
        )
    if access.space == "shared" and what.name and not what.size:
        return (
            f"{head}{s.element}, but the launch gives {what.name} no memory: the size of an extern "
            f"__shared__ array in bytes is the third launch argument, <<<grid, block, bytes>>>"
        )
    noun = {"shared": " array", "parameter": ""}.get(access.space, " allocation")
    return f"{head}{s.element}, {where} the {what.size}-byte{noun} {what.name or 'parameters'}"


def _misaligned(s: _Scene) -> str:
    size, what = s.access.size, s.access.accessed
    remedy = "; a float4 needs an index that is a multiple of 4" if size == 16 else ""
    if s.access.space == "shared" and what.name and what.start % size:
        remedy = f"; the array itself does not start at one: declare {what.name} __align__({size})"
    return (
        f"{s.who} {s.does} {size} bytes at once at {s.element}, whose address is not a "
        f"multiple of {size}{remedy}"
    )


def _race(s: _Scene) -> str:
    first, second = f"{s.does} {s.element} at {s.here}", f"{s.did} at {s.there}"
    if s.access.space == "shared":
        return (
            f"in shared memory {s.this_thread} {first}, which {s.that_thread} {second} with no "
            f"__syncthreads() (or, within a warp, __syncwarp()) between them {s.in_block}"
        )
    if s.same_block:
        return (
            f"in global memory {s.this_thread} {first}, which {s.that_thread} of the same block "
            f"{second} with no __syncthreads() between them"
        )
    if s.seen.severity is Severity.WARNING:
        return (
            f"double work: {s.who} {first} though {s.that_one} already wrote the same value; is "
            f"the grid too large?"
        )
    return (
        f"between blocks: {s.who} {first}, which {s.that_one} {second}; blocks run in any order: "
        f"use atomicAdd, a second kernel, or a flag that a block waits for (a fence alone does not "
        f"order them)"
    )


def _async_race(s: _Scene) -> str:
    return (
        f"cp.async not waited for: {s.this_thread} {s.does} {s.element} at {s.here} while the "
        f"asynchronous copy that {s.that_thread} issued at {s.there} may still be under way "
        f"{s.in_block}; wait for its group, then __syncthreads()"
    )


def _undefined(use: str) -> Callable[[_Scene], str]:
    def words(s: _Scene) -> str:
        name, space = s.access.accessed.name, s.access.space
        what = f"{space} memory ({name})" if name and space else "memory"
        return f"{what}: what {s.who} read at {s.there} was never written, and it {use} at {s.here}"

    return words


def _divergent_barrier(s: _Scene) -> str:
    return (
        f"__syncthreads() under divergence: {s.seen.arrived} of {s.seen.expected} threads of a "
        f"warp reach the barrier at {s.here} ({s.who}), {s.that_thread} is at "
        f"{s.there}; every thread must reach the same barrier"
    )


def _divergent_warp_op(s: _Scene) -> str:
    missing = s.seen.mask & ~s.seen.lanes
    return (
        f"warp operation under divergence: the mask {s.seen.mask:#010x} names {s.seen.expected} "
        f"threads; {_lanes(s.seen.lanes)} reach {s.here} ({s.who}), {_lanes(missing)} do not: "
        f"{s.that_thread} is at {s.there}"
    )


def _part_of_a_warp(s: _Scene) -> str:
    missing = s.seen.mask & ~s.seen.lanes
    return (
        f"only {_lanes(s.seen.lanes)} reach {s.here} ({s.who}), an instruction that all 32 threads "
        f"of a warp must execute together; {_lanes(missing)} do not"
    )


def _deadlock(s: _Scene) -> str:
    return (
        f"deadlock: {s.seen.arrived} of {s.seen.expected} threads wait at the barrier at {s.here} "
        f"{s.in_block}, the others wait elsewhere and never arrive"
    )


def _endless(s: _Scene) -> str:
    return f"still running when the time was up: {s.who} was at {s.here}; does this loop end?"


def _trap(s: _Scene) -> str:
    return f"{s.who} stopped the kernel at {s.here} (trap, or calls nested too deep)"


def _assertion(s: _Scene) -> str:
    return f"assertion failed in {s.who} at {s.here}"


def _barrier_uninitialised(s: _Scene) -> str:
    return f"{s.who} uses an mbarrier that was never initialised, at {s.here}"


def _barriers_mixed(s: _Scene) -> str:
    return (
        f"different barriers meet: {s.this_thread} waits in the __syncthreads() at {s.here} while "
        f"other warps wait in the one at {s.there} {s.in_block}; every GPU of today lets them go "
        f"on, but CUDA promises it only if all threads of a block come to the same one"
    )


def _copy_not_committed(s: _Scene) -> str:
    return (
        f"cp.async not committed: {s.this_thread} {s.does} {s.element} at {s.here} while the "
        f"asynchronous copy that {s.that_thread} issued at {s.there} may still be under way "
        f"{s.in_block}; waiting for groups covers only copies that were committed to one: "
        f"__pipeline_commit() before __pipeline_wait_prior()"
    )


def _mask_without_caller(s: _Scene) -> str:
    return (
        f"{s.who} takes part in the warp operation at {s.here}, but its mask {s.seen.mask:#010x} "
        f"does not name its own lane {s.lane}; a mask must name every lane that executes it"
    )


def _mask_beyond_block(s: _Scene) -> str:
    return (
        f"the mask {s.seen.mask:#010x} of the shuffle at {s.here} names lanes that the warp does "
        f"not have: the block ends before them {s.in_block}; what is read from them is undefined"
    )


def _waits_for_ever(s: _Scene) -> str:
    return (
        f"{s.who} waits at {s.here} for a value that no thread writes any more: all others have "
        f"finished or wait, too"
    )


def _not_all_resident(s: _Scene) -> str:
    fit, launched = s.seen.arrived, s.seen.expected
    return (
        f"{s.who} waits at {s.here} for blocks that cannot start: {fit} blocks fit on {s.gpu} at "
        f"the same time, {launched} were launched; blocks that wait for each other must all fit"
    )


def _never_set(s: _Scene) -> str:
    return (
        f"a variable that is used at {s.there} has no value yet in {s.who}, and what comes of it "
        f"is needed at {s.here}; set it first (a sum to 0)"
    )


def _absent_lane(s: _Scene) -> str:
    return (
        f"the shuffle at {s.there} reads from a lane that takes no part in it, and what {s.who} "
        f"got is needed at {s.here}"
    )


def _stack_overflow(s: _Scene) -> str:
    return (
        f"{s.who} calls itself too deep at {s.here}: after {s.seen.arrived} calls that have not "
        f"returned its stack of {s.seen.expected} bytes is full; cudaDeviceSetLimit("
        f"cudaLimitStackSize, …) makes it larger"
    )


_SENTENCES: dict[Event, Callable[[_Scene], str]] = {
    Event.OUT_OF_BOUNDS: _out_of_bounds,
    Event.MISALIGNED: _misaligned,
    Event.RACE: _race,
    Event.ASYNC_RACE: _async_race,
    Event.UNDEFINED_STORE: _undefined("goes into the result stored"),
    Event.UNDEFINED_ADDRESS: _undefined("is used as an address"),
    Event.UNDEFINED_BRANCH: _undefined("decides a branch"),
    Event.DIVERGENT_BARRIER: _divergent_barrier,
    Event.DIVERGENT_WARP_OP: _divergent_warp_op,
    Event.DEADLOCK: _deadlock,
    Event.ENDLESS: _endless,
    Event.TRAP: _trap,
    Event.ASSERTION: _assertion,
    Event.BARRIER_UNINITIALISED: _barrier_uninitialised,
    Event.BARRIERS_MIXED: _barriers_mixed,
    Event.COPY_NOT_COMMITTED: _copy_not_committed,
    Event.MASK_WITHOUT_CALLER: _mask_without_caller,
    Event.MASK_BEYOND_BLOCK: _mask_beyond_block,
    Event.WAITS_FOR_EVER: _waits_for_ever,
    Event.NOT_ALL_RESIDENT: _not_all_resident,
    Event.NEVER_SET: _never_set,
    Event.ABSENT_LANE: _absent_lane,
    Event.STACK_OVERFLOW: _stack_overflow,
    Event.PART_OF_A_WARP: _part_of_a_warp,
}
