"""Engine events → findings."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from ptxsim.findings.details import Detail
from ptxsim.findings.divergence import lacks_barrier
from ptxsim.findings.event_table import DETAILS, Event
from ptxsim.findings.finding import (
    Access,
    Accessed,
    Crossing,
    Finding,
    FindingKind,
    Gap,
    Leavers,
    Overlap,
    Severity,
)
from ptxsim.findings.names import array_name, plain_name
from ptxsim.frontend.records import Instruction, Location, PtxModule
from ptxsim.lowering.operation import CONST, GLOBAL, LOCAL, PARAM, SHARED
from ptxsim.lowering.program import EngineProgram
from ptxsim.lowering.shared_arrays import accessed_size
from ptxsim.plan.records import Dim3, Launch, Operation, Place
from ptxsim.text import Message

_SPACES = {
    GLOBAL: "global",
    SHARED: "shared",
    LOCAL: "local",
    PARAM: "parameter",
    CONST: "constant",
}
_EVENTS = tuple(Event)
# In the paths of CUDA's headers that define grid.sync(), and cuda::memcpy_async.
_GRID_BARRIER, _MEMCPY_ASYNC = "/cooperative_groups", "/__memcpy_async/"
_ALGORITHMS = ("/thrust/", "/cub/")
_OVERLAPS = {Event.EXTERN_ARRAYS_MEET, Event.RACE}
_MOST_CALLS = 8  # that are followed outwards
# Ends of a basic block; and a barrier ends what one statement does.
_ENDS = ("bra", "brx", "call", "ret", "exit", "bar")
_PLAIN = re.compile(r"ld(\.weak)?(\.global|\.shared)?(\.v\d)?\.[a-z]+\d+$")
_REGISTER = re.compile(r"%\w+")
_NEAR_POINTER = 1 << 20  # bytes
_NEAR = 64  # instructions around an access that may belong to its statement
_NOTHING = Accessed(name="", start=0, size=0)


@dataclass(frozen=True)
class Scene:
    """The names and places that an event's numbers refer to."""

    program: EngineProgram
    locations: Sequence[Location | None]
    regions: Sequence[str]  # name of each region, in the engine's order
    launch: Launch
    arguments: Sequence[int]  # its parameters, as numbers
    starts: Sequence[int]  # of these: bytes of the parameter block
    events: np.ndarray  # all of the launch
    by_all: np.ndarray  # by heads of basic blocks: whether all threads came there

    def gap(self, event: np.void) -> Gap | None:
        """Where a barrier between the two accesses of an event is missing."""
        ranks = self.program.keep[0]["imm"]  # of basic blocks, by their heads
        one, other = sorted(_pcs(event), key=lambda pc: (ranks[self.program.head[pc]], pc))
        for start, goal in ((one, other), (other, one)):
            after, before, again = self.place(start), self.place(goal), start == other
            if not (after and before and (again or after != before)):
                continue
            if lacks_barrier(self.program, self.by_all, start, goal):
                return Gap(after=after, before=before, again=again)
        return None

    def reads_once(self, line: Place | None) -> bool:
        """Whether a loop at this line has a plain load of what another thread changes."""
        races = (each for each in self.events if _EVENTS[each["kind"]].kind is FindingKind.RACE)
        items = ((self.program.sources[pc], self.place(pc)) for each in races for pc in _pcs(each))
        return any(item and _PLAIN.match(item.opcode) and at == line for item, at in items)

    def place(self, pc: int, calls: Iterable[int] = ()) -> Place | None:
        """The line of an instruction; where that is in a library, of the call in the program's own
        code by which it came there. calls: that led there, innermost first, as far as known."""
        first_use = self.program.first_uses.get(pc)
        index = self.program.locations[pc] if first_use is None else first_use.loc
        outer = (self.program.locations[call] for call in (*calls, *self._only_calls(pc)))
        known = (at for at in (index, *outer) if at >= 0)
        inside = (at for at in known if (where := self.locations[at]) and where.inside)
        return _place(self.locations, next(inside, index))

    def _only_calls(self, pc: int) -> Iterator[int]:
        """The call of the function that the instruction is in, the call of that one's, and so on,
        as long as there is one call alone."""
        for _ in range(_MOST_CALLS):
            entry = self.program.entries[bisect_right(self.program.entries, pc) - 1]
            calls = self.program.calls.get(entry, ())
            if len(calls) != 1:
                return
            (pc,) = calls
            yield pc

    def is_inside(self, pc: int, *headers: str) -> bool:
        """Whether the instruction comes from a file whose path holds one of ``headers``."""
        place = self.program.locations[pc]
        location = self.locations[place] if place >= 0 else None
        return location is not None and any(
            header in file for file in location.outside for header in headers
        )

    def is_update(self, pc: int) -> bool:
        """Whether an access is half of a statement such as ``a[i] += 1``: its basic block has the
        other half, at the same address."""
        own = self.program.sources[pc]
        address = own and _address(own)
        if own is None or not address:
            return False
        writes = own.opcode.startswith("st")
        steps = range(pc - 1, max(-1, pc - _NEAR), -1) if writes else range(pc + 1, pc + _NEAR)
        for place in steps:
            item = self.program.sources[place] if place < len(self.program.sources) else None
            if item is None or item.opcode.startswith(_ENDS):
                return False
            if item is own:
                continue
            if _address(item) == address and item.opcode.startswith("ld" if writes else "st"):
                return True
            if item.operands and not item.opcode.startswith("st"):
                set_here = _REGISTER.findall(item.operands[0])
                if set(set_here) & set(_REGISTER.findall(address)):
                    return False  # there the address is another one
        return False

    def pointer(self, address: int) -> int | None:
        """The number of the argument that holds this address, or one shortly before."""
        numbers = {address - each: number for number, each in enumerate(self.arguments)}
        nearest = min((each for each in numbers if each >= 0), default=_NEAR_POINTER)
        return numbers[nearest] if nearest < _NEAR_POINTER else None

    def parameter(self, offset: int) -> str:
        """The parameter that holds this byte of the parameter block."""
        return f"argument {bisect_right(self.starts, offset) - 1}"

    def overlap(self, event: np.void) -> Overlap | None:
        """The two extern arrays that an event is about, if it is about two."""
        pcs = int(event["other_pc"]), int(event["pc"])
        lost, by = (int(self.program.extern_of[pc]) - 1 for pc in pcs)
        if int(event["space"]) != SHARED or lost == by or min(lost, by) < 0:
            return None
        names = list(map(plain_name, self.program.externs))
        return Overlap(
            overwritten=names[lost],
            written=names[by],
            first=names[0],
            later=names[max(lost, by)],
            offset=int(event["details"][0]),
            element=self.program.extern_elements.get(1, 4),
        )

    def leavers(self, event: np.void) -> Leavers | None:
        """The threads that may not have written what an event's thread read."""
        barrier, returned, count, _ = map(int, event["details"])
        if not count or int(event["space"]) != SHARED:
            return None
        return Leavers(count=count, returned=self.place(returned), barrier=self.place(barrier))

    def access(self, event: np.void) -> Access:
        space = _SPACES.get(int(event["space"]), "")
        address = int(event["address"])
        if space == "shared" and address >> 63:  # s[-1], where s begins at 0
            address -= 1 << 64
        accessed = self._accessed(event, space)
        if space == "shared" and accessed.name == plain_name(self.program.externs[0]):
            which = max(int(self.program.extern_of[int(event["pc"])]), 1) - 1
            name = plain_name(self.program.externs[which])
            accessed = msgspec.structs.replace(accessed, name=name)
        return Access(
            space=space,
            address=address,
            size=int(event["size"]),
            write=bool(event["write"]),
            accessed=accessed,
        )

    def _accessed(self, event: np.void, space: str) -> Accessed:
        region = int(event["region"])
        start, size = int(event["region_start"]), int(event["region_size"])
        if space == "shared":
            if region < 0:
                return self.shared_array(int(event["address"]))
            return self._shared(region, start, size)
        if region >= 0:
            element = self._element(int(event["pc"]), int(event["other_pc"]))
            return Accessed(name=self.regions[region], start=start, size=size, element=element)
        return self.local_arrays(int(event["address"])) if space == "local" else _NOTHING

    def _shared(self, index: int, start: int, size: int) -> Accessed:
        array, element = self.program.arrays[index], self.program.elements[index]
        name = array_name(array.name, array.type, by_index=self.program.split_by_index)
        whole = bool(array.type)
        return Accessed(name=name, start=start, size=size, element=element, whole=whole)

    def _element(self, *pcs: int) -> int:
        """The bytes of an element of global memory, as these instructions have them."""
        sources = (self.program.sources[pc] for pc in pcs)
        sizes = {accessed_size(item) for item in sources if item is not None}
        return min(sizes - {0}, default=0)

    def local_arrays(self, address: int) -> Accessed:
        """The local arrays next to ``address``."""
        near = min(self.program.locals, key=lambda each: each.distance(address), default=None)
        if near is None:
            return _NOTHING
        name = plain_name(near.name or near.function)
        return Accessed(name=name, start=near.start, size=near.size, element=near.element)

    def shared_array(self, address: int) -> Accessed:
        for index, array in enumerate(self.program.arrays):
            size = array.size or self.launch.shared_bytes
            if array.start <= address < array.start + size:
                return self._shared(index, array.start, size)
        return Accessed(name="shared memory", start=0, size=0)


