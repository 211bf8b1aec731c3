"""Engine events → findings."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from ptxsim.findings.event_table import Event
from ptxsim.findings.finding import Access, Accessed, Crossing, Finding, Kind, Severity
from ptxsim.findings.names import plain_name
from ptxsim.frontend.records import Instruction, Location, PtxModule
from ptxsim.lowering.operation import CONST, GLOBAL, LOCAL, PARAM, SHARED
from ptxsim.lowering.program import EngineProgram
from ptxsim.message import Message
from ptxsim.records import Dim3, Operation, Place

_SPACES = {
    GLOBAL: "global",
    SHARED: "shared",
    LOCAL: "local",
    PARAM: "parameter",
    CONST: "constant",
}
_EVENTS = tuple(Event)
_GRID_BARRIER = "/cooperative_groups"  # in the path of the headers that define it
_NOTHING = Accessed(name="", start=0, size=0)


@dataclass(frozen=True)
class Scene:
    """The names and places that an event's numbers refer to."""

    program: EngineProgram
    locations: Sequence[Location | None]
    regions: Sequence[str]  # name of each region, in the engine's order
    dynamic_bytes: int
    cooperative: bool

    def place(self, pc: int) -> Place | None:
        first_use = self.program.first_uses.get(pc)
        place = self.program.locations[pc] if first_use is None else first_use.loc
        return _place(self.locations, place)

    def in_grid_barrier(self, pc: int) -> bool:
        """Whether the instruction is part of cooperative_groups, where only grid.sync() traps."""
        place = self.program.locations[pc]
        location = self.locations[place] if place >= 0 else None
        return location is not None and any(_GRID_BARRIER in file for file in location.outside)

    def access(self, event: np.void) -> Access:
        space = _SPACES.get(int(event["space"]), "")
        address = int(event["address"])
        if space == "shared" and address >> 63:  # s[-1], where s begins at 0
            address -= 1 << 64
        return Access(
            space=space,
            address=address,
            size=int(event["size"]),
            write=bool(event["write"]),
            accessed=self._accessed(event, space),
        )

    def _accessed(self, event: np.void, space: str) -> Accessed:
        region = int(event["region"])
        start, size = int(event["region_start"]), int(event["region_size"])
        if space == "shared":
            if region < 0:
                return self._shared_array(int(event["address"]))
            name = plain_name(self.program.arrays[region].name)
        elif region >= 0:
            name = self.regions[region]
        else:
            return self._local_arrays(int(event["address"])) if space == "local" else _NOTHING
        return Accessed(name=name, start=start, size=size)

    def _local_arrays(self, address: int) -> Accessed:
        """The local arrays next to ``address``."""
        near = min(self.program.locals, key=lambda each: each.distance(address), default=None)
        if near is None:
            return _NOTHING
        name = near.name or plain_name(near.function)
        return Accessed(name=name, start=near.start, size=near.size, element=near.element)

    def _shared_array(self, address: int) -> Accessed:
        for array in self.program.arrays:
            size = array.size or self.dynamic_bytes
            if array.start <= address < array.start + size:
                return Accessed(name=plain_name(array.name), start=array.start, size=size)
        return Accessed(name="shared memory", start=0, size=0)


def finding(seen: np.void, scene: Scene) -> Finding | None:
    """The finding that one event (``EVENT`` in engine.py) stands for; None for copies of one
    source-level barrier."""
    event = _EVENTS[int(seen["kind"])]
    here, there = scene.place(int(seen["pc"])), scene.place(int(seen["other_pc"]))
    if event is Event.BARRIERS_MIXED and here == there:
        return None
    access = scene.access(seen)
    block, other_block = _dim(seen["block"]), _dim(seen["other_block"])
    same_value = bool(seen["same_value"])
    between_blocks = block != other_block and access.space != "shared"
    double_work = event is Event.RACE and between_blocks and access.write and same_value
    # The read must be changed, not the line where its value did harm.
    place = there or here if event.kind is Kind.UNINITIALIZED_READ else here
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
        arrived=int(seen["arrived"]),
        expected=int(seen["expected"]),
        count=int(seen["count"]),
        mask=int(seen["mask"]),
        lanes=int(seen["lanes"]),
        plain_launch=event is Event.TRAP
        and not scene.cooperative
        and scene.in_grid_barrier(int(seen["pc"])),
    )


def stream_race(first: Operation, second: Operation, name: str) -> Finding:
    """Two operations on different streams use ``name``, and nothing orders them."""
    return Finding(
        kind=Kind.RACE,
        severity=Severity.ERROR,
        place=second.place or first.place,
        streams=Crossing(first=first, second=second, name=name),
    )


def instruction_note(module: PtxModule, kind: Kind, text: Message, item: Instruction) -> Finding:
    """A note about an instruction, whether or not it runs."""
    return Finding(
        kind=kind,
        severity=Severity.WARNING if kind is Kind.HINT else Severity.NOTE,
        place=_place(module.locations, item.loc),
        text=text,
        ptx_line=item.row,
    )


def merge(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """One finding per kind, severity and line: the first, with the counts of all."""
    merged: dict[tuple[Kind, Severity, Place | None], Finding] = {}
    for each in findings:
        key = (each.kind, each.severity, each.place)
        if key in merged:
            first = merged[key]
            merged[key] = msgspec.structs.replace(first, count=first.count + each.count)
        else:
            merged[key] = each
    return tuple(merged.values())


def _place(locations: Sequence[Location | None], index: int) -> Place | None:
    location = locations[index] if index >= 0 else None
    return Place(file=location.file, line=location.line) if location else None


def _dim(values: np.ndarray) -> Dim3:
    x, y, z = (int(v) for v in values)
    return x, y, z
