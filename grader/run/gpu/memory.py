"""Device memory of a plan, with canaries around every buffer, at the recorder's addresses; and
our kernels, which make and check inputs and poison memory.

A program may put a pointer anywhere: into a packed struct, into a constant, or before the start of
its buffer. So a plan's memory is mapped at exactly the addresses that host code received, and the
recorded data needs no change. If the driver does not grant these addresses, buffers come from
CuPy's pool, and the replay relocates the pointers that the recorder recognised.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import cupy
import numpy as np

from grader.base import Finding, Kind, MachineError
from grader.problems import EXPOSING, FLOAT, Element, Operand, Values
from grader.record import ARENA_BYTES, FIRST_ADDRESS, RED_ZONE
from grader.run.gpu.filling import source_of
from grader.run.gpu.messages import checks_cubin, host_library
from grader.run.probe import first_gpu_arch
from ptxsim.findings import Severity
from ptxsim.plan import POISONS, Allocation, Plan
from ptxsim.text import phrase

_OUT_OF_MEMORY = 2  # CUresult
_PINNED = _ON_DEVICE = 1  # CUmemAllocationType, CUmemLocationType
_READ_WRITE = 3  # CUmemAccess_flags


class Buffer:
    """Device memory with a canary on either side; ``words`` is the part between. ``around``, by
    default of CuPy's pool, begins RED_ZONE bytes before it and continues after it."""

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
    """A plan's buffers by the index of their allocation; None for a variable. ``relocated`` says
    why they are not at the recorded addresses; "" when they are."""

    def __init__(self, buffers: Sequence[Buffer | None], relocated: str) -> None:
        self.buffers = tuple(buffers)
        self.relocated = relocated

    def given(self, plan: Plan) -> list[Buffer]:
        """The buffers of the operands."""
        return [buffer for buffer in self.buffers[: plan.given] if buffer is not None]

    def notes(self) -> tuple[Finding, ...]:
        """Return notes for the instructor about where the plan ran."""
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
            mapped.callback(cuda_driver().cuCtxSynchronize)
            yield PlanMemory(buffers, relocated)


def _mapped(allocations: Sequence[Allocation], undo: ExitStack) -> list[Buffer | None]:
    """The buffers at their recorded addresses, until ``undo`` closes. Raises _AddressTakenError and
    MemoryError."""
    location = _Location(_ON_DEVICE, cupy.cuda.Device().id)
    properties, found = _Properties(type=_PINNED, location=location), ctypes.c_size_t()
    minimum = ctypes.c_int(0)
    _do("cuMemGetAllocationGranularity", ctypes.byref(found), ctypes.byref(properties), minimum)
    granule = found.value  # mapped memory begins and ends at multiples of this
    buffers: list[Buffer | None] = []
    for allocation in allocations:
        if allocation.symbol is not None:
            buffers.append(None)
            continue
        start = allocation.address - RED_ZONE
        size = -(-(allocation.size + 2 * RED_ZONE) // granule) * granule
        at, room, no_flags = ctypes.c_uint64(start), ctypes.c_size_t(size), ctypes.c_uint64(0)
        handle = ctypes.c_uint64()
        _do("cuMemCreate", ctypes.byref(handle), room, ctypes.byref(properties), no_flags)
        undo.callback(cuda_driver().cuMemRelease, handle)
        _do("cuMemMap", at, room, ctypes.c_size_t(0), handle, no_flags)
        undo.callback(cuda_driver().cuMemUnmap, at, room)
        access = _Access(location, _READ_WRITE)
        _do("cuMemSetAccess", at, room, ctypes.byref(access), ctypes.c_size_t(1))
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


def _do(function: str, *arguments: Any) -> None:
    status = getattr(cuda_driver(), function)(*arguments)
    if status == _OUT_OF_MEMORY and function == "cuMemCreate":
        raise MemoryError
    if status:
        raise _AddressTakenError(f"{function}: CUDA error {status}")


def cuda_driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


_NAMES = ("fill", "changed", "head_start", "poison", "differs")
_THREADS = 256
CHECKS = Path(__file__).with_name("checks.cu")
_WORDS = 16  # elements that a thread of fill and changed generates at a time
_NONE = (1 << 64) - 1


class Kernels:
    """Loaded once per worker; every call is asynchronous on ``stream`` except for its result."""

    def __init__(self, stream: Any) -> None:
        arch = first_gpu_arch()
        if arch is None:
            raise MachineError.saying("no NVIDIA GPU here")
        self._arch = arch
        self.stream = stream
        module = self.functions(CHECKS)
        self._functions = {name: module.get_function(name) for name in _NAMES}
        self._turn = 0

    def functions(self, source: Path) -> Any:
        """A module: CUDA C++ of ours, compiled for this GPU."""
        return cupy.RawModule(path=str(checks_cubin(self._arch, source)))

    def library(self, source: Path) -> ctypes.CDLL:
        return ctypes.CDLL(str(host_library(self._arch, source)))

    def _over(self, name: str, count: int, *arguments: Any) -> None:
        blocks = max(1, min(4096, -(-count // _THREADS)))
        self._functions[name]((blocks,), (_THREADS,), arguments, stream=self.stream)

    def fill(
        self, out: Any, key: bytes, values: Values = EXPOSING, element: Element = FLOAT
    ) -> None:
        """The elements that ``inputs.values`` gives for this key."""
        arguments = (out, np.uint64(out.size), *source_of(key, values, element))
        self._over("fill", -(-out.size // _WORDS), *arguments)

    def begin_call(self) -> None:
        """Let poison differ from that of the call before, whichever case's that was."""
        self._turn += 1

    def poison(self, out: Any, bits: int | None = None) -> None:
        word = POISONS[self._turn % len(POISONS)] if bits is None else bits
        self._over("poison", out.size, out, np.uint64(out.size), np.uint32(word))

    def changed(
        self, operands: Sequence[Operand], arrays: Sequence[Any], keys: Sequence[bytes]
    ) -> list[tuple[int, int]]:
        """For each input: how many elements differ from those of its key, and the first such."""
        with self.stream:
            results = cupy.array([[0, _NONE]] * len(keys), dtype=cupy.uint64)
            for operand, array, key, result in zip(operands, arrays, keys, results, strict=True):
                source = source_of(key, operand.values, operand.element)
                arguments = (array, np.uint64(array.size), *source, result)
                self._over("changed", -(-array.size // _WORDS), *arguments)
            return [(int(count), int(first)) for count, first in results.get()]

    def differs(self, words: Any, bits: int) -> bool:
        with self.stream:
            result = cupy.array([0, _NONE], dtype=cupy.uint64)
            self._over("differs", words.size, words, np.uint64(words.size), np.uint32(bits), result)
            return bool(result.get()[0])

    def head_start(self, microseconds: float) -> None:
        """Keep the GPU busy for this long, so that the host gets ahead of it."""
        time = np.uint64(1000 * microseconds)
        self._functions["head_start"]((1,), (1,), (time,), stream=self.stream)
