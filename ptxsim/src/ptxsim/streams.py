"""Operations of one call that nothing orders: whether they use the same memory.

On a GPU streams run side by side. Two operations of a call race where neither comes after the
other, both use the same bytes and one of them writes there. What atomic, volatile and other
synchronising accesses of two kernels do to the same word is no race. If one of them also looks at
what the other writes that way, they may order themselves by it, so nothing is said about them.

``Watch`` has the operations of a plan, ``LiveWatch`` those of a program that runs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ptxsim.plan.records import Operation, host_waits

# How a launch has used a cell: region.hpp has the same.
READ, WRITTEN, READ_STRONGLY, WRITTEN_STRONGLY = 1, 2, 4, 8
_PLAIN = READ | WRITTEN
_WRITES = WRITTEN | WRITTEN_STRONGLY
_MOST_BYTES = 1 << 28  # that are kept of what launches have used
_MOST_PAIRS = 100_000  # that are compared
_MOST_LIVE = 512  # operations of a running program that later ones are compared with

Cells = NDArray[np.uint8]


@dataclass(frozen=True)
class Use:
    """Use of a part of one region by one operation: per cell, or one for all bytes."""

    region: int
    start: int  # bytes
    end: int
    writes: bool
    cells: Cells | None = None


Uses = Sequence[Use]


def launch_use(region: int, cells: Cells, size: int) -> Use | None:
    """Return a launch's use of a region, from a byte for each cell of ``size`` bytes."""
    used = np.flatnonzero(cells)
    if not used.size:
        return None
    first, last = int(used[0]), int(used[-1]) + 1
    part = cells[first:last].copy()
    return Use(region, first * size, last * size, bool((part & _WRITES).any()), part)


def in_rows(data: Cells, rows: int, size: int, pitch: int) -> Cells:
    """``rows`` of ``size`` bytes of ``data``, as a view."""
    return np.lib.stride_tricks.as_strided(data, (rows, size), (pitch, 1))


