"""Elements of one program's memory that are watched: which they are, and who writes to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ptxsim.execution.messages import FIRST_ADDRESS, DefineBytes
from ptxsim.findings.writes import MOST_WRITES, ElementWrite, WatchedElement, typed
from ptxsim.machine import Region
from ptxsim.outcome import SimOutcome
from ptxsim.plan.records import Place
from ptxsim.watching import PlacedElement

_LINE = re.compile(r"(.+) \(.+:(\d+)\)")  # of a name
_WIDTHS = (1, 2, 4, 8)
_NO_CALL = "host code, without a call"


@dataclass(frozen=True)
class _Held(PlacedElement):
    values: dict[int, int]  # when somebody last looked, by the element's bytes

    def now(self) -> dict[int, int]:
        index = self.element.index
        widths = (self.element.width,) if self.element.width else _WIDTHS
        pieces = {w: self.region.data[index * w : (index + 1) * w].tobytes() for w in widths}
        return {w: int.from_bytes(each, "little") for w, each in pieces.items() if len(each) == w}

    def address(self, width: int) -> int:
        return self.region.address + self.element.index * width


class WriteLog:
    """Finds the elements in a program's memory, and keeps what is written there."""

    def __init__(self, elements: Sequence[WatchedElement] = ()) -> None:
        self.elements = elements
        self.watched: list[_Held] = []
        self.left_out = 0
        self._writes: list[ElementWrite] = []
        self._sizes: dict[str, int] = {}  # bytes, by names of memory
        self._names: dict[str, None] = {}  # those with lines

    def meet(self, region: Region, name: str) -> None:
        """Watch new memory if elements name it: ``d_c``, or ``d_c:21``."""
        found = _LINE.fullmatch(name)
        short, whole = (found[1], f"{found[1]}:{found[2]}") if found else (name, name)
        again = short in self._sizes and whole not in self._names
        for each in {short, whole}:
            self._sizes[each] = max(self._sizes.get(each, 0), region.size)
        self._names[whole] = None
        for each in self.elements:
            if each.name in (short, whole) and not each.beyond(region.size):
                label = f"{whole if again else each.name}[{each.index}]"
                held = _Held(each, region, label, {})
                held.values.update({w: v * region.defined for w, v in held.now().items()})
                self.watched.append(held)

    def leave(self, address: int) -> None:
        """Watch freed memory no longer."""
        self.watched[:] = [each for each in self.watched if each.region.address != address]

    def host_wrote(
        self,
        rows: DefineBytes,
        by: str,
        place: Place | None,
        unwritten: Callable[[int, int], bool],
    ) -> None:
        """Note what a call wrote. unwritten: whether nobody had written there before."""
        for each in self.watched:
            touched = [w for w in each.values if _touches(rows, each.address(w), w)]
            first = [w for w in touched if unwritten(each.address(w), w)]
            self._note(each, touched, by, place, first)

    def look(self) -> None:
        """Note what host code wrote without a call, to memory that it shares."""
        for each in self.watched:
            now, shared = each.now(), each.region.address >= FIRST_ADDRESS
            self._note(each, [w for w in now if shared and now[w] != each.values[w]], _NO_CALL)

    def launched(self, outcome: SimOutcome) -> None:
        """Keep what a launch wrote."""
        room = max(MOST_WRITES - len(self._writes), 0)
        self._writes += outcome.writes[:room]
        self.left_out += len(outcome.writes[room:]) + outcome.writes_left_out
        for each in self.watched:
            each.values.update(each.now())

    @property
    def writes(self) -> tuple[ElementWrite, ...]:
        return typed(self._writes)

    @property
    def mistakes(self) -> list[str]:
        """Sentences about elements that were nowhere."""
        found = (
            each.beyond(self._sizes[each.name])
            if each.name in self._sizes
            else each.missing(list(self._names))
            for each in self.elements
        )
        return list(filter(None, found))

    def _note(
        self,
        held: _Held,
        widths: Iterable[int],
        by: str,
        place: Place | None = None,
        first: Sequence[int] = (),
    ) -> None:
        now = held.now()
        writes = [
            ElementWrite(
                element=held.name,
                type=held.element.type,
                width=width,
                old=None if width in first else held.values[width],
                new=now[width],
                by=by,
                place=place,
            )
            for width in widths
        ]
        if len(self._writes) < MOST_WRITES:
            self._writes += writes
        else:
            self.left_out += bool(writes)  # once for all widths
        held.values.update(now)


def _touches(rows: DefineBytes, address: int, size: int) -> bool:
    """Whether one of the rows has some of these bytes."""
    past = address + size - 1 - rows.address  # from the first row to the last byte
    row = min(max(past, 0) // rows.pitch, rows.rows - 1) if rows.pitch else 0
    start = rows.address + row * rows.pitch
    return start < address + size and address < start + rows.size
