"""A sentence for each event that the engine may see."""

from __future__ import annotations

from collections.abc import Callable

from grader.backends.simulator.event_scene import EventScene, byte_count
from ptxsim.findings.finding import Event, Severity

_NOT_UNDER_NULL = 4096  # lower addresses come from a null pointer


def event_sentence(event: Event, scene: EventScene) -> str:
    words = _SENTENCES[event]
    return words.format(s=scene) if isinstance(words, str) else words(scene)


def _out_of_bounds(s: EventScene) -> str:
    access, what = s.access, s.access.accessed
    operation = "write" if access.write else "read"
    head = f"{access.space} {operation}: {s.who} {s.does} {byte_count(access.size)} at "
    if not what.name and access.space != "parameter":
        null = access.address < _NOT_UNDER_NULL
        nothing = "a null pointer" if null else "no device memory"
        return f"{head}{access.address:#x}, which is {nothing}"
    if access.space == "global" and not what.size:
        return f"{head}{s.element}, which was freed before this launch"
    end = what.start + what.size
    if access.address < what.start:
        where = f"{byte_count(what.start - access.address)} before the start of"
    elif access.address >= end:
        where = f"{byte_count(access.address - end)} past the end of"
    else:
        where = "across the end of"
    if access.space == "local":
        return (
            f"local {operation}: {s.who} {s.does} {byte_count(access.size)}, {where} the local "
            f"arrays of {what.name}, which have {byte_count(what.size)}"
        )
    if access.space == "shared" and what.name and not what.size:
        return (
            f"{head}{s.element}, but the launch gives {what.name} no memory: the size of an extern "
            f"__shared__ array in bytes is the third launch argument, <<<grid, block, bytes>>>"
        )
    noun = {"shared": " array", "parameter": ""}.get(access.space, " allocation")
    return f"{head}{s.element}, {where} the {what.size}-byte{noun} {what.name or 'parameters'}"


def _misaligned(s: EventScene) -> str:
    size, what = s.access.size, s.access.accessed
    remedy = "; a float4 needs an index that is a multiple of 4" if size == 16 else ""
    if s.access.space == "shared" and what.name and what.start % size:
        remedy = f"; the array itself does not start at one: declare {what.name} __align__({size})"
    return (
        f"{s.who} {s.does} {size} bytes at once at {s.element}, whose address is not a "
        f"multiple of {size}{remedy}"
    )


def _race(s: EventScene) -> str:
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


_UNDEFINED = "{s.memory}: what {s.who} read at {s.there} was never written, and it "


def _trap(s: EventScene) -> str:
    if s.seen.plain_launch:
        return (
            f"grid.sync() at {s.here} needs a cooperative launch, and this one is not ({s.who}): "
            f"launch the kernel with cudaLaunchCooperativeKernel instead of <<<…>>>"
        )
    return f"{s.who} stopped the kernel at {s.here} (trap, or calls nested too deep)"


# A format of the scene ``s``, or a function of it.
def _mbarrier(s: EventScene) -> str:
    missing = s.seen.mask - (1 << 32) if s.seen.mask >> 31 else s.seen.mask
    why = []
    if s.seen.arrived != s.seen.expected:
        why.append(f"{s.seen.arrived} of {s.seen.expected} arrivals came")
    if missing > 0:
        why.append(f"it still expects {byte_count(missing)} (expect_tx) that no copy brings")
    if missing < 0:
        why.append(f"copies brought {byte_count(-missing)} more than it expects (expect_tx)")
    because = f": {' and '.join(why)}" if why else ""
    return (
        f"{s.who} waits at {s.here} for ever for a phase of the mbarrier that was initialised at "
        f"{s.there}{because}"
    )


def _tensor_map(s: EventScene) -> str:
    if not s.seen.arrived:
        return (
            f"what {s.who} uses as a tensor map at {s.here} is none; "
            "did cuTensorMapEncodeTiled fail?"
        )
    return (
        f"{s.who} uses a tensor map of {s.seen.arrived} dimensions at {s.here}, where "
        f"{s.seen.expected} are asked for"
    )


