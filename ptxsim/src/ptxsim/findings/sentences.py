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


def no_function(s: EventScene) -> str:
    return "null" if s.access.address < _NOT_UNDER_NULL else "other"


def freed_twice(s: EventScene) -> str:
    return "in an earlier launch" if not s.access.accessed.size else "by another"


def race(s: EventScene) -> str:
    if s.access.space == "shared" and not s.same_block:
        return "in cluster"
    if s.access.space == "shared":
        return "in shared memory"
    by_one_line = s.access.write and s.seen.other_write and s.seen.here == s.seen.there
    if s.same_block and by_one_line:
        return "at one line of a block"
    if s.same_block:
        return "in block"
    if s.seen.severity is Severity.WARNING:
        return "double work"
    return "at one line" if by_one_line else "between blocks"


def atomic_and_plain(s: EventScene) -> str:
    return "in shared memory" if s.access.space == "shared" else "in global memory"


def volatile_race(s: EventScene) -> str:
    return "in block" if s.same_block else "between blocks"


no_fence_after_flag = proxy_fence_missing = volatile_race


def trap(s: EventScene) -> str:
    return "grid barrier" if s.seen.plain_launch else "any"


def mbarrier_never_completes(s: EventScene) -> Message:
    missing = s.seen.mask - (1 << 32) if s.seen.mask >> 31 else s.seen.mask
    why = []
    if s.seen.arrived != s.seen.expected:
        why.append(s.told(phrase("{arrived} of {expected} arrivals came")))
    if missing:
        too_few = phrase(
            "expect_tx announced {announced} and copies brought {brought}: it still expects "
            "{bytes} that no copy brings"
        )
        too_many = phrase(
            "expect_tx announced {announced} and copies brought {brought}: {bytes} more than it "
            "expects"
        )
        announced, brought = s.access.address, s.access.address - missing
        tally = (too_few if missing > 0 else too_many).given(bytes=byte_count(abs(missing)))
        why.append(tally.given(announced=byte_count(announced), brought=byte_count(brought)))
    found = s.told(
        phrase(
            "{who} waits at {here} for ever for a phase of the mbarrier that was initialised at "
            "{there}"
        )
    )
    return phrase("{found}: {why}", found=found, why=enumerated(why)) if why else found


def before_grid_wait(s: EventScene) -> str:
    return "after write" if s.seen.other_write else "after read"


def bad_tensor_map(s: EventScene) -> str:
    return "none" if not s.seen.arrived else "dimensions"


def bad_texture(s: EventScene) -> str:
    if not s.seen.arrived:
        return "none"
    return "dimensions" if s.seen.arrived != s.seen.expected else "type"


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
