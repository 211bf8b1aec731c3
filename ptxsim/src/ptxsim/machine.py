"""The memory of one plan on the engine, and what operations other than launches do to it."""

import bisect
import ctypes
import time
import zlib
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from ptxsim.engine import Engine, view
from ptxsim.engine_header import NO_MEMORY, RAN
from ptxsim.findings.event_table import Event
from ptxsim.findings.finding import Finding, FindingKind, Severity
from ptxsim.findings.names import plain_name
from ptxsim.findings.writes import WatchedElement
from ptxsim.frontend.records import Variable
from ptxsim.lowering.memory_layout import initial_bytes
from ptxsim.outcome import EngineError, Reason, RefusedProgram, SimLimits, SimOutcome
from ptxsim.plan import records
from ptxsim.plan.limits import MAX_THREADS, MOST_SHARED
from ptxsim.streams import Use, in_rows, launch_use, rows_use
from ptxsim.watching import PlacedElement

Bytes = NDArray[np.uint8]

_VARIABLES_FROM = 0x6000_0000_0000  # device addresses of __device__ and __constant__ variables
_VARIABLE_GAP = 4096
WORKSPACE_AT = 0x5F00_0000_0000  # device address of what grid.sync() counts in
_MOST_KEPT = 1 << 25  # bytes of memory, for further looks at a call
MADE_UP = MOST_SHARED + 16  # bytes of a buffer that stands for an allocation of more
_WORKSPACE_BYTES = 8  # its size, which nobody reads, and the counter
_FILLERS = tuple(np.array([word], "<u4") for word in records.POISONS)
_STAMP = np.dtype([("block", "<u4"), ("thread", "<u4"), ("pc", "<u4")])  # of the engine


@dataclass
class Region:
    name: str
    address: int
    data: Bytes
    defined: bool
    size: int  # bytes; more than ``data`` has where that stands for all of it


