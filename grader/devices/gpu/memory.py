"""Device memory of a plan, with canaries round every buffer, at the recorder's own addresses.

A program may put a pointer wherever it likes: into a packed struct, a constant, before the start
of its buffer. So a plan's memory is mapped at the very addresses that its host code was given, and
what was recorded needs no change. Where the driver does not give these addresses, buffers come
from CuPy's pool, and pointers that were recognised are relocated.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import cupy

from grader.model import Allocation, Finding, Plan, Severity
from grader.record.bounds import RED_ZONE

_GIVEN = 3  # A, B and C
_OUT_OF_MEMORY = 2  # CUresult
_PINNED = _ON_DEVICE = 1  # CUmemAllocationType, CUmemLocationType
_READ_WRITE = 3  # CUmemAccess_flags


class Buffer:
    """Device memory with a canary on either side. ``words`` is the part between.

    ``around`` is memory that begins RED_ZONE bytes before the buffer and goes on behind it; by
    default it comes from CuPy's pool.
    """

    def __init__(self, size: int, around: Any = None) -> None:
        edge, words = RED_ZONE // 4, (size + 3) // 4
        if around is None:
            around = cupy.empty(words + 2 * edge, dtype=cupy.uint32)
        self.before = around[:edge]
        self.words = around[edge : edge + words]
        self.after = around[edge + words :]
        self.address = int(self.words.data.ptr)

    def floats(self) -> Any:
        return self.words.view(cupy.float32)


class PlanMemory:
    """A plan's buffers by the index of their allocation; None where a variable is meant.

    ``relocated`` says that they do not lie where the recorder said.
    """

    def __init__(self, buffers: Sequence[Buffer | None], *, relocated: bool) -> None:
        self.buffers = tuple(buffers)
        self.relocated = relocated

    def given(self) -> tuple[Buffer, Buffer, Buffer]:
        """Of A, B and C."""
        a, b, c = self.buffers[:_GIVEN]
        assert a and b and c
        return a, b, c

    def notes(self) -> tuple[Finding, ...]:
        """What the instructor should know about where the plan ran."""
        if not self.relocated:
            return ()
        words = (
            "the driver did not give the addresses that host code had seen: pointers in parameters "
            "and symbols were relocated, and one that was not recognised is invalid"
        )
        return (Finding(kind="relocated", severity=Severity.NOTE, message=words),)


@contextmanager
def plan_memory(plan: Plan) -> Iterator[PlanMemory]:
    """The memory that ``plan`` needs, until the end of the block. Raises MemoryError."""
    with ExitStack() as mapped:
        try:
            buffers = [_mapped(allocation, mapped) for allocation in plan.allocations]
            relocated = False
        except _AddressTakenError:
            mapped.close()
            buffers = [_pooled(allocation) for allocation in plan.allocations]
            relocated = True
        # Whatever ends the block may have left work in flight.
        mapped.callback(_driver().cuCtxSynchronize)
        yield PlanMemory(buffers, relocated=relocated)


def _pooled(allocation: Allocation) -> Buffer | None:
    return Buffer(allocation.size) if allocation.symbol is None else None


def _mapped(allocation: Allocation, undo: ExitStack) -> Buffer | None:
    """The buffer at its own address. Raises _AddressTakenError and MemoryError."""
    if allocation.symbol is not None:
        return None
    device = cupy.cuda.Device().id
    location = _Location(_ON_DEVICE, device)
    start, granule = allocation.address - RED_ZONE, _granule(location)
    size = -(-(allocation.size + 2 * RED_ZONE) // granule) * granule
    _map(start, size, location, undo)
    memory = cupy.cuda.UnownedMemory(start, size, None, device)
    pointer = cupy.cuda.MemoryPointer(memory, 0)
    return Buffer(allocation.size, cupy.ndarray(size // 4, cupy.uint32, pointer))


class _AddressTakenError(Exception):
    """The driver has no virtual memory management, or the address is taken."""


class _Location(ctypes.Structure):
    """CUmemLocation."""

    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("meta_data", ctypes.c_void_p),
        ("flags", ctypes.c_uint8 * 8),
    )


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


def _granule(location: _Location) -> int:
    """Mapped memory begins and ends at multiples of this."""
    properties, found = _Properties(type=_PINNED, location=location), ctypes.c_size_t()
    _check(
        _driver().cuMemGetAllocationGranularity(
            ctypes.byref(found), ctypes.byref(properties), ctypes.c_int(0)
        )
    )
    return found.value


def _map(start: int, size: int, location: _Location, undo: ExitStack) -> None:
    """Device memory at [start, start + size) until ``undo`` closes."""
    driver, at, room = _driver(), ctypes.c_uint64(), ctypes.c_size_t(size)
    wanted, none = ctypes.c_uint64(start), ctypes.c_uint64(0)
    _check(driver.cuMemAddressReserve(ctypes.byref(at), room, ctypes.c_size_t(0), wanted, none))
    undo.callback(driver.cuMemAddressFree, at, room)
    if at.value != start:
        raise _AddressTakenError
    properties, handle = _Properties(type=_PINNED, location=location), ctypes.c_uint64()
    _check(driver.cuMemCreate(ctypes.byref(handle), room, ctypes.byref(properties), none))
    undo.callback(driver.cuMemRelease, handle)
    _check(driver.cuMemMap(at, room, ctypes.c_size_t(0), handle, none))
    undo.callback(driver.cuMemUnmap, at, room)
    access = _Access(location, _READ_WRITE)
    _check(driver.cuMemSetAccess(at, room, ctypes.byref(access), ctypes.c_size_t(1)))


def _check(status: int) -> None:
    if status == _OUT_OF_MEMORY:
        raise MemoryError
    if status:
        raise _AddressTakenError


def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")
