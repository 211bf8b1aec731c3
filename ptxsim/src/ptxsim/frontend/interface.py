"""The interface of a PTX module for the host: its kernels' parameters, its variables."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from ptxsim.frontend.records import SIZES, Function, Instruction, PtxModule, Variable
from ptxsim.plan.limits import MAX_THREADS
from ptxsim.plan.records import Dim3, KernelParam
from ptxsim.record import Record

_VECTOR = {"v2": 2, "v4": 4, "v8": 8}


class Entry(Record):
    """One __global__ function as the PTX declares it."""

    params: tuple[KernelParam, ...]
    max_threads: int  # per block: 1024, or less by __launch_bounds__
    # (first, end) of bytes of the parameter block that its code never reads, such as padding.
    unread: tuple[tuple[int, int], ...] = ()
    cluster: Dim3 | None = None  # blocks, as __cluster_dims__ says; None: each launch says it

    @property
    def size(self) -> int:
        """Bytes of the parameter block."""
        return max((param.offset + param.size for param in self.params), default=0)


class Symbol(Record):
    """A __device__ or __constant__ variable."""

    space: str  # "global" or "const"
    size: int  # bytes
    align: int


class Declarations(Record):
    entries: dict[str, Entry]  # by mangled name
    symbols: dict[str, Symbol]
    # by mangled name of a kernel: files outside the submission that its code comes from
    origins: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


def interface(module: PtxModule, origins: dict[str, tuple[str, ...]] | None = None) -> Declarations:
    return Declarations(
        entries={name: _entry(each) for name, each in module.functions.items() if each.entry},
        symbols={
            variable.name: Symbol(space=variable.space, size=variable.size, align=variable.align)
            for variable in module.variables
            if variable.space in ("global", "const")
        },
        origins=origins or {},
    )


def laid_out(params: Sequence[Variable]) -> tuple[KernelParam, ...]:
    """The places of a kernel's parameters, which follow the C layout rules."""
    found: list[KernelParam] = []
    end = 0
    for param in params:
        offset = -(-end // param.align) * param.align
        found.append(KernelParam(offset=offset, size=param.size, type=param.type))
        end = offset + param.size
    return tuple(found)


def _entry(function: Function) -> Entry:
    params = laid_out(function.params)
    threads = MAX_THREADS if function.max_threads is None else function.max_threads
    return Entry(
        params=params,
        max_threads=min(threads, MAX_THREADS),
        unread=tuple(_unread(function, params)),
        cluster=function.cluster,
    )


def _unread(function: Function, params: Sequence[KernelParam]) -> Iterator[tuple[int, int]]:
    """A parameter is read as a whole where its address is used in any other way than to load from a
    fixed place in it."""
    places = {each.name: param for each, param in zip(function.params, params, strict=True)}
    read = bytearray(max((param.offset + param.size for param in params), default=0))
    for item in function.instructions:
        for operand in item.operands:
            for name in places.keys() & set(re.findall(r"[\w$%]+", operand)):
                first, size = _loaded(item, operand, name) or (0, places[name].size)
                first += places[name].offset
                read[first : first + size] = bytes([1]) * len(read[first : first + size])
    for gap in re.finditer(b"\0+", read):
        yield gap.span()


def _loaded(item: Instruction, operand: str, name: str) -> tuple[int, int] | None:
    """The place in the parameter ``name``, and how many bytes, that a load from there takes."""
    words = item.opcode.split(".")
    address = re.fullmatch(rf"\[\s*{re.escape(name)}\s*(?:\+\s*(\d+)\s*)?\]", operand)
    if words[0] != "ld" or words[-1] not in SIZES or address is None:
        return None
    return int(address[1] or 0), SIZES[words[-1]] * _VECTOR.get(words[-2], 1)
