"""Launches of kernels from PTX, with numpy arrays in place of device memory."""

from __future__ import annotations

import hashlib
import platform
import re
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ptxsim import native
from ptxsim.engine import Engine, load_engine
from ptxsim.findings.names import plain_name
from ptxsim.findings.reports import in_elements
from ptxsim.findings.writes import WatchedElement, typed
from ptxsim.frontend.interface import Declarations
from ptxsim.frontend.module import ptx_text
from ptxsim.frontend.places import source_files
from ptxsim.nvcc import compiled
from ptxsim.orders import Orders, in_orders
from ptxsim.outcome import SimLimits
from ptxsim.plan.records import Allocation, Dim3, KernelParam, Launch, Plan, Size, SymbolWrite
from ptxsim.report import Origin, Report
from ptxsim.simulator import Simulator
from ptxsim.tensor_maps import Output, TensorMap, Texture, encode

_FIRST_ADDRESS = 0x7F00_0000_0000
_APART = 1 << 20  # bytes that belong to nobody, at least, between two arrays
_LIMITS = SimLimits(seconds=60.0, steps=1 << 40)
_FLOATS = {2: "e", 4: "f", 8: "d"}  # size → struct's letter


Argument = (
    NDArray[Any] | Output | Texture | TensorMap | list[TensorMap] | np.generic | int | float | bytes
)
Arguments = Sequence[tuple[str, Argument]]  # with their names
Extents = int | Sequence[int]
Shape = tuple[Extents, Extents] | tuple[Extents, Extents, int]  # grid, block, shared bytes


class Module:
    """The kernels of one PTX module, to be launched one at a time.

    ptx: a PTX file; a CUDA source (``.cu``), which nvcc compiles for ``arch`` with ``flags``; or,
    if it has more than one line, PTX itself.
    engine: without it the engine is compiled on first use.
    sources: texts of files that findings may name and that are not there to be read.
    checked: whether a launch that is not clean raises FindingsError.
    metrics: whether reports have ``metrics``: counts by line under ncu's names.
    second: whether nvcc compiles a source without optimisation (``ptxsim.second_build``).
    words: what stands in reports for words of CUDA's.

    Raises RefusedProgram for PTX that cannot be read, CompileError for a source that nvcc does not
    compile, OSError for a file that cannot be read, EngineError without an engine, ValueError for
    an ``arch`` that nvcc does not know.
    """

    def __init__(
        self,
        ptx: Path | str,
        *,
        arch: str = "sm_80",
        flags: Sequence[str] = (),
        sources: Mapping[str, str] | None = None,
        engine: Engine | None = None,
        checked: bool = False,
        metrics: bool = False,
        second: bool = False,
        words: Mapping[str, str] | None = None,
    ) -> None:
        self.engine = engine or default_engine()
        self.checked = checked
        made = _origin(ptx, sources or {}, arch, *flags, second=second)
        self.origin = replace(made, words=words or {})
        text = self.origin.texts[self.origin.name]
        self.simulator = Simulator(text, self.origin.root, self.engine, metrics)
        self.declared = self.simulator.declared

    @property
    def kernels(self) -> tuple[str, ...]:
        """Their mangled names."""
        return tuple(self.declared.entries)

    def kernel(self, name: str) -> Kernel:
        """name: mangled, or plain where no other kernel has it. Raises ValueError."""
        return Kernel(self, _find(name, self.declared))

    def run(
        self,
        launches: Sequence[Launch],
        memory: Storage,
        *,
        limits: SimLimits = _LIMITS,
        orders: int = 1,
        seed: int = 1,
        tolerance: float = 1e-5,
        symbols: Mapping[str, NDArray[Any]] | None = None,
        watch: Sequence[str] = (),
    ) -> Report:
        """Run launches, made by ``Kernel.request`` for ``memory``, one after the other.

        limits: of each run.
        orders, seed, tolerance: as ``Orders`` has them.
        symbols: what ``__constant__`` and ``__device__`` variables hold before, by their names.
        watch: elements whose writes the report lists: ``2[5]`` of an argument, by its number or its
        name in a ``.cu``; ``counts[5]`` of a variable, or ``counts[5]:u64``.

        Raises RefusedProgram for a launch that cannot be simulated, ValueError for wrong symbols
        and for elements that are not there.
        """
        __tracebackhide__ = True
        writes = [_written(self.declared, *each) for each in (symbols or {}).items()]
        allocations = tuple(memory.allocations)
        plan = Plan(size=Size.of(), operations=(*writes, *launches), allocations=allocations)
        watched = [self._element(WatchedElement.named(each), launches, memory) for each in watch]
        run = partial(
            self.simulator.run, plan, memory.buffers, limits, memory.inputs, watch=watched
        )
        names = [each.name for each in allocations]
        outcome = in_orders(run, memory.arrays, names, Orders(orders, seed, tolerance))
        seen = tuple(in_elements(each, memory.elements) for each in outcome.findings)
        kernels = dict.fromkeys(each.kernel for each in launches)
        given = {each.symbol for each in writes}
        unset = [each for k in kernels for each in self.simulator.unset_constants(k, given)]
        outcome = replace(outcome, findings=(*seen, *unset), writes=typed(outcome.writes))
        name = ", ".join(map(plain_name, kernels))
        report = Report(**vars(outcome), origin=self.origin, kernel=name)
        if self.checked:
            report.raise_for_findings()
        return report

    def _element(
        self, asked: WatchedElement, launches: Sequence[Launch], memory: Storage
    ) -> WatchedElement:
        """The element by the name of its memory, with the type of an array."""
        pairs = zip(memory.allocations, memory.arrays, strict=True)
        arrays = {made.name: array.dtype for made, array in pairs}
        text = self.origin.source(f"{Path(self.origin.name).stem}.cu") or ""
        parameters = _parameter_names(text, plain_name(launches[0].kernel))
        number = parameters.index(asked.name) if asked.name in parameters else asked.name
        name = asked.name if asked.name in arrays else f"argument {number}"
        if name not in arrays:
            return asked
        kind = arrays[name]
        of_array = f"{kind.kind}{8 * kind.itemsize}" if kind.kind in "iuf" else ""
        return msgspec.structs.replace(asked, name=name, type=asked.type or of_array)