_SENTENCES: dict[Event, str | Callable[[EventScene], str]] = {
    Event.OUT_OF_BOUNDS: _out_of_bounds,
    Event.MISALIGNED: _misaligned,
    Event.RACE: _race,
    Event.ASYNC_RACE: (
        "cp.async not waited for: {s.this_thread} {s.does} {s.element} at {s.here} while the "
        "asynchronous copy that {s.that_thread} issued at {s.there} may still be under way "
        "{s.in_block}; wait for its group, then __syncthreads()"
    ),
    Event.UNDEFINED_STORE: _UNDEFINED + "goes into the result stored at {s.here}",
    Event.UNDEFINED_ADDRESS: _UNDEFINED + "is used as an address at {s.here}",
    Event.UNDEFINED_BRANCH: _UNDEFINED + "decides a branch at {s.here}",
    Event.DIVERGENT_BARRIER: (
        "__syncthreads() under divergence: {s.seen.arrived} of {s.seen.expected} threads of a "
        "warp reach the barrier at {s.here} ({s.who}), {s.that_thread} is at "
        "{s.there}; every thread must reach the same barrier"
    ),
    Event.DIVERGENT_WARP_OP: (
        "warp operation under divergence: the mask {s.seen.mask:#010x} names {s.seen.expected} "
        "threads; {s.present} reach {s.here} ({s.who}), {s.missing} do not: {s.that_thread} is at "
        "{s.there}"
    ),
    Event.DEADLOCK: (
        "deadlock: {s.seen.arrived} of {s.seen.expected} threads wait at the barrier at {s.here} "
        "{s.in_block}, the others wait elsewhere and never arrive"
    ),
    Event.ENDLESS: (
        "still running when the time was up: {s.who} was at {s.here}; does this loop end?"
    ),
    Event.TRAP: _trap,
    Event.ASSERTION: "assertion failed in {s.who} at {s.here}",
    Event.BARRIER_UNINITIALISED: "{s.who} uses an mbarrier that was never initialised, at {s.here}",
    Event.BARRIERS_MIXED: (
        "different barriers meet: {s.this_thread} waits in the __syncthreads() at {s.here} while "
        "other warps wait in the one at {s.there} {s.in_block}; every GPU of today lets them go "
        "on, but CUDA promises it only if all threads of a block come to the same one"
    ),
    Event.COPY_NOT_COMMITTED: (
        "cp.async not committed: {s.this_thread} {s.does} {s.element} at {s.here} while the "
        "asynchronous copy that {s.that_thread} issued at {s.there} may still be under way "
        "{s.in_block}; waiting for groups covers only copies that were committed to one: "
        "__pipeline_commit() before __pipeline_wait_prior()"
    ),
    Event.MASK_WITHOUT_CALLER: (
        "{s.who} takes part in the warp operation at {s.here}, but its mask {s.seen.mask:#010x} "
        "does not name its own lane {s.lane}; a mask must name every lane that executes it"
    ),
    Event.MASK_BEYOND_BLOCK: (
        "the mask {s.seen.mask:#010x} of the shuffle at {s.here} names lanes that the warp does "
        "not have: the block ends before them {s.in_block}; what is read from them is undefined"
    ),
    Event.WAITS_FOR_EVER: (
        "{s.who} waits at {s.here} for a value that no thread writes any more: all others have "
        "finished or wait, too"
    ),
    Event.NOT_ALL_RESIDENT: (
        "{s.who} waits at {s.here} for blocks that cannot start: {s.seen.arrived} blocks fit on "
        "{s.gpu} at the same time, {s.seen.expected} were launched; blocks that wait for each "
        "other must all fit"
    ),
    Event.NEVER_SET: (
        "a variable that is used at {s.there} has no value yet in {s.who}, and what comes of it "
        "is needed at {s.here}; set it first (a sum to 0)"
    ),
    Event.ABSENT_LANE: (
        "the shuffle at {s.there} reads from a lane that takes no part in it, and what {s.who} "
        "got is needed at {s.here}"
    ),
    Event.STACK_OVERFLOW: (
        "{s.who} calls itself too deep at {s.here}: after {s.seen.arrived} calls that have not "
        "returned its stack of {s.seen.expected} bytes is full; cudaDeviceSetLimit("
        "cudaLimitStackSize, …) makes it larger"
    ),
    Event.PART_OF_A_WARP: (
        "only {s.present} reach {s.here} ({s.who}), an instruction that all 32 threads of a warp "
        "must execute together; {s.missing} do not"
    ),
    Event.MBARRIER_NEVER_COMPLETES: _mbarrier,
    Event.BULK_COPY_RACE: (
        "bulk copy not waited for: {s.this_thread} {s.does} {s.element} at {s.here} while the "
        "copy that {s.that_thread} issued at {s.there} may still be under way {s.in_block}; wait "
        "for the phase of its mbarrier"
    ),
    Event.OPERAND_OVERWRITTEN: (
        "{s.this_thread} writes {s.element} at {s.here} while the asynchronous operation at "
        "{s.there} may still read it {s.in_block}; wait for its group first (wgmma.wait_group or "
        "cp.async.bulk.wait_group.read)"
    ),
    Event.PROXY_FENCE_MISSING: (
        "{s.here} reads {s.element} through the async proxy, and {s.that_thread} wrote it at "
        "{s.there} with a plain store {s.in_block}: no fence.proxy.async between them makes it "
        "visible there"
    ),
    Event.PROXY_FENCE_AFTER_COPY: (
        "{s.here} reads {s.element} through the async proxy, and a cp.async of {s.that_thread} "
        "wrote it at {s.there} {s.in_block} with no fence.proxy.async between them; GPUs of today "
        "read the right data, but PTX does not promise it"
    ),
    Event.WGMMA_NOT_FENCED: (
        "the wgmma at {s.here} has no wgmma.fence before it ({s.who}): its registers may not hold "
        "what was put there"
    ),
    Event.WGMMA_REGISTERS_SET: (
        "registers of the wgmma at {s.here} were set after the last wgmma.fence ({s.who}); PTX "
        "asks for a wgmma.fence between them"
    ),
    Event.WGMMA_NOT_WAITED_FOR: (
        "{s.who} uses at {s.here} the result of the wgmma at {s.there}, which may still be under "
        "way: wgmma.commit_group and wgmma.wait_group first"
    ),
    Event.WARPS_NOT_ORDERED: (
        "the wgmma at {s.here} reads {s.element}, which {s.that_thread} of another warp wrote at "
        "{s.there} with no barrier between them {s.in_block}; GPUs of today start a wgmma when "
        "its four warps have come, but PTX does not promise it"
    ),
    Event.BAD_TENSOR_MAP: _tensor_map,
    Event.PEER_EXITED: (
        "{s.who} accesses at {s.here} the shared memory of {s.that_block}, which has ended; a "
        "barrier of the cluster must keep it alive"
    ),
}
