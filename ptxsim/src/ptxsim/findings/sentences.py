"""The sentences about events that need more than their scene's names."""

from __future__ import annotations

from ptxsim.findings.finding import Access, Severity
from ptxsim.findings.scene import EventScene, byte_count
from ptxsim.message import Message, enumerated, phrase

_NOT_UNDER_NULL = 4096  # lower addresses come from a null pointer


def out_of_bounds(s: EventScene) -> Message:
    access, what = s.access, s.access.accessed
    if not what.name and access.space != "parameter":
        if access.address < _NOT_UNDER_NULL:
            return phrase(
                "{space} {operation}: {who} {does} {bytes} at {address:#x}, which is a null "
                "pointer",
                address=access.address,
            )
        return phrase(
            "{space} {operation}: {who} {does} {bytes} at {address:#x}, which is no device memory",
            address=access.address,
        )
    if access.space == "global" and not what.size:
        return phrase(
            "{space} {operation}: {who} {does} {bytes} at {element}, which was freed before this "
            "launch"
        )
    if access.space == "shared" and what.name and not what.size:
        return phrase(
            "{space} {operation}: {who} {does} {bytes} at {element}, but the launch gives {name} "
            "no memory: the size of an extern __shared__ array in bytes is the third launch "
            "argument, <<<grid, block, bytes>>>",
            name=what.name,
        )
    if access.space == "local":
        return phrase(
            "{space} {operation}: {who} {does} {bytes}, {where}, which have {room}",
            where=_where(access, phrase("the local arrays of {name}", name=what.name)),
            room=byte_count(what.size),
        )
    return phrase(
        "{space} {operation}: {who} {does} {bytes} at {element}, {where}",
        where=_where(access, _whole(access)),
    )


def _where(access: Access, whole: Message) -> Message:
    start, end = access.accessed.start, access.accessed.start + access.accessed.size
    if access.address < start:
        before = byte_count(start - access.address)
        return phrase("{bytes} before the start of {whole}", bytes=before, whole=whole)
    if access.address >= end:
        if access.address == end:
            return phrase("0 bytes past the end of {whole}", whole=whole)
        past = byte_count(access.address - end)
        return phrase("{bytes} past the end of {whole}", bytes=past, whole=whole)
    return phrase("across the end of {whole}", whole=whole)


def _whole(access: Access) -> Message:
    name, size = access.accessed.name, access.accessed.size
    if access.space == "shared":
        return phrase("the {size}-byte array {name}", size=size, name=name)
    if access.space != "parameter":
        return phrase("the {size}-byte allocation {name}", size=size, name=name)
    if name:
        return phrase("the {size}-byte {name}", size=size, name=name)
    return phrase("the {size}-byte parameters", size=size)


def misaligned(s: EventScene) -> Message:
    size, what = s.access.size, s.access.accessed
    found = s.told(
        phrase(
            "{who} {does} {size} bytes at once at {element}, whose address is not a multiple of "
            "{size}",
            size=size,
        )
    )
    if s.access.space == "shared" and what.name and what.start % size:
        return phrase(
            "{found}; the array itself does not start at one: declare {name} __align__({size})",
            found=found,
            name=what.name,
            size=size,
        )
    if size == 16:
        return phrase("{found}; a float4 needs an index that is a multiple of 4", found=found)
    return found


def no_function(s: EventScene) -> Message:
    if s.access.address < _NOT_UNDER_NULL:
        return phrase(
            "{who} calls a function through a null pointer at {here}: the pointer (or the table of "
            "an object with virtual functions) was never set"
        )
    return phrase(
        "{who} calls a function through a pointer at {here}, and no function of these parameters "
        "and this result lies at {address:#x}; a function's address in device code differs from "
        "the one that the host sees",
        address=s.access.address,
    )


def freed_twice(s: EventScene) -> Message:
    if not s.access.accessed.size:
        return phrase(
            "{who} frees {name} a second time at {here}: an earlier launch already did",
            name=s.access.accessed.name,
        )
    return phrase(
        "{who} frees {name} a second time at {here}: {that_one} already did at {there}",
        name=s.access.accessed.name,
    )


def freed_wrongly(s: EventScene) -> Message:
    return phrase(
        "{who} frees {element} at {here}, and no malloc or new in a kernel returned this address"
    )


def race(s: EventScene) -> Message:
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
    by_one_line = s.access.write and s.seen.other_write and s.seen.here == s.seen.there
    if s.same_block and by_one_line:
        return phrase(
            "two threads of a block write the same element: {this_thread} writes {element} at "
            "{here}, where {that_thread} wrote it, too {in_block}; a barrier does not help: an "
            "index is wrong, or the check of the bounds is missing"
        )
    if s.same_block:
        return phrase(
            "in global memory {this_thread} {does} {element} at {here}, which {that_thread} of the "
            "same block {did} at {there} with no __syncthreads() (or, within a warp, __syncwarp()) "
            "between them"
        )
    if s.seen.severity is Severity.WARNING:
        return phrase(
            "double work: {who} {does} {element} at {here} though {that_one} already wrote the "
            "same value; is the grid too large?"
        )
    if by_one_line:
        return phrase(
            "between blocks: {who} writes {element} at {here}, where {that_one} wrote another "
            "value; no barrier helps: if the element is one thread's alone, an index is wrong or "
            "the check of the bounds is missing; if both add to it, use atomicAdd"
        )
    return phrase(
        "between blocks: {who} {does} {element} at {here}, which {that_one} {did} at {there}; "
        "blocks run in any order: use atomicAdd, a second kernel, or a flag that a block waits "
        "for, with a __threadfence() before it is set and another after the wait (fences alone "
        "order nothing)"
    )