class Machine:
    """Allocations and variables of ``plan``. Arrays in ``buffers`` (by allocation index) serve as
    memory (one of MADE_UP bytes reads everywhere as its first 16, and keeps nothing that a kernel
    stores); those in ``initialised`` hold data; ``functions`` have addresses; ``turn`` is the first
    call's. ``close`` frees what the engine holds."""

    def __init__(
        self,
        engine: Engine,
        plan: records.Plan,
        variables: Sequence[Variable],
        buffers: Mapping[int, Bytes],
        initialised: Container[int],
        cell: int,
        functions: Mapping[str, int],
        turn: int,
    ) -> None:
        self._library = engine.library
        self.cell = cell
        self.single_launches = False  # are what is looked at again
        self._filler = _FILLERS[turn % len(_FILLERS)]
        self.addresses = {**_addresses(plan, variables), **functions}
        self.watched: Sequence[PlacedElement] = ()  # in launches to come
        self.launched = 0  # ahead of them
        self.workspace = np.zeros(_WORKSPACE_BYTES, np.uint8)  # of grid.sync()
        regions = _regions(
            plan, variables, buffers, initialised, self.addresses, self._filler.view(np.uint8)
        )
        operations = (*plan.setup, *plan.operations)
        if any(isinstance(each, records.Launch) and each.cooperative for each in operations):
            regions[None] = Region(
                "the barrier of the grid", WORKSPACE_AT, self.workspace, True, _WORKSPACE_BYTES
            )
        order = sorted(regions, key=lambda what: regions[what].address)
        places = {what: place for place, what in enumerate(order)}
        self._regions = [regions[what] for what in order]
        self._allocations = [
            places[index if each.symbol is None or each.symbol not in regions else each.symbol]
            for index, each in enumerate(plan.allocations)
        ]
        self._symbols = {each.name: places[each.name] for each in variables}
        self.handle: int = self._library.sim_machine()
        try:
            for each in self._regions:
                self._add(each)
        except BaseException:
            self.close()
            raise

    def _add(self, region: Region) -> None:
        status = self._library.sim_region(
            self.handle,
            region.address,
            region.size,
            region.data.ctypes.data,
            len(region.data),
            region.defined,
            self.cell,
        )
        ensure(status, RefusedProgram(Reason.WRONG_PLAN, "two allocations overlap"))

    def close(self) -> None:
        self._library.sim_machine_free(self.handle)

    @property
    def names(self) -> list[str]:
        """The name of every region: of what malloc gave in a kernel, too."""
        count, given = self._library.sim_regions(self.handle), self._library.sim_given
        heap = range(len(self._regions), count)
        named = (region.name for region in self._regions)
        return [*named, *(f"malloc({given(self.handle, index)})" for index in heap)]

    def region_at(self, address: int) -> int:
        """The place of the region that begins last at or below an address."""
        return max(bisect.bisect_right(self._regions, address, key=attrgetter("address")) - 1, 0)

    def name_at(self, address: int) -> str:
        """The name of that region."""
        return self._regions[self.region_at(address)].name

    def element_at(self, address: int, width: int) -> str:
        """The element of so many bytes at this address; "" for what a kernel's malloc gave."""
        region = self._regions[self.region_at(address)]
        name, _, _ = self.name_at(address).partition(" (")
        index = (address - region.address) // width
        return f"{name}[{index}]" if 0 <= index * width < region.size else ""

    def watch(self, elements: Sequence[WatchedElement]) -> None:
        """Watch elements, which name regions. Raises ValueError."""
        watched = []
        for each in elements:
            region = next((r for r in self._regions if r.name == each.name), None)
            if region is None:
                raise ValueError(each.missing([r.name for r in self._regions]))
            if beyond := each.beyond(region.size):
                raise ValueError(beyond)
            watched.append(PlacedElement(each, region, f"{each.name}[{each.index}]"))
        self.watched = watched

    def kept(self, plan: records.Plan) -> dict[int, int]:
        """Digests, by region, of what lives on from call to call: variables, and memory that no
        call allocates."""
        if not plan.setup:
            return {}
        own = {*range(plan.given), *plan.own}
        memory = [place for index, place in enumerate(self._allocations) if index not in own]
        places = dict.fromkeys([*self._symbols.values(), *memory])
        return {place: zlib.crc32(self._regions[place].data.data) for place in places}

    def begin_call(self, turn: int, seed: int = 0) -> None:
        """Give what CUDA leaves undefined other values than in the turn before, and let blocks and
        warps run from the last to the first in every odd turn, or as ``seed`` permutes them."""
        self._filler = _FILLERS[turn % len(_FILLERS)]
        order = seed + 1 if seed else turn % 2
        self._library.sim_order(self.handle, order, int(self._filler[0]))

    def first_look(self) -> None:
        """Keep what the next call finds, so that there may be further looks at it."""
        status = self._library.sim_snapshot(self.handle, _MOST_KEPT, self.single_launches)
        ensure(status, EngineError("the simulator cannot keep its memory"))

    def second_look(self) -> bool:
        """Make memory what the call found; what reads in doubt get is undefined from now on. False
        where there are none, or memory was too large to keep."""
        return self._replay(doubts=True)

    def rewind(self) -> bool:
        """Make memory what the call found, for a look that differs in something else. False where
        it was too large to keep."""
        return self._replay(doubts=False)

    def _replay(self, *, doubts: bool) -> bool:
        status = self._library.sim_replay(self.handle, doubts)
        if status == NO_MEMORY:
            raise MemoryError
        return bool(status == RAN)

    def undo_looks(self) -> None:
        """Make memory what the look before the further ones made of it."""
        self._library.sim_undo_looks(self.handle)

    def forget(self, allocations: Sequence[int]) -> None:
        """Make these allocations uninitialised again."""
        for index in allocations:
            status = self._library.sim_undefine(self.handle, self._allocations[index])
            ensure(status, EngineError("the simulator has lost an allocation"))

    def carry_out(self, operation: records.Operation) -> None:
        """Do what ``operation``, which is no launch, asks for."""
        match operation:
            case records.Allocate(allocation=index):
                data = self._regions[self._allocations[index]].data
                data[:] = np.resize(self._filler.view(np.uint8), len(data))
                self.forget([index])
                self._resize(index, len(data))
            case records.Free(allocation=index):
                self._resize(index, 0)
            case records.Memset(delta=delta, size=size):
                place = self._allocations[operation.allocation]
                self._regions[place].data[delta : delta + size] = operation.value
                self._define(place, delta, size)
            case records.Copy(rows=rows, size=size):
                source = self._regions[self._allocations[operation.source]].data
                place = self._allocations[operation.target]
                taken = in_rows(
                    source[operation.source_delta :], rows, size, operation.source_pitch
                )
                target = self._regions[place].data[operation.target_delta :]
                in_rows(target, rows, size, operation.target_pitch)[...] = taken.copy()
                for row in range(rows):
                    start = operation.target_delta + row * operation.target_pitch
                    self._define(place, start, size)
            case records.SymbolWrite(symbol=symbol, delta=delta, data=data):
                self._write(self._symbols[symbol], delta, data)
            case records.Write(allocation=allocation, delta=delta, data=data):
                self._write(self._allocations[allocation], delta, data)

    def uses(self, operation: records.Operation) -> Sequence[Use]:
        """List the effects on memory of an operation that was just carried out."""
        match operation:
            case records.Launch():
                return self._launch_uses()
            case records.Memset(allocation=allocation, delta=delta, size=size):
                return (Use(self._allocations[allocation], delta, delta + size, True),)
            case records.Copy(source_delta=source, target_delta=target, size=size, rows=rows):
                read, written = operation.source_pitch, operation.target_pitch
                place, goal = (
                    self._allocations[index] for index in (operation.source, operation.target)
                )
                return (
                    rows_use(Use(place, source, source + size, False), rows, read, self.cell),
                    rows_use(Use(goal, target, target + size, True), rows, written, self.cell),
                )
            case records.SymbolWrite(symbol=symbol, delta=delta, data=data):
                return (Use(self._symbols[symbol], delta, delta + len(data), True),)
            case records.Write(allocation=allocation, delta=delta, data=data):
                return (Use(self._allocations[allocation], delta, delta + len(data), True),)
            case records.Allocate(ordered=True) | records.Free():
                index = self._allocations[operation.allocation]
                return (Use(index, 0, len(self._regions[index].data), True),)
        return ()

    def writers(self, allocation: int) -> np.ndarray:
        """Return who wrote last to each cell of an allocation in the last launch: fields "block",
        counted from 1 (0: nobody wrote), and "thread". Empty when the launch wrote nothing."""
        place, cells = self._allocations[allocation], ctypes.c_void_p()
        count = self._library.sim_writers(self.handle, place, ctypes.byref(cells))
        found = view(cells.value or 0, _STAMP, count).copy()
        found["thread"] &= MAX_THREADS - 1
        return found

    def written(self) -> dict[int, Bytes]:
        """Copies of the regions that the last launch wrote to, by their places."""
        count, at = self._library.sim_writers, ctypes.c_void_p()
        regions = enumerate(self._regions)
        return {k: r.data.copy() for k, r in regions if count(self.handle, k, ctypes.byref(at))}

    def _launch_uses(self) -> Sequence[Use]:
        found = []
        for index in range(self._library.sim_regions(self.handle)):
            cells = ctypes.c_void_p()
            count = self._library.sim_uses(self.handle, index, ctypes.byref(cells))
            seen = view(cells.value or 0, np.dtype(np.uint8), count)
            found.append(launch_use(index, seen, self.cell))
        return [use for use in found if use is not None]

    def _write(self, place: int, start: int, data: bytes) -> None:
        self._regions[place].data[start : start + len(data)] = np.frombuffer(data, np.uint8)
        self._define(place, start, len(data))

    def _resize(self, allocation: int, size: int) -> None:
        """An allocation that is freed has no bytes."""
        status = self._library.sim_resize(self.handle, self._allocations[allocation], size)
        ensure(status, EngineError("the simulator has lost an allocation"))

    def _define(self, place: int, start: int, size: int) -> None:
        status = self._library.sim_define(self.handle, place, start, size, self.cell)
        ensure(status, EngineError("the simulator refused a copy that was checked"))


