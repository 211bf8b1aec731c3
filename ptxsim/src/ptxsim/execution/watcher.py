"""Elements of one program's memory that are watched: which they are, and who writes to them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ptxsim.findings.writes import MOST_WRITES, Element, Write, typed
from ptxsim.machine import Region
from ptxsim.plan.records import Place
from ptxsim.watching import Watched

_LINE = re.compile(r"(.+) \(.+:(\d+)\)")  # of a name
_WIDTHS = (1, 2, 4, 8)


@dataclass(frozen=True)
class _Held(Watched):
    """An element, and what it held when host code was last seen to write, by its width."""

    name: str
    values: dict[int, int] = field(default_factory=dict)

    def look(self) -> dict[int, int]:
        data, number = self.region.data, self.element.index
        for width in (self.element.width,) if self.element.width else _WIDTHS:
            if (number + 1) * width <= self.region.size:
                now = data[number * width : (number + 1) * width]
                self.values[width] = int.from_bytes(now.tobytes(), "little")
        return dict(self.values)


class Watcher:
    """Watches elements of a program's memory, where it finds their names."""

    def __init__(self, elements: Sequence[Element]) -> None:
        self.elements = elements
        self.watched: list[_Held] = []
        self.left_out = 0
        self._writes: list[Write] = []
        self._sizes: dict[str, int] = {}  # bytes, by the names of what there was

    def meet(self, region: Region, name: str) -> None:
        """Watch new memory if it has a name that is asked for: ``d_c``, or ``d_c:21``."""
        found = _LINE.fullmatch(name)
        names = (found[1], f"{found[1]}:{found[2]}") if found else (name,)
        for each in self.elements:
            if each.name in names and not each.beyond(region.size):
                others = {w.name for w in self.watched} - {names[-1]}
                held = _Held(each, region, f"{names[-1 if others else 0]}[{each.index}]")
                held.look()
                self.watched.append(held)
        self._sizes.update(dict.fromkeys(names, region.size))
