"""Elements of device memory whose writes are watched while launches run."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ptxsim.engine import Engine, view
from ptxsim.engine_header import WRITE
from ptxsim.findings.names import kernel_name
from ptxsim.findings.reports import Scene
from ptxsim.findings.writes import ElementWrite, SourceValue, WatchedElement, type_of, width_of
from ptxsim.plan.records import Dim3

if TYPE_CHECKING:
    from ptxsim.machine import Machine, Region

_NOTHING = (1 << 32) - 1  # in the place of an instruction
_WINDOW_AT, _WIDTH_AT = 56, 60  # bits of a source
_SPACES = ("", "shared ", "local ")  # by windows; then come parameters


@dataclass(frozen=True)
class PlacedElement:
    """An element in the memory of a machine."""

    element: WatchedElement
    region: Region
    name: str  # as it is called: "c[5]"


def begin_watch(engine: Engine, machine: Machine, most: int) -> int:
    """Have the next launch keep what it writes to the watched elements; return a status."""
    elements = [(each.region, each.element) for each in machine.watched]
    rows = [(of.address, of.size, each.index, each.width) for of, each in elements]
    numbers = (ctypes.c_uint64 * (4 * len(rows)))(*(number for row in rows for number in row))
    return int(engine.library.sim_watch(machine.handle, numbers, len(rows), most))


def watched_writes(
    engine: Engine, machine: Machine, scene: Scene, launch: int
) -> tuple[list[ElementWrite], int]:
    """The last launch's writes to the watched elements, and how many more there were than ``most``.
    launch: its number."""
    rows, left_out = ctypes.c_void_p(), ctypes.c_uint64()
    count = engine.library.sim_writes(machine.handle, ctypes.byref(rows), ctypes.byref(left_out))
    seen = view(rows.value or 0, WRITE, count)
    return [_write(each, machine, scene, launch) for each in seen], left_out.value


def _write(seen: np.void, machine: Machine, scene: Scene, launch: int) -> ElementWrite:
    watched = machine.watched[int(seen["element"])]
    made, width = int(seen["definition"]), int(seen["width"])
    sources = [scene.program.sources[int(seen["pc"])]]
    sources += [scene.program.sources[made]] if made != _NOTHING else []
    opcodes = [each.opcode if each else "" for each in sources]
    types = [type_of(each, result=True) for each in opcodes]
    floats = (each for each in types if "f" in each and width_of(each) == width)
    config = (_shown(scene.launch.grid), _shown(scene.launch.block))
    return ElementWrite(
        element=watched.name,
        type=watched.element.type or next(floats, ""),
        width=width,
        old=None if seen["unwritten"] else int(seen["before"]),
        new=int(seen["after"]),
        by=f"{kernel_name(scene.launch.kernel)}<<<{','.join(config)}>>>",
        place=scene.place(int(seen["pc"])),
        launch=launch,
        block=_dim(seen["block"]),
        thread=_dim(seen["thread"]),
        opcode="".join(opcodes[1:]),
        operands=tuple(
            SourceValue(
                value=int(seen["values"][k]),
                type=type_of(opcodes[-1], result=False),
                name=_name(int(seen["sources"][k]), machine, scene),
            )
            for k in range(int(seen["inputs"]))
        ),
    )


def _name(source: int, machine: Machine, scene: Scene) -> str:
    """The element that a value was loaded from. source: as in WRITE; 0: nothing."""
    address, width = source & (1 << _WINDOW_AT) - 1, 1 << (source >> _WIDTH_AT)
    window = source >> _WINDOW_AT & (1 << _WIDTH_AT - _WINDOW_AT) - 1
    if window >= len(_SPACES):
        return scene.parameter(address)
    if not window:
        return machine.element_at(address, width) if source else ""
    there = scene.shared_array(address) if window == 1 else scene.local_arrays(address)
    index = "" if there.whole else f"[{(address - there.start) // (there.element or width)}]"
    return f"{_SPACES[window]}{there.name}{index}"


def _shown(dim: Dim3) -> str:
    return str(dim[0]) if dim[1:] == (1, 1) else f"({','.join(map(str, dim))})"


def _dim(values: np.ndarray) -> Dim3:
    x, y, z = (int(v) for v in values)
    return x, y, z