@dataclass(frozen=True)
class Kernel:
    """One kernel. ``kernel[grid, block](…)`` launches it, as does ``kernel[grid, block, shared]``
    with so many bytes of dynamic shared memory."""

    module: Module
    name: str  # mangled

    @property
    def parameters(self) -> tuple[KernelParam, ...]:
        return self.module.declared.entries[self.name].params

    def __getitem__(self, shape: Shape) -> Callable[..., Report]:
        return partial(self.launch, shape)

    def launch(
        self, shape: Shape, /, *arguments: Argument, cluster: Extents = 1, **options: Any
    ) -> Report:
        """Run it and return what was seen; arrays are changed in place. options: ``Module.run``'s.

        arguments: one for each parameter. An array stands for a pointer to a device allocation of
        its size; a Python number takes the type of the parameter; ``bytes`` are a struct. A list of
        tensor maps stands for a pointer to them in device memory.
        cluster: blocks of a cluster, for a kernel that does not say it itself.
        """
        __tracebackhide__ = True
        memory = Storage(self.module.engine)
        named = [(f"argument {place}", each) for place, each in enumerate(arguments)]
        return self.module.run([self.request(memory, shape, named, cluster)], memory, **options)

    def request(self, memory: Storage, shape: Shape, given: Arguments, cluster: Extents) -> Launch:
        """The launch as a plan has it, with its arrays in ``memory`` under their names. Raises
        ValueError for arguments that do not fit the kernel."""
        entry = self.module.declared.entries[self.name]
        if len(given) != len(entry.params):
            raise ValueError(f"{self.name} takes {len(entry.params)} arguments, not {len(given)}")
        params = bytearray(entry.size)
        for (name, argument), param in zip(given, entry.params, strict=True):
            value = _value(name, argument, param, memory)
            if len(value) != param.size:
                raise ValueError(f"{name} has {len(value)} bytes, its parameter {param.size}")
            params[param.offset : param.offset + param.size] = value
        grid, block, *shared = shape
        return Launch(
            kernel=self.name,
            grid=_dim3(grid),
            block=_dim3(block),
            shared_bytes=shared[0] if shared else 0,
            params=bytes(params),
            pointers=(),
            cluster=_dim3(cluster),
        )


def _origin(ptx: Path | str, sources: Mapping[str, str], *nvcc: str, second: bool) -> Origin:
    if isinstance(ptx, str) and "\n" in ptx:
        text, name, here = ptx, "the PTX", Path.cwd()
    else:
        path = Path(ptx)
        name, here = path.name, path.absolute().parent
        if path.suffix == ".cu":
            name, text = f"{path.stem}.ptx", compiled(path, *nvcc, second=second)
        else:
            text = ptx_text(path.read_bytes())
    return Origin(_root(text, here), name, {**sources, name: text})


def _root(ptx: str, here: Path) -> Path:
    """``here`` if any source lies below it, else the folder of the first source."""
    named = [Path(name) for name in source_files(ptx)]
    far = [path for path in named if path.is_absolute()]
    if len(far) < len(named) or not far or any(path.is_relative_to(here) for path in far):
        return here
    return far[0].parent


@cache
def default_engine() -> Engine:
    """The engine of the wheel, or the one that the first call on a machine compiles into the
    user's cache folder. Raises EngineError."""
    shipped = native.shipped_engine()
    target = shipped or engine_path()
    if not target.exists():
        print("ptxsim: compiling the engine, once on this machine", file=sys.stderr)
        flags = (*native.FLAGS, "-fPIC")
        native.build_native("g++", native.engine_sources(), flags, target, shared=True)
    return load_engine(target)