def finding(seen: np.void, scene: Scene) -> Finding | None:
    """The finding that one event (``EVENT`` in engine_header.py) stands for; None for copies of one
    source-level barrier."""
    event = _EVENTS[int(seen["kind"])]
    calls = [int(call) for call in seen["calls"] if call]
    here, there = scene.place(int(seen["pc"]), calls), scene.place(int(seen["other_pc"]))
    if event is Event.BARRIERS_MIXED and here == there:
        return None
    if event is Event.MBARRIER_NOT_FENCED and scene.is_inside(int(seen["other_pc"]), _MEMCPY_ASYNC):
        return None  # nobody who calls it can know of the copy
    same_value = bool(seen["same_value"])
    in_place = event is Event.READ_ONLY_WRITTEN and same_value
    if in_place and scene.is_inside(int(seen["pc"]), *_ALGORITHMS):
        return None  # it gets what was there, and nobody who calls it can change that
    access = scene.access(seen)
    block, other_block = _dim(seen["block"]), _dim(seen["other_block"])
    between_blocks = block != other_block and access.space != "shared"
    double_work = event is Event.RACE and between_blocks and access.write and same_value
    updates = event is Event.RACE and all(map(scene.is_update, _pcs(seen)))
    in_block = event is Event.RACE and block == other_block and not updates
    # The read must be changed, not the line where its value did harm.
    place = there or here if event.kind is FindingKind.UNINITIALIZED_READ else here
    return Finding(
        kind=event.kind,
        severity=Severity.WARNING if double_work else event.severity,
        place=place,
        event=event,
        ptx_line=int(scene.program.rows[int(seen["pc"])]) or None,
        here=here,
        there=there,
        block=block,
        thread=_dim(seen["thread"]),
        other_block=other_block,
        other_thread=_dim(seen["other_thread"]),
        access=access,
        other_write=bool(seen["other_write"]),
        same_value=same_value,
        updates=updates,
        gap=scene.gap(seen) if in_block else None,
        reads_once=event is Event.ENDLESS and scene.reads_once(here),
        detail=_detail(event, seen["details"]),
        count=int(seen["count"]),
        plain_launch=event is Event.TRAP
        and not scene.launch.cooperative
        and scene.is_inside(int(seen["pc"]), _GRID_BARRIER),
        pointer=scene.pointer(access.address) if event is Event.OUT_OF_BOUNDS else None,
        overlap=scene.overlap(seen) if event in _OVERLAPS else None,
        leavers=scene.leavers(seen) if event.kind is FindingKind.UNINITIALIZED_READ else None,
    )