def atomic_and_plain(s: EventScene) -> Message:
    if s.access.space == "shared":
        return phrase(
            "{element} is changed by an atomic operation and by a plain store: {this_thread} at "
            "{here}, {that_thread} at {there} {in_block}; nothing says which comes first: put a "
            "__syncthreads() between them"
        )
    return phrase(
        "{element} is changed by an atomic operation and by a plain store: {who} at {here}, "
        "{that_one} at {there}; nothing says which comes first, since blocks run in any order: "
        "clear it before the launch, with cudaMemset or a kernel of its own (a __syncthreads() "
        "between them is enough only if no other block changes it)"
    )


def volatile_race(s: EventScene) -> Message:
    if s.same_block:
        return phrase(
            "volatile orders nothing: {this_thread} {does} {element} at {here}, which "
            "{that_thread} {did} at {there} {in_block}, and no thread waits for it to change; put "
            "a __syncthreads() (within a warp, a __syncwarp()) between them"
        )
    return phrase(
        "volatile orders nothing: {who} {does} {element} at {here}, which {that_one} {did} at "
        "{there}, and no thread waits for it to change; use atomicAdd, a second kernel, or a flag "
        "that a block waits for, with a __threadfence() before it is set and another after the wait"
    )


def no_fence_after_flag(s: EventScene) -> Message:
    if s.same_block:
        return phrase(
            "{this_thread} {does} {element} at {here}, which {that_thread} {did} at {there} "
            "{in_block}: a flag, a lock or a relaxed wait has told it so, but it has executed no "
            "fence since; put a __threadfence_block() behind the wait"
        )
    return phrase(
        "{who} {does} {element} at {here}, which {that_one} {did} at {there}: a flag or a lock has "
        "told it so, but it has executed no fence since and may find an old value; put a "
        "__threadfence() behind the wait"
    )


def trap(s: EventScene) -> Message:
    if s.seen.plain_launch:
        return phrase(
            "grid.sync() at {here} needs a cooperative launch, and this one is not ({who}): "
            "launch the kernel with cudaLaunchCooperativeKernel instead of <<<…>>>"
        )
    return phrase("{who} stopped the kernel at {here} (trap, or calls nested too deep)")


def mbarrier_never_completes(s: EventScene) -> Message:
    missing = s.seen.mask - (1 << 32) if s.seen.mask >> 31 else s.seen.mask
    why = []
    if s.seen.arrived != s.seen.expected:
        why.append(s.told(phrase("{arrived} of {expected} arrivals came")))
    announced = s.access.address
    tally = {"announced": byte_count(announced), "brought": byte_count(announced - missing)}
    if missing > 0:
        why.append(
            phrase(
                "expect_tx announced {announced} and copies brought {brought}: it still expects "
                "{bytes} that no copy brings",
                bytes=byte_count(missing),
                **tally,
            )
        )
    if missing < 0:
        why.append(
            phrase(
                "expect_tx announced {announced} and copies brought {brought}: {bytes} more than "
                "it expects",
                bytes=byte_count(-missing),
                **tally,
            )
        )
    found = s.told(
        phrase(
            "{who} waits at {here} for ever for a phase of the mbarrier that was initialised at "
            "{there}"
        )
    )
    return phrase("{found}: {why}", found=found, why=enumerated(why)) if why else found


def proxy_fence_missing(s: EventScene) -> Message:
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


def before_grid_wait(s: EventScene) -> Message:
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


def bad_tensor_map(s: EventScene) -> Message:
    if not s.seen.arrived:
        return phrase(
            "{who} uses an invalid tensor map at {here}; did cuTensorMapEncodeTiled fail?"
        )
    return phrase(
        "{who} uses a tensor map of {arrived} dimensions at {here}, where {expected} are asked for"
    )


def bad_texture(s: EventScene) -> Message:
    if not s.seen.arrived:
        return phrase(
            "{who} reads a texture at {here}, and {address:#x} is no texture object: only "
            "cudaCreateTextureObject makes one; read memory through its pointer",
            address=s.access.address,
        )
    if s.seen.arrived != s.seen.expected:
        return phrase(
            "{who} reads at {here} a texture of {arrived} dimensions with {expected} coordinates"
        )
    return phrase(
        "{who} reads at {here} a texture of integers as floats, or one of floats as integers: the "
        "type in tex2D<…> must be the one that the texture object gives"
    )


def _coordinate(s: EventScene) -> int:
    """The one in question, of 32 bits with a sign."""
    return s.seen.arrived - (1 << 32) if s.seen.arrived >> 31 else s.seen.arrived


def tile_before_tensor(s: EventScene) -> Message:
    return phrase(
        "the tile that {who} stores at {here} has {at} as coordinate {dimension} (0 is the "
        "innermost): a store may reach beyond its tensor's end, but no coordinate of its start may "
        "be negative",
        at=_coordinate(s),
        dimension=s.seen.expected,
    )


def tile_misaligned(s: EventScene) -> Message:
    first = _coordinate(s)
    return phrase(
        "the tile that {who} copies at {here} has {first} as its innermost coordinate, which comes "
        "to {bytes}: GPUs take multiples of 16 bytes only, and stop at others with an illegal "
        "instruction",
        first=first,
        bytes=byte_count(first * s.seen.expected),
    )