def engine_path() -> Path:
    """Where ``default_engine`` keeps the engine. The name changes with the sources, and with the
    machine, since it is compiled for this processor."""
    about = "\0".join((*native.FLAGS, platform.node(), native.engine_digest()))
    digest = hashlib.sha256(about.encode())
    return native.user_cache("ptxsim") / f"engine-{digest.hexdigest()[:16]}.so"


class Storage:
    """Device allocations for arrays, each made where it is first asked for."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.allocations: list[Allocation] = []
        self.buffers: dict[int, NDArray[np.uint8]] = {}
        self.inputs: set[int] = set()
        self.arrays: list[NDArray[Any]] = []
        self._free = _FIRST_ADDRESS

    def address(self, name: str, given: NDArray[Any] | Output) -> int:
        """Return the address of an array, allocating it under ``name`` if it is new; what is not
        given as Output holds data."""
        array = given.array if isinstance(given, Output) else given
        if not (array.size and array.flags.c_contiguous and array.flags.writeable):
            raise ValueError(f"{name}: an array must be contiguous, writeable, not empty")
        number = next((i for i, each in enumerate(self.arrays) if _same(each, array)), None)
        if number is None:
            if any(np.may_share_memory(array, each) for each in self.arrays):
                raise ValueError(f"{name}: it overlaps another array")
            number = len(self.arrays)
            self.arrays.append(array)
            self.buffers[number] = array.reshape(-1).view(np.uint8)
            made = Allocation(name=name, address=self._free, size=array.nbytes)
            self.allocations.append(made)
            self._free += -(-array.nbytes // _APART) * _APART + _APART
        if not isinstance(given, Output):
            self.inputs.add(number)
        return self.allocations[number].address

    @property
    def elements(self) -> dict[int, int]:
        """Return the bytes of an allocation's elements, by its address."""
        pairs = zip(self.allocations, self.arrays, strict=True)
        return {made.address: array.itemsize for made, array in pairs}


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return (one.ctypes.data, one.nbytes) == (other.ctypes.data, other.nbytes)


def _find(kernel: str, declared: Declarations) -> str:
    if kernel in declared.entries:
        return kernel
    found = [name for name in declared.entries if plain_name(name) == plain_name(kernel)]
    if len(found) != 1:
        names = ", ".join(declared.entries) or "none"
        raise ValueError(f"there is no one kernel {kernel}; the file has {names}")
    return found[0]


def _parameter_names(source: str, kernel: str) -> list[str]:
    found = re.search(rf"\b{re.escape(kernel)}\s*\(([^(){{;]*)\)\s*\{{", source)
    return (
        [name for part in found[1].split(",") for name in re.findall(r"\w+", part)[-1:]]
        if found
        else []
    )


def _written(declared: Declarations, name: str, array: NDArray[Any]) -> SymbolWrite:
    """The array as the contents of a variable. name: mangled, or plain."""
    found = [each for each in declared.symbols if name in (each, plain_name(each))]
    if len(found) != 1:
        names = ", ".join(map(plain_name, declared.symbols)) or "none"
        raise ValueError(f"there is no one variable {name}; the file has {names}")
    size = declared.symbols[found[0]].size
    if array.nbytes > size:
        raise ValueError(f"{name} has {size} bytes; its array has {array.nbytes}")
    return SymbolWrite(symbol=found[0], delta=0, data=array.tobytes())


def _value(name: str, argument: Argument, param: KernelParam, memory: Storage) -> bytes:
    """The bytes of the parameter."""
    match argument:
        case Output() | np.ndarray():
            return struct.pack("<Q", memory.address(name, argument))
        case TensorMap(array=array):
            return encode(memory.engine, argument, memory.address(name, array))
        case Texture(array=array):
            texture = argument.encoded(memory.address(name, array))
            return _value(name, np.frombuffer(texture, np.uint8), param, memory)
        case list():
            maps = bytearray().join(_value(name, each, param, memory) for each in argument)
            return _value(name, np.frombuffer(maps, np.uint8), param, memory)
        case bytes():
            return argument
        case np.generic():
            return argument.tobytes()
    kind = param.type[:1]
    try:
        if kind == "f" or (isinstance(argument, float) and kind not in ("s", "u")):
            return struct.pack(f"<{_FLOATS[param.size]}", argument)
        if isinstance(argument, float):
            raise ValueError(f"{name}: {argument} is no integer ({param.type})")
        return argument.to_bytes(param.size, "little", signed=argument < 0)
    except (KeyError, OverflowError):
        raise ValueError(f"{name}: {argument} does not fit {param.size} bytes") from None


def _dim3(extents: int | Sequence[int]) -> Dim3:
    values = (extents,) if isinstance(extents, int) else tuple(extents)
    if not 1 <= len(values) <= 3:
        raise ValueError(f"{values}: a grid or block has one to three extents")
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z
