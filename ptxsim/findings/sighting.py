"""One engine event with its numbers turned into names, places and threads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ptxsim.frontend import Location
from ptxsim.lowering.operation import CONST, GLOBAL, LOCAL, PARAM, SHARED
from ptxsim.lowering.program import Program
from ptxsim.records import Dim3

_SPACES = {
    GLOBAL: "global",
    SHARED: "shared",
    LOCAL: "local",
    PARAM: "parameter",
    CONST: "constant",
}
_LENGTH = re.compile(r"\d+")


@dataclass(frozen=True)
class Scene:
    """What an event's numbers refer to."""

    program: Program
    locations: Sequence[Location | None]
    regions: Sequence[str]  # name of each region, in the engine's order
    dynamic_bytes: int

    def place(self, pc: int) -> Location | None:
        index = self.program.locations[pc]
        return self.locations[index] if index >= 0 else None

    def at(self, pc: int) -> str:
        """ "line 12", with the file when it is not the main one."""
        place = self.place(pc)
        if place is None:
            return "an unknown line"
        return f"line {place.line}" if place.file == "sgemm.cu" else f"{place.file}:{place.line}"


@dataclass(frozen=True)
class Accessed:
    """The allocation, array or variable that an address belongs to."""

    name: str  # "" when there is none
    start: int
    size: int  # bytes


class Sighting:
    """An event of the engine (``EVENT`` in engine.py) in its scene."""

    def __init__(self, event: np.void, scene: Scene) -> None:
        self._event = event
        self.scene = scene
        self.kind = int(event["kind"])
        self.pc, self.other_pc = int(event["pc"]), int(event["other_pc"])
        self.count = int(event["count"])
        self.address, self.size = int(event["address"]), int(event["size"])
        self.arrived, self.expected = int(event["arrived"]), int(event["expected"])
        self.is_write = bool(event["write"])
        self.same_value = bool(event["same_value"])
        self.block, self.thread = _dim(event["block"]), _dim(event["thread"])
        self.other_block = _dim(event["other_block"])
        self.space = _SPACES.get(int(event["space"]), "")

    here = property(lambda self: self.scene.at(self.pc))
    there = property(lambda self: self.scene.at(self.other_pc))

    @property
    def this_thread(self) -> str:
        return f"thread {short(self.thread)}"

    @property
    def that_thread(self) -> str:
        return f"thread {short(_dim(self._event['other_thread']))}"

    @property
    def who(self) -> str:
        return f"block {short(self.block)} {self.this_thread}"

    @property
    def that_one(self) -> str:
        return f"block {short(self.other_block)} {self.that_thread}"

    @property
    def in_block(self) -> str:
        return f"(block {short(self.block)})"

    @property
    def does(self) -> str:
        return "writes" if self.is_write else "reads"

    @property
    def did(self) -> str:
        return "wrote" if self._event["other_write"] else "read"

    @cached_property
    def accessed(self) -> Accessed:
        region = int(self._event["region"])
        start, size = int(self._event["region_start"]), int(self._event["region_size"])
        if self.space == "shared":
            if region < 0:
                return self._shared_array()
            return Accessed(plain_name(self.scene.program.arrays[region].name), start, size)
        if region >= 0:
            return Accessed(self.scene.regions[region], start, size)
        return Accessed("its local array" if self.space == "local" else "", start, size)

    def _shared_array(self) -> Accessed:
        for array in self.scene.program.arrays:
            size = array.size or self.scene.dynamic_bytes
            if array.start <= self.address < array.start + size:
                return Accessed(plain_name(array.name), array.start, size)
        return Accessed("shared memory", 0, 0)

    @property
    def element(self) -> str:
        """ "As[12]": floats, as everything in this lab is; bytes when it is no multiple of 4."""
        offset = self.address - self.accessed.start
        if not self.accessed.name:
            return f"address {self.address:#x}"
        if offset % 4 == 0:
            return f"{self.accessed.name}[{offset // 4}]"
        return f"byte {offset} of {self.accessed.name}"


def _dim(values: np.ndarray) -> Dim3:
    x, y, z = (int(v) for v in values)
    return x, y, z


def short(dim: Dim3) -> str:
    return f"({dim[0]},{dim[1]},{dim[2]})"


def plain_name(mangled: str) -> str:
    """The last identifier of a mangled C++ name: "_ZZ1kvE2As" → "As"."""
    mangled, _, _ = mangled.partition("@")  # the scope it is declared in
    name, at = mangled, 0
    if not mangled.startswith("_Z"):
        return mangled
    while match := _LENGTH.search(mangled, at):
        length = int(match[0])
        candidate = mangled[match.end() : match.end() + length]
        if len(candidate) == length and candidate.isidentifier():
            name, at = candidate, match.end() + length
        else:
            at = match.end()
    return name