def ensure(status: int, refusal: Exception) -> None:
    """Raises MemoryError, or ``refusal`` for anything else that the engine did not do."""
    if status == NO_MEMORY:
        raise MemoryError
    if status != RAN:
        raise refusal


def _addresses(plan: records.Plan, variables: Sequence[Variable]) -> dict[str, int]:
    """Device address of every module variable: the plan's where the host asked for it."""
    known = {a.symbol: a.address for a in plan.allocations if a.symbol is not None}
    addresses, at = {}, _VARIABLES_FROM
    for variable in variables:
        addresses[variable.name] = known.get(variable.name, at)
        at += (variable.size + 2 * _VARIABLE_GAP - 1) // _VARIABLE_GAP * _VARIABLE_GAP
    return addresses


def _regions(
    plan: records.Plan,
    variables: Sequence[Variable],
    buffers: Mapping[int, Bytes],
    initialised: Container[int],
    addresses: Mapping[str, int],
    filler: Bytes,
) -> dict[int | str | None, Region]:
    """Memory by the index of its allocation, or the name of its variable."""
    found: dict[int | str | None, Region] = {}
    for each in variables:
        data = initial_bytes(each, addresses)
        found[each.name] = Region(
            plain_name(each.name), addresses[each.name], data, True, len(data)
        )
    for index, allocation in enumerate(plan.allocations):
        if allocation.symbol in addresses:
            continue
        given, size = buffers.get(index), allocation.size
        if given is None:
            size = max(size, 1)
        data = np.resize(filler, size) if given is None else given
        fits = data.size == size or data.size == MADE_UP < size
        if not (fits and data.flags.c_contiguous):
            raise ValueError(f"the buffer of {allocation.name} is not the allocation's bytes")
        found[index] = Region(allocation.name, allocation.address, data, index in initialised, size)
    return found


