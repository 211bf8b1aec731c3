"""Kernel parameter layouts, read from the ``.entry`` declarations of the PTX."""

from __future__ import annotations

import re
from functools import reduce

from grader.model import KernelParam, Record

_ENTRY = re.compile(r"\.entry\s+(?P<name>[\w$]+)\s*\((?P<params>[^)]*)\)(?P<rest>[^{;]*)[{;]")
_PARAM = re.compile(
    r"\.param\s+(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<kind>[usbf])(?P<bits>\d+)\s+"
    r"(?:\.ptr\S*\s+(?:\.\w+\s+)*?(?:\.align\s+\d+\s+)?)?[\w$]+(?:\[(?P<count>\d+)\])?"
)
_THREADS = re.compile(r"\.(?:maxntid|reqntid)\s+(\d+(?:\s*,\s*\d+)*)")
_MAX_THREADS = 1024


class Entry(Record):
    """One __global__ function as the PTX declares it."""

    params: tuple[KernelParam, ...]
    max_threads: int  # per block: 1024, or what __launch_bounds__ says

    @property
    def size(self) -> int:
        """Bytes of the parameter block."""
        return max((param.offset + param.size for param in self.params), default=0)


class Symbol(Record):
    """A __device__ or __constant__ variable as the PTX declares it."""

    space: str  # "global" or "const"
    size: int  # bytes


class Declarations(Record):
    """What a PTX module declares. It is read by the simulator's worker, in its cage."""

    entries: dict[str, Entry]  # by mangled name
    symbols: dict[str, Symbol]


def read_entries(ptx: str) -> dict[str, Entry]:
    """Every kernel of a PTX module by its mangled name. Offsets follow the C layout rules."""
    return {entry["name"]: _entry(entry) for entry in _ENTRY.finditer(ptx)}


def _entry(match: re.Match[str]) -> Entry:
    params: list[KernelParam] = []
    end = 0
    for param in _PARAM.finditer(match["params"]):
        unit = max(1, int(param["bits"]) // 8)
        align = max(1, int(param["align"] or unit))
        size = unit * int(param["count"] or 1)
        offset = -(-end // align) * align
        params.append(KernelParam(offset=offset, size=size))
        end = offset + size
    bound = _THREADS.search(match["rest"])
    sides = [int(side) for side in bound[1].split(",")] if bound else [_MAX_THREADS]
    threads = reduce(lambda a, b: a * b, sides)
    return Entry(params=tuple(params), max_threads=min(threads, _MAX_THREADS))
