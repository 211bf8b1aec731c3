"""A sentence for each event that the engine may see."""

from __future__ import annotations

from collections.abc import Callable

from grader.backends.simulator.event_scene import EventScene, byte_count
from grader.backends.simulator.misplaced_accesses import misaligned, out_of_bounds
from grader.model import Message, enumerated, phrase
from ptxsim.findings.finding import Event, Severity


def event_sentence(event: Event, scene: EventScene) -> Message:
    words = _SENTENCES[event]
    return scene.told(words if isinstance(words, Message) else words(scene))


def _race(s: EventScene) -> Message:
    if s.access.space == "shared" and not s.same_block:
        return phrase(
            "in shared memory of a cluster {who} {does} {element} at {here}, which {that_one} "
            "{did} at {there}, and nothing orders the two; a barrier of the cluster does, or an "
            "mbarrier at which one arrives and the other waits"
        )
    if s.access.space == "shared":
        return phrase(
            "in shared memory {this_thread} {does} {element} at {here}, which {that_thread} {did} "
            "at {there} with no __syncthreads() (or, within a warp, __syncwarp()) between them "
            "{in_block}"
        )
    if s.same_block:
        return phrase(
            "in global memory {this_thread} {does} {element} at {here}, which {that_thread} of the "
            "same block {did} at {there} with no __syncthreads() between them"
        )
    if s.seen.severity is Severity.WARNING:
        return phrase(
            "double work: {who} {does} {element} at {here} though {that_one} already wrote the "
            "same value; is the grid too large?"
        )
    return phrase(
        "between blocks: {who} {does} {element} at {here}, which {that_one} {did} at {there}; "
        "blocks run in any order: use atomicAdd, a second kernel, or a flag that a block waits for "
        "(a fence alone does not order them)"
    )


def _trap(s: EventScene) -> Message:
    if s.seen.plain_launch:
        return phrase(
            "grid.sync() at {here} needs a cooperative launch, and this one is not ({who}): "
            "launch the kernel with cudaLaunchCooperativeKernel instead of <<<…>>>"
        )
    return phrase("{who} stopped the kernel at {here} (trap, or calls nested too deep)")


def _mbarrier(s: EventScene) -> Message:
    missing = s.seen.mask - (1 << 32) if s.seen.mask >> 31 else s.seen.mask
    why = []
    if s.seen.arrived != s.seen.expected:
        why.append(s.told(phrase("{arrived} of {expected} arrivals came")))
    if missing > 0:
        bytes_ = byte_count(missing)
        why.append(phrase("it still expects {bytes} (expect_tx) that no copy brings", bytes=bytes_))
    if missing < 0:
        bytes_ = byte_count(-missing)
        why.append(phrase("copies brought {bytes} more than it expects (expect_tx)", bytes=bytes_))
    found = s.told(
        phrase(
            "{who} waits at {here} for ever for a phase of the mbarrier that was initialised at "
            "{there}"
        )
    )
    return phrase("{found}: {why}", found=found, why=enumerated(why)) if why else found


def _proxy_fence(s: EventScene) -> Message:
    if not s.same_block:
        return phrase(
            "{here} reads {element} of {this_block} through the async proxy, and {that_one} wrote "
            "it there at {there} with a plain store: no fence.proxy.async between them makes it "
            "visible"
        )
    return phrase(
        "{here} reads {element} through the async proxy, and {that_thread} wrote it at "
        "{there} with a plain store {in_block}: no fence.proxy.async between them makes it "
        "visible there"
    )


def _before_grid_wait(s: EventScene) -> Message:
    if s.seen.other_write:
        return phrase(
            "{who} {does} {element} at {here} before it has waited for the kernel launched before "
            "this one, which may still be writing there: a programmatic launch may begin early, so "
            "call cudaGridDependencySynchronize() (griddepcontrol.wait) first"
        )
    return phrase(
        "{who} {does} {element} at {here} before it has waited for the kernel launched before "
        "this one, which may still be reading there: a programmatic launch may begin early, so "
        "call cudaGridDependencySynchronize() (griddepcontrol.wait) first"
    )