def _pcs(seen: np.void) -> tuple[int, int]:
    return int(seen["pc"]), int(seen["other_pc"])


def _address(item: Instruction) -> str:
    """The address of a load or store, as PTX has it; else empty."""
    if not item.opcode.startswith(("ld", "st")):
        return ""
    return next((each for each in item.operands if each.startswith("[")), "")


def _detail(event: Event, values: np.ndarray) -> Detail | None:
    """The record that the engine's integers are, where events of this kind have one."""
    record = DETAILS.get(event)
    if record is None:
        return None
    return record(**dict(zip(record.__struct_fields__, map(int, values), strict=False)))


def in_elements(found: Finding, sizes: Mapping[int, int]) -> Finding:
    """The finding with its place in memory as an element's index. sizes: by the address of an
    allocation, the bytes of its elements."""
    access = found.access
    if access is None or access.accessed.start not in sizes or access.space == "shared":
        return found
    element = sizes[access.accessed.start]
    accessed = msgspec.structs.replace(access.accessed, element=element)
    access = msgspec.structs.replace(access, accessed=accessed)
    return msgspec.structs.replace(found, access=access)


def stream_race(first: Operation, second: Operation, name: str) -> Finding:
    """Two operations on different streams use ``name``, and nothing orders them."""
    return Finding(
        kind=FindingKind.RACE,
        severity=Severity.ERROR,
        place=second.place or first.place,
        streams=Crossing(first=first, second=second, name=name),
    )


def instruction_note(
    module: PtxModule, kind: FindingKind, text: Message, item: Instruction
) -> Finding:
    """A note about an instruction, whether or not it runs."""
    return Finding(
        kind=kind,
        severity=Severity.WARNING if kind is FindingKind.HINT else Severity.NOTE,
        place=_place(module.locations, item.loc),
        text=text,
        ptx_line=item.row,
    )


def merge(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """One finding per kind, severity and line: the first, with the counts of all. A barrier that
    some threads miss comes before the races that follow from it."""
    merged: dict[tuple[FindingKind, Severity, Place | None], Finding] = {}
    for each in findings:
        key = (each.kind, each.severity, each.place)
        if key in merged:
            first = merged[key]
            merged[key] = msgspec.structs.replace(first, count=first.count + each.count)
        else:
            merged[key] = each
    barriers = FindingKind.BARRIER_DIVERGENCE
    return tuple(sorted(merged.values(), key=lambda each: each.kind is not barriers))


def with_early(findings: Sequence[Finding], early: Sequence[Finding]) -> tuple[Finding, ...]:
    """Both, where the results show that it matters how early reads came. A missing fence explains
    them all; and advice to read in another way, at their lines, is then wrong."""
    early = [each for each in early if each.event is Event.UNFENCED_READ] or early
    lines = {each.place for each in early}
    advice = Event.LOOKS_AT_ATOMIC
    kept = (each for each in findings if each.event is not advice or each.place not in lines)
    return (*kept, *merge(early))


def _place(locations: Sequence[Location | None], index: int) -> Place | None:
    location = locations[index] if index >= 0 else None
    return Place(file=location.file, line=location.line) if location else None


def _dim(values: np.ndarray) -> Dim3:
    x, y, z = (int(v) for v in values)
    return x, y, z