_FURTHER_LOOKS = 4  # at a call with races


def judge_races(
    machine: Machine, limits: SimLimits, look: Callable[[SimLimits], SimOutcome]
) -> SimOutcome:
    """Return the outcome of ``look``, which simulates one call, without its harmless races.

    ``limits`` hold for all looks together. Memory is then what this outcome's look made of it.
    """
    working = time.thread_time()
    machine.first_look()
    first = seen = look(limits)
    for _ in range(_FURTHER_LOOKS):
        if seen.stopped or not _only_races(seen.findings) or not machine.second_look():
            break
        left = limits.seconds - (time.thread_time() - working)
        seen = look(replace(limits, seconds=left))
        if not seen.stopped and not errors(seen.findings):
            return seen
    if seen is not first:
        machine.undo_looks()
    return first


def judge_streams(
    machine: Machine, limits: SimLimits, look: Callable[[SimLimits], SimOutcome]
) -> SimOutcome | None:
    """Return the outcome of ``look``, which carries a call's operations out in another order that
    their streams allow, or None where that order cannot be judged: the operations wait for each
    other, so they have one after all, or memory was too large to keep."""
    if not machine.rewind():
        return None
    seen = look(limits)
    if not seen.stopped and not _only_races(seen.findings):
        return seen
    machine.undo_looks()
    return None


def errors(findings: Sequence[Finding]) -> list[Finding]:
    return [each for each in findings if each.severity is Severity.ERROR]


def _only_races(findings: Sequence[Finding]) -> bool:
    """Whether there are errors, and all are races of a read with a write."""
    wrong = errors(findings)
    return bool(wrong) and all(
        each.kind is FindingKind.RACE
        and each.access is not None
        and (each.access.space == "shared" or each.event is Event.RACE)
        and each.access.write != each.other_write
        for each in wrong
    )
