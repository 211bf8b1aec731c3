"""Findings in words: the names and numbers that an event's sentence asks for."""

from ptxsim.findings.finding import Access, Crossing, Finding, Kind
from ptxsim.findings.names import plain_name
from ptxsim.plan import records
from ptxsim.text import NOTHING, Message, counted, enumerated, phrase, verbatim

_SPACES = {
    "global": phrase("global"),
    "shared": phrase("shared"),
    "local": phrase("local"),
    "parameter": phrase("parameter"),
    "constant": phrase("constant"),
}


def sentence(seen: Finding, gpu: str = "") -> Message:
    found = _sentence(seen, gpu)
    if seen.order == NOTHING:
        return found
    return phrase("{found} ({order})", found=found, order=seen.order)


def _sentence(seen: Finding, gpu: str) -> Message:
    if seen.streams is not None:
        return _stream_race(seen.streams, seen.place)
    if seen.event is None:
        if seen.kind is Kind.TENSOR_CORE:
            return phrase("{instruction} runs on tensor cores", instruction=seen.text)
        return seen.text
    found = seen.event.sentence(EventScene(seen, gpu))
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


class EventScene:
    """The names and numbers of one event, as its sentence needs them."""

    def __init__(self, seen: Finding, gpu: str) -> None:
        assert seen.access and seen.block and seen.thread
        assert seen.other_block and seen.other_thread
        self.seen = seen
        self.gpu = phrase("the {gpu}", gpu=gpu) if gpu else phrase("the GPU")
        self.access = seen.access
        self.same_block = seen.block == seen.other_block
        self.here, self.there = line_of(seen.here, seen.place), line_of(seen.there, seen.place)
        self.this_thread = phrase("thread {thread}", thread=_short(seen.thread))
        self.that_thread = phrase("thread {thread}", thread=_short(seen.other_thread))
        self.who = _thread(seen.block, seen.thread)
        self.that_one = _thread(seen.other_block, seen.other_thread)
        self.that_block = phrase("block {block}", block=_short(seen.other_block))
        self.this_block = phrase("block {block}", block=_short(seen.block))
        self.in_block = phrase("(block {block})", block=_short(seen.block))
        self.does = phrase("writes") if self.access.write else phrase("reads")
        self.did = phrase("wrote") if seen.other_write else phrase("read")
        self.operation = phrase("write") if self.access.write else phrase("read")
        self.bytes = byte_count(self.access.size)
        self.element = _element(self.access)
        self.name, self.address = self.access.accessed.name, self.access.address
        self.space = _SPACES.get(self.access.space, "")
        self.memory = _memory(self.access)
        self.present, self.missing = _lanes(seen.lanes), _lanes(seen.mask & ~seen.lanes)
        lowest = seen.lanes & ~seen.mask  # the first lane that executes it though it is not named
        self.lane = (lowest & -lowest).bit_length() - 1
        self.arrived, self.expected, self.mask = seen.arrived, seen.expected, seen.mask

    def told(self, sentence: Message) -> Message:
        """The sentence with what it asks for."""
        missing = set(sentence.places) - set(sentence.args)
        return sentence.given(**{name: getattr(self, name) for name in missing})

    @property
    def coordinate(self) -> int:
        """The coordinate of a tile that is wrong, of 32 bits with a sign."""
        return self.arrived - (1 << 32) if self.arrived >> 31 else self.arrived

    @property
    def reach(self) -> Message:
        """The bytes that the coordinate comes to."""
        return byte_count(self.coordinate * self.expected)

    @property
    def room(self) -> Message:
        return byte_count(self.access.accessed.size)

    @property
    def where(self) -> Message:
        """The place of an access that leaves its array or allocation."""
        access, whole = self.access, _whole(self.access)
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
    if access.space == "local" and not access.accessed.element:
        return phrase("the local arrays of {name}", name=name)
    if access.space in ("local", "shared"):
        return phrase("the {size}-byte array {name}", size=size, name=name)
    if access.space != "parameter":
        return phrase("the {size}-byte allocation {name}", size=size, name=name)
    if name:
        return phrase("the {size}-byte {name}", size=size, name=name)
    return phrase("the {size}-byte parameters", size=size)


def line_of(place: records.Place | None, shown: records.Place | None) -> Message:
    """ "line 12", with the file when it is not the one that the finding shows."""
    if place is None:
        return phrase("an unknown line")
    if shown is not None and place.file == shown.file:
        return phrase("line {line}", line=place.line)
    return verbatim(f"{place.file}:{place.line}")


def _thread(block: records.Dim3, thread: records.Dim3) -> Message:
    return phrase("block {block} thread {thread}", block=_short(block), thread=_short(thread))


def _short(dim: records.Dim3) -> str:
    return f"({dim[0]},{dim[1]},{dim[2]})"


def byte_count(count: int) -> Message:
    return counted("{count} byte", "{count} bytes", count)


def _memory(access: Access) -> Message:
    name, space = access.accessed.name, access.space
    if not name or not space:
        return phrase("memory")
    return phrase("{space} memory ({name})", space=_SPACES.get(space, space), name=name)


def _lanes(mask: int) -> Message:
    """ "lanes 0-15 and 31" """
    runs: list[list[int]] = []
    for lane in (lane for lane in range(32) if mask >> lane & 1):
        if runs and runs[-1][-1] == lane - 1:
            runs[-1] = [runs[-1][0], lane]
        else:
            runs.append([lane])
    if not runs:
        return phrase("lanes none")
    named = enumerated(verbatim("-".join(map(str, run))) for run in runs)
    if mask.bit_count() == 1:
        return phrase("lane {lane}", lane=named)
    return phrase("lanes {lanes}", lanes=named)


def _element(access: Access) -> Message:
    """ "As[12]"; bytes if the offset is not a multiple of an element's size, or that is not
    known."""
    name = access.accessed.name
    if not name:
        return phrase("address {address:#x}", address=access.address)
    what, offset = access.accessed, access.address - access.accessed.start
    if what.whole and 0 <= offset < what.size:
        return verbatim(name)
    if not what.element or offset % what.element:
        return phrase("byte {offset} of {name}", offset=offset, name=name)
    return verbatim(f"{name}[{offset // what.element}]")
