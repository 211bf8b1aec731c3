"""The interface of a PTX module for the host: its kernels' parameters, its variables."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ptxsim.frontend import Function, Module, read_module
from ptxsim.records import KernelParam, Record

_MAX_THREADS = 1024


class Entry(Record):
    """One __global__ function as the PTX declares it."""

    params: tuple[KernelParam, ...]
    max_threads: int  # per block: 1024, or less by __launch_bounds__

    @property
    def size(self) -> int:
        """Bytes of the parameter block."""
        return max((param.offset + param.size for param in self.params), default=0)


class Symbol(Record):
    """A __device__ or __constant__ variable."""

    space: str  # "global" or "const"
    size: int  # bytes
    align: int


class Interface(Record):
    entries: dict[str, Entry]  # by mangled name
    symbols: dict[str, Symbol]
    # by mangled name of a kernel: files outside the submission that its code comes from
    origins: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


def read_interface(ptx: str, source_root: Path) -> Interface:
    """Raises RefusedProgram for PTX that cannot be read."""
    return interface(read_module(ptx, source_root))


def interface(module: Module, origins: dict[str, tuple[str, ...]] | None = None) -> Interface:
    return Interface(
        entries={name: _entry(each) for name, each in module.functions.items() if each.entry},
        symbols={
            variable.name: Symbol(space=variable.space, size=variable.size, align=variable.align)
            for variable in module.variables
            if variable.space in ("global", "const")
        },
        origins=origins or {},
    )


def _entry(function: Function) -> Entry:
    """Offsets follow the C layout rules."""
    params: list[KernelParam] = []
    end = 0
    for param in function.params:
        offset = -(-end // param.align) * param.align
        params.append(KernelParam(offset=offset, size=param.size))
        end = offset + param.size
    threads = _MAX_THREADS if function.max_threads is None else function.max_threads
    return Entry(params=tuple(params), max_threads=min(threads, _MAX_THREADS))