def _tensor_map(s: EventScene) -> Message:
    if not s.seen.arrived:
        return phrase(
            "what {who} uses as a tensor map at {here} is none; did cuTensorMapEncodeTiled fail?"
        )
    return phrase(
        "{who} uses a tensor map of {arrived} dimensions at {here}, where {expected} are asked for"
    )


def _coordinate(s: EventScene) -> int:
    """The one in question, of 32 bits with a sign."""
    return s.seen.arrived - (1 << 32) if s.seen.arrived >> 31 else s.seen.arrived


def _tile_before_tensor(s: EventScene) -> Message:
    return phrase(
        "the tile that {who} stores at {here} has {at} as coordinate {dimension} (0 is the "
        "innermost): a store may reach beyond its tensor's end, but no coordinate of its start may "
        "be negative",
        at=_coordinate(s),
        dimension=s.seen.expected,
    )


def _tile_misaligned(s: EventScene) -> Message:
    first = _coordinate(s)
    return phrase(
        "the tile that {who} copies at {here} has {first} as its innermost coordinate, which comes "
        "to {bytes}: GPUs take multiples of 16 bytes only, and stop at others with an illegal "
        "instruction",
        first=first,
        bytes=byte_count(first * s.seen.expected),
    )


# A sentence about the scene, or a function of it.
_SENTENCES: dict[Event, Message | Callable[[EventScene], Message]] = {
    Event.OUT_OF_BOUNDS: out_of_bounds,
    Event.MISALIGNED: misaligned,
    Event.RACE: _race,
    Event.ASYNC_RACE: phrase(
        "cp.async not waited for: {this_thread} {does} {element} at {here} while the "
        "asynchronous copy that {that_thread} issued at {there} may still be under way "
        "{in_block}; wait for its group, then __syncthreads()"
    ),
    Event.UNDEFINED_STORE: phrase(
        "{memory}: what {who} read at {there} was never written, and it goes "
        "into the result stored at {here}"
    ),
    Event.UNDEFINED_ADDRESS: phrase(
        "{memory}: what {who} read at {there} was never written, and it is "
        "used as an address at {here}"
    ),
    Event.UNDEFINED_BRANCH: phrase(
        "{memory}: what {who} read at {there} was never written, and it decides a branch at {here}"
    ),
    Event.DIVERGENT_BARRIER: phrase(
        "__syncthreads() under divergence: {arrived} of {expected} threads of a "
        "warp reach the barrier at {here} ({who}), {that_thread} is at "
        "{there}; every thread must reach the same barrier"
    ),
    Event.DIVERGENT_WARP_OP: phrase(
        "warp operation under divergence: the mask {mask:#010x} names {expected} "
        "threads; {present} reach {here} ({who}), {missing} do not: {that_thread} is at "
        "{there}"
    ),
    Event.DEADLOCK: phrase(
        "deadlock: {arrived} of {expected} threads wait at the barrier at {here} "
        "{in_block}, the others wait elsewhere and never arrive"
    ),
    Event.ENDLESS: phrase(
        "still running when the time was up: {who} was at {here}; does this loop end?"
    ),
    Event.TRAP: _trap,
    Event.ASSERTION: phrase("assertion failed in {who} at {here}"),
    Event.BARRIER_UNINITIALISED: phrase(
        "{who} uses an mbarrier that was never initialised, at {here}"
    ),
    Event.BARRIERS_MIXED: phrase(
        "different barriers meet: {this_thread} waits in the __syncthreads() at {here} while "
        "other warps wait in the one at {there} {in_block}; every GPU of today lets them go "
        "on, but CUDA promises it only if all threads of a block come to the same one"
    ),
    Event.COPY_NOT_COMMITTED: phrase(
        "cp.async not committed: {this_thread} {does} {element} at {here} while the "
        "asynchronous copy that {that_thread} issued at {there} may still be under way "
        "{in_block}; waiting for groups covers only copies that were committed to one: "
        "__pipeline_commit() before __pipeline_wait_prior()"
    ),
    Event.MASK_WITHOUT_CALLER: phrase(
        "{who} takes part in the warp operation at {here}, but its mask {mask:#010x} "
        "does not name its own lane {lane}; a mask must name every lane that executes it"
    ),
    Event.MASK_BEYOND_BLOCK: phrase(
        "the mask {mask:#010x} of the shuffle at {here} names lanes that the warp does "
        "not have: the block ends before them {in_block}; what is read from them is undefined"
    ),
    Event.WAITS_FOR_EVER: phrase(
        "{who} waits at {here} for a value that no thread writes any more: all others have "
        "finished or wait, too"
    ),
    Event.NOT_ALL_RESIDENT: phrase(
        "{who} waits at {here} for blocks that cannot start: {arrived} blocks fit on "
        "{gpu} at the same time, {expected} were launched; blocks that wait for each "
        "other must all fit"
    ),
    Event.NEVER_SET: phrase(
        "a variable that is used at {there} has no value yet in {who}, and what comes of it "
        "is needed at {here}; set it first (a sum to 0)"
    ),
    Event.ABSENT_LANE: phrase(
        "the shuffle at {there} reads from a lane that takes no part in it, and what {who} "
        "got is needed at {here}"
    ),
    Event.STACK_OVERFLOW: phrase(
        "{who} calls itself too deep at {here}: after {arrived} calls that have not "
        "returned its stack of {expected} bytes is full; cudaDeviceSetLimit("
        "cudaLimitStackSize, …) makes it larger"
    ),
    Event.PART_OF_A_WARP: phrase(
        "only {present} reach {here} ({who}), an instruction that all 32 threads of a warp "
        "must execute together; {missing} do not"
    ),
    Event.MBARRIER_NEVER_COMPLETES: _mbarrier,
    Event.BULK_COPY_RACE: phrase(
        "bulk copy not waited for: {this_thread} {does} {element} at {here} while the "
        "copy (or st.async) that {that_thread} issued at {there} may still be under way "
        "{in_block}; wait for the phase of its mbarrier"
    ),
    Event.OPERAND_OVERWRITTEN: phrase(
        "{this_thread} writes {element} at {here} while the asynchronous operation at "
        "{there} may still read it {in_block}; wait for its group first (wgmma.wait_group or "
        "cp.async.bulk.wait_group.read)"
    ),
    Event.PROXY_FENCE_MISSING: _proxy_fence,
    Event.PROXY_FENCE_AFTER_COPY: phrase(
        "{here} reads {element} through the async proxy, and a cp.async of {that_thread} "
        "wrote it at {there} {in_block} with no fence.proxy.async between them; GPUs of today "
        "read the right data, but PTX does not promise it"
    ),
    Event.WGMMA_NOT_FENCED: phrase(
        "the wgmma at {here} has no wgmma.fence before it ({who}): its registers may not hold "
        "what was put there"
    ),
    Event.WGMMA_REGISTERS_SET: phrase(
        "registers of the wgmma at {here} were set after the last wgmma.fence ({who}); PTX "
        "asks for a wgmma.fence between them"
    ),
    Event.WGMMA_NOT_WAITED_FOR: phrase(
        "{who} uses at {here} the result of the wgmma at {there}, which may still be under "
        "way: wgmma.commit_group and wgmma.wait_group first"
    ),
    Event.WARPS_NOT_ORDERED: phrase(
        "the wgmma at {here} reads {element}, which {that_thread} of another warp wrote at "
        "{there} with no barrier between them {in_block}; GPUs of today start a wgmma when "
        "its four warps have come, but PTX does not promise it"
    ),
    Event.BAD_TENSOR_MAP: _tensor_map,
    Event.PEER_EXITED: phrase(
        "{who} accesses at {here} the shared memory of {that_block}, which may have ended by "
        "then; a barrier of the cluster must keep it alive"
    ),
    Event.UNUSED_RACE: phrase(
        "in shared memory {this_thread} {does} {element} at {here}, which {that_one} {did} at "
        "{there}, and nothing orders the two; nothing uses what was read, so it does no harm here, "
        "but a __syncthreads() between them would make that certain"
    ),
    Event.BEFORE_GRID_WAIT: _before_grid_wait,
    Event.TILE_MISALIGNED: _tile_misaligned,
    Event.TILE_BEFORE_TENSOR: _tile_before_tensor,
    Event.PEER_NOT_STARTED: phrase(
        "{who} accesses at {here} the shared memory of {that_block}, which may not have started "
        "yet; a barrier of the cluster must come first"
    ),
}
