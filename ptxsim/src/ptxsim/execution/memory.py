"""Device memory that lives on from call to call, and that the program can share."""

from __future__ import annotations

import bisect
import mmap
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from ptxsim.engine import Engine
from ptxsim.execution.messages import (
    ARENA_BYTES,
    FIRST_ADDRESS,
    BrokenChannel,
    CopyBytes,
    DefineBytes,
    UsedRows,
)
from ptxsim.execution.write_log import WriteLog
from ptxsim.machine import WORKSPACE_AT, Bytes, Machine, Region
from ptxsim.plan.records import Plan, Size
from ptxsim.streams import Use, rows_use

_MOST_ROWS_BYTES = 1 << 28  # from the first to the last, of a copy that is compared with others
_PROBES = 64  # of a copy
_OWN_VARIABLES = 0x6000_0000_0000  # of modules, those that host code does not know


class Allocated(NamedTuple):
    """An allocation from an address on."""

    name: Callable[[], str]
    left: int  # bytes, to its end
    freed: bool


class DeviceMemory(Machine):
    """The regions of one program. ``file`` is what the program maps at FIRST_ADDRESS."""

    def __init__(self, engine: Engine, file: int, cell: int, log: WriteLog) -> None:
        nothing = Plan(size=Size.of(), allocations=(), operations=())
        super().__init__(engine, nothing, (), {}, (), cell, {}, 0)
        self.single_launches = True
        self._file = mmap.mmap(file, ARENA_BYTES, mmap.MAP_SHARED)
        self._bytes = np.frombuffer(self._file, np.uint8)
        self._naming: list[Callable[[], str]] = []  # of the regions
        self._next_own = _OWN_VARIABLES
        self._freed: set[int] = set()  # addresses
        self._log = log
        self.watched = log.watched
        self.add_own("the barrier of the grid", self.workspace, WORKSPACE_AT)

    @property
    def names(self) -> list[str]:
        heap = super().names[len(self._naming) :]
        return [*(each() for each in self._naming), *heap]

    def add(self, address: int, size: int, name: Callable[[], str], data: Bytes | None) -> None:
        """Memory at an address of the file. data: what it holds; None: nobody knows."""
        start = address - FIRST_ADDRESS
        if not (start >= 0 and size <= ARENA_BYTES - start):
            raise BrokenChannel
        there = self._bytes[start : start + size]
        if data is not None:
            there[:] = data[:size]
        self._insert(Region("", address, there, data is not None, size), name)

    def add_own(self, name: str, data: Bytes, address: int | None = None) -> int:
        """Memory that the program cannot see; return its address."""
        if address is None:
            address, self._next_own = self._next_own, self._next_own + len(data) + 8192 & ~4095
        self._insert(Region("", address, data, True, len(data)), lambda: name)
        return address

    def free(self, address: int, name: Callable[[], str]) -> None:
        """name: what it is called from now on."""
        place, _ = self._find(address, 0)
        self._library.sim_retire(self.handle, place)
        self._naming[place] = name
        self._freed.add(address)
        self._log.leave(address)

    def define(self, rows: DefineBytes) -> None:
        for place, start in self._rows(rows.address, rows.pitch, rows):
            self._library.sim_define(self.handle, place, start, rows.size, self.cell)

    def copy(self, rows: CopyBytes) -> None:
        """Make rows as defined as those they were copied from."""
        sources = self._rows(rows.source, rows.source_pitch, rows)
        targets = self._rows(rows.address, rows.pitch, rows)
        for (source, start), (target, at) in zip(sources, targets, strict=True):
            self._library.sim_copy_defined(
                self.handle, source, start, target, at, rows.size, self.cell
            )

    def refine(self, cell: int) -> None:
        """Tell narrower cells apart from now on."""
        self._library.sim_refine(self.handle, self.cell, cell)
        self.cell = cell

    def undefined(self, rows: DefineBytes) -> tuple[str, int] | None:
        """The name of the allocation and the offset of the first byte there that nobody wrote."""
        for place, start in self._rows(rows.address, rows.pitch, rows):
            size = self._library.sim_defined(self.handle, place, start, rows.size, self.cell)
            if size < rows.size:
                return self._naming[place](), start + size
        return None

    def partly_written(self, rows: DefineBytes) -> bool:
        """Whether somebody wrote some of them, as far as bytes here and there show."""
        ends = [(0, 0), (rows.rows - 1, rows.size - 1)]
        between = range(rows.size // _PROBES, rows.size, max(rows.size // _PROBES, 1))
        places = [*ends, *((rows.rows // 2, at) for at in between)]
        return not all(
            self.unwritten(rows.address + row * rows.pitch + at, 1) for row, at in places
        )

    def allocation(self, address: int) -> Allocated | None:
        """The allocation that begins last at or below an address of the file, from there on."""
        place = self.region_at(address)
        region = self._regions[place]
        if not FIRST_ADDRESS <= region.address <= address < FIRST_ADDRESS + ARENA_BYTES:
            return None
        left = region.address + region.size - address
        return Allocated(self._naming[place], left, region.address in self._freed)

    def cells(self, address: int, size: int) -> Bytes:
        """Bytes of the file."""
        return self._bytes[address - FIRST_ADDRESS :][:size]

    def unwritten(self, address: int, size: int) -> bool:
        """Whether nobody has written some of these bytes."""
        place, start = self._find(address, size)
        size_held: int = self._library.sim_defined(self.handle, place, start, size, self.cell)
        return size_held < size

    def name_at(self, address: int) -> str:
        return self.naming_at(address)()

    def naming_at(self, address: int) -> Callable[[], str]:
        return self._naming[self.region_at(address)]

    def described(self, address: int) -> tuple[str, str]:
        """The name of what lies at an address, and the place of the address in it."""
        place = self.region_at(address)
        region = self._regions[place]
        offset = address - region.address
        if not 0 <= offset <= region.size:
            return "no allocation", f"{address:#x}, outside of all"
        name = self._naming[place]()
        return name, f"byte {offset} of {name}, which has {region.size}"

    def part_use(self, part: UsedRows) -> Use | None:
        """How a copy or a memset uses memory; None for rows so far apart that nobody compares them.
        Raises BrokenChannel."""
        span = (part.rows - 1) * part.pitch + part.size
        place, start = self._find(part.address, span)
        if part.rows > 1 and not part.size <= part.pitch <= span <= _MOST_ROWS_BYTES:
            return None
        use = Use(self._regions[place].address, start, start + part.size, part.writes)
        return rows_use(use, part.rows, part.pitch, self.cell)

    def launch_uses(self) -> list[Use]:
        """How the last launch, which was traced, used memory that lives on."""
        here = [each for each in self._launch_uses() if each.region < len(self._regions)]
        named = ((self._regions[each.region].address, each) for each in here)
        return [replace(each, region=at) for at, each in named if at != WORKSPACE_AT]

    def trace(self, on: bool) -> None:
        self._library.sim_trace(self.handle, on)

    def _rows(self, address: int, pitch: int, rows: DefineBytes) -> Iterator[tuple[int, int]]:
        """The region of all rows and where in it each begins. Raises BrokenChannel."""
        place, start = self._find(address, (rows.rows - 1) * pitch + rows.size)
        return ((place, start + row * pitch) for row in range(rows.rows))

    def _find(self, address: int, size: int) -> tuple[int, int]:
        """The region that holds these bytes of the file, and where in it they begin. Raises
        BrokenChannel."""
        place = self.region_at(address)
        start = address - self._regions[place].address
        if address < FIRST_ADDRESS or start + size > self._regions[place].size:
            raise BrokenChannel
        return place, start

    def _insert(self, region: Region, name: Callable[[], str]) -> None:
        place = bisect.bisect_right(self._regions, region.address, key=attrgetter("address"))
        self._add(region)
        self._regions.insert(place, region)
        self._naming.insert(place, name)
        if self._log.elements and region.address != WORKSPACE_AT:
            self._log.meet(region, name())
