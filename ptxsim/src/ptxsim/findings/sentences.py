"""The sentences about events that need more than their scene's names."""

from ptxsim.findings.finding import Severity
from ptxsim.findings.scene import EventScene, byte_count
from ptxsim.text import Message, enumerated, phrase

_NOT_UNDER_NULL = 4096  # lower addresses come from a null pointer


def out_of_bounds(s: EventScene) -> str:
    access, what = s.access, s.access.accessed
    if not what.name and access.space != "parameter":
        return "null" if access.address < _NOT_UNDER_NULL else "nowhere"
    if access.space == "global" and not what.size:
        return "freed"
    if access.space == "shared" and what.name and not what.size:
        return "no size"
    return "local" if access.space == "local" and not what.element else "any"


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
    if not what.element or size <= what.element:
        return found
    if size == 16 and what.element == 4:
        return phrase("{found}; a float4 needs an index that is a multiple of 4", found=found)
    return phrase(
        "{found}; so many at once need an index that is a multiple of {count}",
        found=found,
        count=size // what.element,
    )


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


bulk_copy_race = operand_overwritten = unused_race = atomic_and_plain


def volatile_race(s: EventScene) -> str:
    return "in block" if s.same_block else "between blocks"


no_fence_after_flag = volatile_race


def proxy_fence_missing(s: EventScene) -> str:
    if s.access.write:
        return "over a store"
    return "in global memory" if s.access.space == "global" else volatile_race(s)


def extern_arrays_meet(s: EventScene) -> Message:
    seen = s.seen.overlap
    assert seen
    return s.told(
        phrase(
            "{one} and {other} are both extern __shared__, so they begin at one address: what "
            "{this_thread} writes to {other} at {here} overwrites {one}, which {that_thread} reads "
            "at {there} {in_block}; let {later} begin {bytes} behind the start of {first} "
            "({later} = {first} + {count}, in elements of {element} bytes)",
            one=seen.overwritten,
            other=seen.written,
            later=seen.later,
            first=seen.first,
            bytes=byte_count(seen.offset),
            count=seen.offset // seen.element,
            element=seen.element,
        )
    )


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
