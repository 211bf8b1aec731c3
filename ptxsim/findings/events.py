"""Engine events → findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from ptxsim.findings.finding import Access, Accessed, Crossing, Event, Finding, Kind, Severity
from ptxsim.findings.names import plain_name
from ptxsim.frontend import Instruction, Location, Module
from ptxsim.lowering.operation import CONST, GLOBAL, LOCAL, PARAM, SHARED
from ptxsim.lowering.program import Program
from ptxsim.message import Message
from ptxsim.records import Dim3, Operation, Place

_SPACES = {
    GLOBAL: "global",
    SHARED: "shared",
    LOCAL: "local",
    PARAM: "parameter",
    CONST: "constant",
}
_KINDS = {
    Event.OUT_OF_BOUNDS: Kind.OUT_OF_BOUNDS,
    Event.MISALIGNED: Kind.MISALIGNED,
    Event.RACE: Kind.RACE,
    Event.ASYNC_RACE: Kind.RACE,
    Event.UNDEFINED_STORE: Kind.UNINITIALIZED_READ,
    Event.UNDEFINED_ADDRESS: Kind.UNINITIALIZED_READ,
    Event.UNDEFINED_BRANCH: Kind.UNINITIALIZED_READ,
    Event.DIVERGENT_BARRIER: Kind.BARRIER_DIVERGENCE,
    Event.DIVERGENT_WARP_OP: Kind.BARRIER_DIVERGENCE,
    Event.DEADLOCK: Kind.BARRIER_DIVERGENCE,
    Event.ENDLESS: Kind.ENDLESS_LOOP,
    Event.TRAP: Kind.TRAP,
    Event.ASSERTION: Kind.TRAP,
    Event.BARRIER_UNINITIALISED: Kind.UNINITIALIZED_READ,
    Event.BARRIERS_MIXED: Kind.BARRIER_DIVERGENCE,
    Event.COPY_NOT_COMMITTED: Kind.RACE,
    Event.MASK_WITHOUT_CALLER: Kind.BARRIER_DIVERGENCE,
    Event.MASK_BEYOND_BLOCK: Kind.BARRIER_DIVERGENCE,
    Event.WAITS_FOR_EVER: Kind.ENDLESS_LOOP,
    Event.NOT_ALL_RESIDENT: Kind.ENDLESS_LOOP,
    Event.NEVER_SET: Kind.UNINITIALIZED_READ,
    Event.ABSENT_LANE: Kind.UNINITIALIZED_READ,
    Event.STACK_OVERFLOW: Kind.TRAP,
    Event.PART_OF_A_WARP: Kind.BARRIER_DIVERGENCE,
    Event.MBARRIER_NEVER_COMPLETES: Kind.BARRIER_DIVERGENCE,
    Event.BULK_COPY_RACE: Kind.RACE,
    Event.OPERAND_OVERWRITTEN: Kind.RACE,
    Event.PROXY_FENCE_MISSING: Kind.RACE,
    Event.PROXY_FENCE_AFTER_COPY: Kind.RACE,
    Event.WGMMA_NOT_FENCED: Kind.RACE,
    Event.WGMMA_REGISTERS_SET: Kind.RACE,
    Event.WGMMA_NOT_WAITED_FOR: Kind.RACE,
    Event.WARPS_NOT_ORDERED: Kind.RACE,
    Event.BAD_TENSOR_MAP: Kind.OUT_OF_BOUNDS,
    Event.PEER_EXITED: Kind.OUT_OF_BOUNDS,
    Event.PEER_NOT_STARTED: Kind.OUT_OF_BOUNDS,
    Event.UNUSED_RACE: Kind.RACE,
    Event.BEFORE_GRID_WAIT: Kind.RACE,
    Event.TILE_MISALIGNED: Kind.MISALIGNED,
    Event.TILE_BEFORE_TENSOR: Kind.OUT_OF_BOUNDS,
}
# Legal as far as every GPU of today goes.
_WARNINGS = {
    Event.BARRIERS_MIXED,
    Event.MASK_BEYOND_BLOCK,
    Event.PROXY_FENCE_AFTER_COPY,
    Event.WGMMA_REGISTERS_SET,
    Event.WARPS_NOT_ORDERED,
    Event.UNUSED_RACE,
}


_GRID_BARRIER = "/cooperative_groups"  # in the path of the headers that define it
_NOTHING = Accessed(name="", start=0, size=0)


@dataclass(frozen=True)
class Scene:
    """What an event's numbers refer to."""

    program: Program
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
        return Access(
            space=space,
            address=int(event["address"]),
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
        """Those that ``address`` lies next to."""
        near = min(self.program.locals, key=lambda each: each.distance(address), default=None)
        if near is None:
            return _NOTHING
        return Accessed(name=plain_name(near.function), start=near.start, size=near.size)

    def _shared_array(self, address: int) -> Accessed:
        for array in self.program.arrays:
            size = array.size or self.dynamic_bytes
            if array.start <= address < array.start + size:
                return Accessed(name=plain_name(array.name), start=array.start, size=size)
        return Accessed(name="shared memory", start=0, size=0)


def finding(seen: np.void, scene: Scene) -> Finding | None:
    """The finding that one event (``EVENT`` in engine.py) stands for; None for copies of one
    source-level barrier."""
    event = Event(int(seen["kind"]))
    here, there = scene.place(int(seen["pc"])), scene.place(int(seen["other_pc"]))
    if event is Event.BARRIERS_MIXED and here == there:
        return None
    kind = _KINDS[event]
    access = scene.access(seen)
    block, other_block = _dim(seen["block"]), _dim(seen["other_block"])
    same_value = bool(seen["same_value"])
    between_blocks = block != other_block and access.space != "shared"
    double_work = event is Event.RACE and between_blocks and access.write and same_value
    # The read must be changed, not the line where its value did harm.
    place = there or here if kind is Kind.UNINITIALIZED_READ else here
    return Finding(
        kind=kind,
        severity=Severity.WARNING if double_work or event in _WARNINGS else Severity.ERROR,
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


def instruction_note(module: Module, kind: Kind, text: Message, item: Instruction) -> Finding:
    """What stands in the text, whether or not it runs."""
    return Finding(
        kind=kind,
        severity=Severity.NOTE,
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