def rows_use(first: Use, rows: int, pitch: int, cell: int) -> Use:
    """Repeat the use of the first row over ``rows``, in cells of ``cell`` bytes."""
    if rows == 1:
        return first
    lead, size = first.start % cell, first.end - first.start
    span = (rows - 1) * pitch + size
    used = np.zeros(-(-(lead + span) // cell) * cell, np.uint8)
    in_rows(used[lead:], rows, size, pitch)[...] = WRITTEN if first.writes else READ
    cells = used.reshape(-1, cell).max(1)
    return Use(first.region, first.start, first.start + span, first.writes, cells)


class Order:
    """The order of operations as they are issued. Sets of them are bits by place."""

    def __init__(self) -> None:
        self._before: list[int] = []
        self.waited = 0  # what the host has waited for

    def issue(self, after: Sequence[int] | None, waits: bool) -> int:
        """Return the earlier operations that the next one is not ordered after. after: as Issued
        has it; waits: whether the host does, for its end."""
        place = len(self._before)
        everything = (1 << place) - 1
        past = everything if after is None else self.waited
        for distance in after or ():
            if 0 < distance <= place:
                past |= self._before[place - distance] | 1 << (place - distance)
        self._before.append(past)
        if waits:
            self.waited = past | 1 << place
        return everything & ~past

    def forget(self, count: int) -> None:
        """Forget the first operations."""
        self._before = [each >> count for each in self._before[count:]]
        self.waited >>= count


def unordered(operations: Sequence[Operation]) -> list[int]:
    """Return, for each operation, the earlier ones that it is not ordered after, as bits."""
    order = Order()
    return [order.issue(each.after, host_waits(each)) for each in operations]


def postponed(operations: Sequence[Operation], place: int) -> list[int]:
    """The places of ``operations`` in an order that CUDA allows, too, where one comes as late as it
    can: behind all that do not come after it."""
    rivals = unordered(operations)
    apart = [at for at in range(len(operations)) if at < place or rivals[at] >> place & 1]
    return [*apart, *sorted({*range(len(operations))} - {*apart})]


class Watch:
    """Compares the operations of one call as they are carried out, in the plan's order."""

    def __init__(self, operations: Sequence[Operation], cell: int) -> None:
        self.cell = cell
        self._rivals: list[int] = []
        self._wanted: list[int] = []  # after each operation: those that later ones compare with
        self._uses: dict[int, Uses] = {}
        self._kept = 0  # the same operations, as bits
        self._bytes = self._pairs = 0
        # By operation: a later one that may order itself behind it by a flag or counter, though
        # both use a region.
        self.doubtful: dict[int, tuple[int, int]] = {}
        if any(operation.after is not None for operation in operations):
            self._rivals = unordered(operations)
            wanted = 0
            for mask in reversed(self._rivals):
                self._wanted.append(wanted)
                wanted |= mask
            self._wanted.reverse()

    def watches(self, place: int) -> bool:
        """Whether anything is in no order with this operation."""
        return bool(self._rivals) and bool(self._rivals[place] or self._wanted[place] >> place & 1)

    def races(self, place: int, uses: Uses) -> list[tuple[int, int]]:
        """The earlier operations that race with this one, and the region where they do."""
        found = []
        for other in _places(self._rivals[place] & self._kept):
            if self._pairs == _MOST_PAIRS:
                break
            self._pairs += 1
            region, signal = self._common(self._uses[other], uses)
            if region is not None and signal:
                self.doubtful.setdefault(other, (place, region))
            elif region is not None:
                found.append((other, region))
        self._uses[place] = uses
        self._kept |= 1 << place
        self._bytes += _size(uses)
        for other in _places(self._kept & ~self._wanted[place]):
            self._remove(other)
        if self._bytes > _MOST_BYTES and self._kept >> place & 1:
            self._remove(place)
        return found

    def _remove(self, place: int) -> None:
        self._bytes -= _size(self._uses.pop(place))
        self._kept ^= 1 << place

    def _common(self, one: Uses, other: Uses) -> tuple[int | None, bool]:
        """The region where two operations race, and whether they may order themselves."""
        found, signal = None, False
        for mine, theirs in product(one, other):
            start, end = max(mine.start, theirs.start), min(mine.end, theirs.end)
            apart = mine.region != theirs.region or start >= end
            if apart or not (mine.writes or theirs.writes):
                continue
            x, y = self._flags(mine, start, end), self._flags(theirs, start, end)
            either = x | y
            signal |= _signals(x, y) or _signals(y, x)
            races = (x != 0) & (y != 0) & (either & _WRITES != 0) & (either & _PLAIN != 0)
            if found is None and races.any():
                found = mine.region
        return found, signal

    def _flags(self, use: Use, start: int, end: int) -> Cells:
        """Return the flags of the cells between two bytes; one value where all are equal."""
        if use.cells is None:
            return np.array([WRITTEN if use.writes else READ], np.uint8)
        first = use.start // self.cell
        return use.cells[start // self.cell - first : -(-end // self.cell) - first]


class LiveWatch(Watch):
    """Compares the operations of a program as it issues them, each with the last ones."""

    def __init__(self, cell: int) -> None:
        super().__init__((), cell)
        self._order = Order()
        self._operations: list[Operation] = []

    def issue(self, operation: Operation, waits: bool, uses: Uses) -> list[tuple[Operation, int]]:
        """The earlier operations that race with this one, and the region where they do. waits: as
        Order takes it."""
        if not self._kept:
            self._forget(len(self._operations))
            self._pairs = 0
        elif len(self._operations) == _MOST_LIVE:
            self._forget(_MOST_LIVE // 2)
        place = len(self._operations)
        self._operations.append(operation)
        self._rivals.append(self._order.issue(operation.after, waits))
        self._wanted.append(~self._order.waited)
        return [(self._operations[at], region) for at, region in self.races(place, uses)]

    def _forget(self, count: int) -> None:
        for place in _places(self._kept & (1 << count) - 1):
            self._remove(place)
        self._order.forget(count)
        del self._operations[:count]
        self._rivals = [each >> count for each in self._rivals[count:]]
        self._wanted = [each >> count for each in self._wanted[count:]]
        self._uses = {place - count: uses for place, uses in self._uses.items()}
        self._kept >>= count


def _places(bits: int) -> Iterator[int]:
    """Yield the places of the bits that are set, from the lowest."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def _signals(one: Cells, other: Cells) -> bool:
    """Whether one may learn how far the other is."""
    return bool(((one & READ_STRONGLY != 0) & (other & WRITTEN_STRONGLY != 0)).any())


def _size(uses: Uses) -> int:
    return sum(use.cells.nbytes for use in uses if use.cells is not None)
