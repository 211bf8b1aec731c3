"""The sentences about an access out of bounds or at a misaligned address."""

from __future__ import annotations

from grader.backends.simulator.event_scene import EventScene, byte_count
from grader.model import Message, phrase
from ptxsim.findings.finding import Access

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
