"""A launch plan: everything one call of run_custom asked the device to do."""

from __future__ import annotations

from grader.model.base import Dim3, Mnk, Record


class Allocation(Record):
    """A device allocation, at the address that the recorder gave it. A GPU maps its memory there,
    except for symbols, which lie where the driver loads them."""

    name: str  # "A", "B", "C", "workspace 1", …, or the symbol
    address: int
    size: int  # bytes
    symbol: str | None = None  # mangled name when this is a __device__ variable, not an allocation


class PointerSlot(Record):
    """A device pointer in what a launch or a symbol write passes. Any eight bytes may hold one."""

    offset: int  # bytes into Launch.params or SymbolWrite.data
    allocation: int  # index into Plan.allocations
    delta: int  # bytes from the allocation's start; may be negative or past its end


class Launch(Record, tag="launch"):
    kernel: str  # mangled name
    grid: Dim3
    block: Dim3
    shared_bytes: int  # dynamic
    params: bytes  # raw parameter block, laid out as the PTX .entry says
    pointers: tuple[PointerSlot, ...]
    carveout: int = -1  # preferred shared-memory carve-out in percent; -1 is the driver's choice


class Memset(Record, tag="memset"):
    allocation: int
    delta: int
    value: int  # byte
    size: int  # bytes


class Copy(Record, tag="copy"):
    """Device to device."""

    source: int
    source_delta: int
    target: int
    target_delta: int
    size: int


class SymbolWrite(Record, tag="symbol"):
    """cudaMemcpyToSymbol: bytes written into a __device__ or __constant__ variable."""

    symbol: str  # mangled name
    delta: int
    data: bytes
    pointers: tuple[PointerSlot, ...] = ()


class Plan(Record):
    """Everything one call of run_custom asked the device to do, in order.

    ``allocations`` begins with A, B, C. Streams are serialised: order is program order.
    """

    size: Mnk
    allocations: tuple[Allocation, ...]
    operations: tuple[Launch | Memset | Copy | SymbolWrite, ...]
