"""One launch of one kernel from a PTX file, with numpy arrays in place of device memory."""

from __future__ import annotations

import hashlib
import platform
import struct
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxsim.engine import FLAGS, Engine, engine_digest, engine_sources, load_engine, shipped_engine
from ptxsim.findings.names import plain_name
from ptxsim.frontend.interface import Declarations
from ptxsim.frontend.module import ptx_text
from ptxsim.native import build_native, user_cache
from ptxsim.outcome import SimLimits, SimOutcome
from ptxsim.records import Allocation, Dim3, Launch, Plan, Size
from ptxsim.simulator import Simulator
from ptxsim.tensor_maps import MAP_BYTES, Output, TensorMap, encode

_FIRST_ADDRESS = 0x7F00_0000_0000
_APART = 1 << 20  # bytes that belong to nobody, at least, between two arrays
_LIMITS = SimLimits(seconds=60.0, steps=1 << 40)
_FLOATS = {2: "e", 4: "f", 8: "d"}  # size → struct's letter


Argument = NDArray[Any] | Output | TensorMap | list[TensorMap] | np.generic | int | float | bytes


def launch(
    ptx: Path | str,
    kernel: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    arguments: Sequence[Argument],
    *,
    shared_bytes: int = 0,
    limits: SimLimits = _LIMITS,
    engine: Engine | None = None,
    cluster: int | Sequence[int] = 1,
) -> SimOutcome:
    """Run a kernel of the file ``ptx`` and return what was seen; arrays are changed in place.

    kernel: its mangled name, or the plain one where no other kernel has it.
    arguments: one for each parameter. An array stands for a pointer to a device allocation of its
    size; a Python number takes the size of the parameter; ``bytes`` are a struct. A list of tensor
        maps stands for a pointer to them in device memory.
    shared_bytes: of dynamic shared memory.
    cluster: blocks of a cluster, for a kernel that does not say it itself.
    engine: without it the engine is compiled on first use.

    Raises RefusedProgram for a file or a launch that cannot be simulated, ValueError for arguments
    that do not fit the kernel, EngineError where the engine cannot be compiled.
    """
    path = Path(ptx)
    engine = engine or default_engine()
    simulator = Simulator(ptx_text(path), path.absolute().parent, engine)
    name = _find(kernel, simulator.declared)
    memory = _Memory(engine)
    plan = Plan(
        size=Size.of(),
        operations=(
            Launch(
                kernel=name,
                grid=_dim3(grid),
                block=_dim3(block),
                shared_bytes=shared_bytes,
                params=_packed(arguments, simulator.declared, name, memory),
                pointers=(),
                cluster=_dim3(cluster),
            ),
        ),
        allocations=tuple(memory.allocations),
    )
    return simulator.run(plan, memory.buffers, limits, initialised=memory.inputs)


@cache
def default_engine() -> Engine:
    """The engine of the wheel, or the one that the first call on a machine compiles into the
    user's cache folder. Raises EngineError."""
    shipped = shipped_engine()
    target = shipped or engine_path()
    if not target.exists():
        print("ptxsim: compiling the engine, once on this machine", file=sys.stderr)
        build_native("g++", engine_sources(), (*FLAGS, "-fPIC"), target, shared=True)
    return load_engine(target)


def engine_path() -> Path:
    """Where ``default_engine`` keeps the engine. The name changes with the sources, and with the
    machine, since it is compiled for this processor."""
    digest = hashlib.sha256("\0".join((*FLAGS, platform.node(), engine_digest())).encode())
    return user_cache("ptxsim") / f"engine-{digest.hexdigest()[:16]}.so"


class _Memory:
    """Device allocations for the arrays among the arguments."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.allocations: list[Allocation] = []
        self.buffers: dict[int, NDArray[np.uint8]] = {}
        self.inputs: set[int] = set()
        self._arrays: list[NDArray[Any]] = []
        self._free = _FIRST_ADDRESS

    def address(self, place: int, array: NDArray[Any], *, written: bool) -> int:
        """Return the address of ``array``, allocating it if it is new; ``written``: it holds
        data."""
        if not (array.size and array.flags.c_contiguous and array.flags.writeable):
            raise ValueError(f"argument {place}: an array must be contiguous, writeable, not empty")
        index = next((i for i, each in enumerate(self._arrays) if _same(each, array)), None)
        if index is None:
            if any(np.may_share_memory(array, each) for each in self._arrays):
                raise ValueError(f"argument {place}: it overlaps another array")
            index = len(self._arrays)
            self._arrays.append(array)
            self.buffers[index] = array.reshape(-1).view(np.uint8)
            made = Allocation(name=f"argument {place}", address=self._free, size=array.nbytes)
            self.allocations.append(made)
            self._free += -(-array.nbytes // _APART) * _APART + _APART
        if written:
            self.inputs.add(index)
        return self.allocations[index].address


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return (one.ctypes.data, one.nbytes) == (other.ctypes.data, other.nbytes)


def _find(kernel: str, declared: Declarations) -> str:
    if kernel in declared.entries:
        return kernel
    found = [name for name in declared.entries if plain_name(name) == kernel]
    if len(found) != 1:
        names = ", ".join(declared.entries) or "none"
        raise ValueError(f"there is no one kernel {kernel}; the file has {names}")
    return found[0]


def _packed(
    arguments: Sequence[Argument], declared: Declarations, kernel: str, memory: _Memory
) -> bytes:
    entry = declared.entries[kernel]
    if len(arguments) != len(entry.params):
        raise ValueError(f"{kernel} takes {len(entry.params)} arguments, not {len(arguments)}")
    block = bytearray(entry.size)
    for place, (argument, param) in enumerate(zip(arguments, entry.params, strict=True)):
        value = _value(place, argument, param.size, memory)
        if len(value) != param.size:
            raise ValueError(f"argument {place} has {len(value)} bytes, its parameter {param.size}")
        block[param.offset : param.offset + param.size] = value
    return bytes(block)


def _value(place: int, argument: Argument, size: int, memory: _Memory) -> bytes:
    """The bytes of the parameter."""
    match argument:
        case Output(array=array):
            return struct.pack("<Q", memory.address(place, array, written=False))
        case np.ndarray():
            return struct.pack("<Q", memory.address(place, argument, written=True))
        case TensorMap(array=tensor):
            written = not isinstance(tensor, Output)
            array = tensor.array if isinstance(tensor, Output) else tensor
            return encode(memory.engine, argument, memory.address(place, array, written=written))
        case list():
            maps = b"".join(_value(place, each, MAP_BYTES, memory) for each in argument)
            there = np.frombuffer(bytearray(maps), np.uint8)
            return struct.pack("<Q", memory.address(place, there, written=True))
        case bytes():
            return argument
        case np.generic():
            return argument.tobytes()
    try:
        if isinstance(argument, float):
            return struct.pack(f"<{_FLOATS[size]}", argument)
        return int(argument).to_bytes(size, "little", signed=argument < 0)
    except (KeyError, OverflowError):
        raise ValueError(f"argument {place}: {argument} does not fit {size} bytes") from None


def _dim3(extents: int | Sequence[int]) -> Dim3:
    values = (extents,) if isinstance(extents, int) else tuple(extents)
    if not 1 <= len(values) <= 3:
        raise ValueError(f"{values}: a grid or block has one to three extents")
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z
