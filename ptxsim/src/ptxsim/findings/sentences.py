"""Findings in words. An event's sentence stands in events.json; where there are several, a function
here chooses."""

from collections.abc import Callable

from ptxsim.findings.details import Dimensions
from ptxsim.findings.event_table import SENTENCES, Event
from ptxsim.findings.finding import Crossing, Finding, FindingKind, Severity
from ptxsim.findings.names import plain_name
from ptxsim.findings.scene import EventScene, byte_count, line_of
from ptxsim.plan import records
from ptxsim.text import NOTHING, Message, phrase

_NOT_UNDER_NULL = 4096  # lower addresses come from a null pointer


def sentence(seen: Finding, gpu: str = "") -> Message:
    found = _sentence(seen, gpu)
    if seen.order == NOTHING:
        return found
    return phrase("{found} ({order})", found=found, order=seen.order)


def _sentence(seen: Finding, gpu: str) -> Message:
    if seen.streams is not None:
        return _stream_race(seen.streams, seen.place)
    if seen.event is None:
        if seen.kind is FindingKind.TENSOR_CORE:
            return phrase("{instruction} runs on tensor cores", instruction=seen.text)
        return seen.text
    scene, words = EventScene(seen, gpu), SENTENCES[seen.event.name]
    if isinstance(words, dict):
        words = words[_CHOSEN[seen.event](scene)]
    found = scene.fill(Message(text=words))
    if seen.overlap is None or seen.overlap.offset:
        return found
    return phrase(
        "{found}; {one} and {other} are both extern __shared__, so they begin at one address",
        found=found,
        one=seen.overlap.overwritten,
        other=seen.overlap.written,
    )


def _stream_race(seen: Crossing, shown: records.Place | None) -> Message:
    first, second = _operation_at(seen.first, shown), _operation_at(seen.second, shown)
    return phrase(
        "{first} on one stream and {second} on another use {name}, and nothing orders them: record "
        "an event behind the one and let the other's stream wait for it",
        first=first,
        second=second,
        name=seen.name,
    )


def _operation_at(operation: records.Operation, shown: records.Place | None) -> Message:
    what = _operation(operation)
    if not operation.place:
        return what
    return phrase("{what} at {line}", what=what, line=line_of(operation.place, shown))


def _operation(operation: records.Operation) -> Message:
    match operation:
        case records.Launch(kernel=kernel):
            return phrase("kernel `{kernel}`", kernel=plain_name(kernel))
        case records.Memset(size=size):
            return phrase("the memset of {bytes}", bytes=byte_count(size))
        case records.Copy(size=size):
            return phrase("the copy of {bytes}", bytes=byte_count(size))
        case records.SymbolWrite(symbol=symbol):
            return phrase("the copy to {symbol}", symbol=plain_name(symbol))
        case records.Write(data=data):
            return phrase("the copy of {bytes} from the host", bytes=byte_count(len(data)))
        case records.Allocate():
            return phrase("the allocation")
        case records.Free():
            return phrase("freeing")
    return phrase("an operation")


# --- events -----------------------------------------------------------------------------------


def _out_of_bounds(s: EventScene) -> str:
    access, what = s.access, s.access.accessed
    if not what.name and access.space != "parameter":
        nowhere = "nowhere" if s.seen.pointer is None else "by a pointer"
        return "null" if access.address < _NOT_UNDER_NULL else nowhere
    if access.space == "global" and not what.size:
        return "freed"
    if access.space == "shared" and what.name and not what.size:
        return "no size"
    return "local" if access.space == "local" and not what.element else "any"


def _misaligned(s: EventScene) -> str:
    size, what = s.access.size, s.access.accessed
    if s.access.space == "shared" and what.name and what.start % size:
        return "array"
    if not what.element or size <= what.element:
        return "any"
    return "float4" if size == 16 and what.element == 4 else "several"


def _race(s: EventScene) -> str:
    if s.access.space == "shared" and not s.same_block:
        return "in cluster"
    if s.seen.updates and s.seen.severity is Severity.ERROR:
        one, other = s.seen.thread, s.seen.other_thread
        assert one and other
        if not s.same_block:
            return "changed between blocks"
        in_warp = (one[0] // 32, *one[1:]) == (other[0] // 32, *other[1:])
        return "changed in a warp" if in_warp else "changed in a block"
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


def _by_space(s: EventScene) -> str:
    return "in shared memory" if s.access.space == "shared" else "in global memory"


def _by_block(s: EventScene) -> str:
    return "in block" if s.same_block else "between blocks"


def _proxy_fence_missing(s: EventScene) -> str:
    if s.access.write:
        return "over a store"
    return "in global memory" if s.access.space == "global" else _by_block(s)


def _dimensions(s: EventScene) -> str:
    seen = s.seen.detail
    assert isinstance(seen, Dimensions)
    return "dimensions" if seen.found else "none"


def _bad_texture(s: EventScene) -> str:
    seen = s.seen.detail
    assert isinstance(seen, Dimensions)
    if seen.wanted < 0:
        return "layers"
    return "type" if seen.found == seen.wanted else _dimensions(s)


_CHOSEN: dict[Event, Callable[[EventScene], str]] = {
    Event.OUT_OF_BOUNDS: _out_of_bounds,
    Event.MISALIGNED: _misaligned,
    Event.NO_FUNCTION: lambda s: "null" if s.access.address < _NOT_UNDER_NULL else "other",
    Event.FREED_TWICE: lambda s: "by another" if s.access.accessed.size else "in an earlier launch",
    Event.RACE: _race,
    Event.ATOMIC_AND_PLAIN: _by_space,
    Event.BULK_COPY_RACE: _by_space,
    Event.OPERAND_OVERWRITTEN: _by_space,
    Event.UNUSED_RACE: _by_space,
    Event.VOLATILE_RACE: _by_block,
    Event.NO_FENCE_AFTER_FLAG: _by_block,
    Event.PROXY_FENCE_MISSING: _proxy_fence_missing,
    Event.ENDLESS: lambda s: "reads once" if s.seen.reads_once else "any",
    Event.TRAP: lambda s: "grid barrier" if s.seen.plain_launch else "any",
    Event.BEFORE_GRID_WAIT: lambda s: "after write" if s.seen.other_write else "after read",
    Event.BAD_TENSOR_MAP: _dimensions,
    Event.BAD_TEXTURE: _bad_texture,
    Event.BAD_SURFACE: _dimensions,
}
