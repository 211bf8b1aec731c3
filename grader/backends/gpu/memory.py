"""Device memory of a plan, with canaries around every buffer, at the recorder's addresses.

A program may put a pointer anywhere: into a packed struct, into a constant, or before the start of
its buffer. So a plan's memory is mapped at exactly the addresses that host code received, and the
recorded data needs no change. If the driver does not grant these addresses, buffers come from
CuPy's pool, and the replay relocates the pointers that the recorder recognised.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import cupy

from grader.model import Allocation, Finding, Kind, Plan, Severity, phrase
from grader.problems.operands import Operand
from grader.record.plan_bounds import ARENA_BYTES, FIRST_ADDRESS, RED_ZONE

_OUT_OF_MEMORY = 2  # CUresult
_PINNED = _ON_DEVICE = 1  # CUmemAllocationType, CUmemLocationType
_READ_WRITE = 3  # CUmemAccess_flags


class Buffer:
    """Device memory with a canary on either side. ``words`` is the part between.

    ``around`` is memory that begins RED_ZONE bytes before the buffer and continues after it; by
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

    def array(self, operand: Operand) -> Any:
        return self.words.view(operand.element.dtype)[: operand.count]


class PlanMemory:
    """A plan's buffers by the index of their allocation; None for a variable.

    ``relocated`` says why they are not at the recorded addresses; "" when they are.
    """

    def __init__(self, buffers: Sequence[Buffer | None], relocated: str) -> None:
        self.buffers = tuple(buffers)
        self.relocated = relocated

    def given(self, plan: Plan) -> list[Buffer]:
        """The buffers of the operands."""
        return [buffer for buffer in self.buffers[: plan.given] if buffer is not None]

    def notes(self) -> tuple[Finding, ...]:
        """What the instructor should know about where the plan ran."""
        if not self.relocated:
            return ()
        words = phrase(
            "the driver did not give the addresses that host code had seen ({reason}): pointers "
            "were relocated, and one that was not recognised is invalid",
            reason=self.relocated,
        )
        return (Finding(kind=Kind.RELOCATED, severity=Severity.NOTE, message=words),)


class Arena:
    """The recorder's addresses. A process reserves them once and keeps them: after a mapping, the
    driver does not grant the same addresses again for another size."""

    def __init__(self) -> None:
        self._missing = ""
        start, size = ctypes.c_uint64(FIRST_ADDRESS - RED_ZONE), ctypes.c_size_t(ARENA_BYTES)
        at, any_alignment, no_flags = ctypes.c_uint64(), ctypes.c_size_t(0), ctypes.c_uint64(0)
        try:
            _do("cuMemAddressReserve", ctypes.byref(at), size, any_alignment, start, no_flags)
            if at.value != start.value:
                self._missing = f"{at.value:#x} for {start.value:#x}"
        except _AddressTakenError as error:
            self._missing = str(error)

    @contextmanager
    def memory(self, plan: Plan) -> Iterator[PlanMemory]:
        """The memory that ``plan`` needs, until the end of the block. Raises MemoryError."""
        with ExitStack() as mapped:
            relocated = self._missing
            try:
                buffers = [] if relocated else _mapped(plan.allocations, mapped)
            except _AddressTakenError as error:
                mapped.close()
                relocated = str(error)
            if relocated:
                buffers = [Buffer(a.size) if a.symbol is None else None for a in plan.allocations]
            # Work may still be in flight, whatever ended the block.
            mapped.callback(_driver().cuCtxSynchronize)
            yield PlanMemory(buffers, relocated)


def _mapped(allocations: Sequence[Allocation], undo: ExitStack) -> list[Buffer | None]:
    """The buffers at their recorded addresses. Raises _AddressTakenError and MemoryError."""
    location = _Location(_ON_DEVICE, cupy.cuda.Device().id)
    granule = _granule(location)
    buffers: list[Buffer | None] = []
    for allocation in allocations:
        if allocation.symbol is not None:
            buffers.append(None)
            continue
        start = allocation.address - RED_ZONE
        size = -(-(allocation.size + 2 * RED_ZONE) // granule) * granule
        _map(start, size, location, undo)
        memory = cupy.cuda.UnownedMemory(start, size, None, location.id)
        pointer = cupy.cuda.MemoryPointer(memory, 0)
        buffers.append(Buffer(allocation.size, cupy.ndarray(size // 4, cupy.uint32, pointer)))
    return buffers


class _AddressTakenError(Exception):
    """The driver cannot map memory there."""


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
    minimum = ctypes.c_int(0)
    _do("cuMemGetAllocationGranularity", ctypes.byref(found), ctypes.byref(properties), minimum)
    return found.value


def _map(start: int, size: int, location: _Location, undo: ExitStack) -> None:
    """Device memory at [start, start + size) of the arena, until ``undo`` closes."""
    at, room, no_flags = ctypes.c_uint64(start), ctypes.c_size_t(size), ctypes.c_uint64(0)
    properties, handle = _Properties(type=_PINNED, location=location), ctypes.c_uint64()
    _do("cuMemCreate", ctypes.byref(handle), room, ctypes.byref(properties), no_flags)
    undo.callback(_driver().cuMemRelease, handle)
    _do("cuMemMap", at, room, ctypes.c_size_t(0), handle, no_flags)
    undo.callback(_driver().cuMemUnmap, at, room)
    access = _Access(location, _READ_WRITE)
    _do("cuMemSetAccess", at, room, ctypes.byref(access), ctypes.c_size_t(1))


def _do(function: str, *arguments: Any) -> None:
    status = getattr(_driver(), function)(*arguments)
    if status == _OUT_OF_MEMORY and function == "cuMemCreate":
        raise MemoryError
    if status:
        raise _AddressTakenError(f"{function}: CUDA error {status}")


def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")
