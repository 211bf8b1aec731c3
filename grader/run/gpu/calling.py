"""Calls made step by step from C++ (calling.cpp), so that the host's part costs what it costs a
program that calls the CUDA runtime itself.

Nothing here imports CuPy: functions, streams and events are the driver's handles as integers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path

import msgspec

from grader.base import MachineError, Native
from ptxsim.message import phrase
from ptxsim.records import (
    Allocate,
    Copy,
    Free,
    Launch,
    Memset,
    Operation,
    Plan,
    PointerSlot,
    Record,
    SymbolWrite,
    Synchronise,
    Write,
)
from ptxsim.tensor_maps import ENGINE_HEADERS, MAGIC

CALLING = Native(
    name="calling",
    sources=(Path(__file__).with_name("calling.cpp"),),
    shared=True,
    flags=("-O2", f"-I{ENGINE_HEADERS}", "-ldl"),
)
_DRIVER = "libcuda.so.1"
_OUT_OF_MEMORY = 2  # CUresult


class StepKind(IntEnum):
    LAUNCH = 0
    MEMSET = 1
    COPY = 2
    WRITE = 3
    ALLOCATE = 4
    FREE = 5
    SYNCHRONISE = 6


class CallStep(Record):
    """One step of a call. Allocations are indices into the table of addresses."""

    kind: StepKind
    function: int = 0  # CUfunction
    grid: tuple[int, int, int] = (0, 0, 0)
    block: tuple[int, int, int] = (0, 0, 0)
    shared: int = 0
    data: bytes = b""  # of a launch: its parameters; of a write: what is written
    arguments: tuple[int, ...] = ()  # of a launch: where each parameter begins in data
    pointers: tuple[PointerSlot, ...] = ()  # in data
    size: int = 0  # bytes that are filled, copied or allocated
    target: int = 0
    target_delta: int = 0
    source: int = 0
    source_delta: int = 0
    rows: int = 1  # that are copied, each of size bytes
    source_pitch: int = 0  # bytes from the start of one row to the next
    target_pitch: int = 0
    value: int = 0
    # Ordered in the stream; of a launch: cooperative; of a write: the host waits first.
    flag: bool = False
    # Of a launch: it may begin before the one before it has ended.
    programmatic: bool = False
    cluster: tuple[int, int, int] = (1, 1, 1)  # blocks, of a launch


class StepError(Exception):
    """A call of the driver returned ``status``, a CUresult."""

    def __init__(self, status: int) -> None:
        super().__init__(f"CUDA error {status}")
        self.status = status


class _Patch(ctypes.Structure):
    _fields_ = (
        ("offset", ctypes.c_uint64),
        ("allocation", ctypes.c_uint64),
        ("delta", ctypes.c_int64),
    )


class _PackedStep(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_uint64),
        ("function", ctypes.c_uint64),
        ("grid", ctypes.c_uint64 * 3),
        ("block", ctypes.c_uint64 * 3),
        ("shared", ctypes.c_uint64),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_uint64),
        ("arguments", ctypes.POINTER(ctypes.c_uint64)),
        ("argument_count", ctypes.c_uint64),
        ("patches", ctypes.POINTER(_Patch)),
        ("patch_count", ctypes.c_uint64),
        ("target", ctypes.c_uint64),
        ("source", ctypes.c_uint64),
        ("target_delta", ctypes.c_int64),
        ("source_delta", ctypes.c_int64),
        ("rows", ctypes.c_uint64),
        ("source_pitch", ctypes.c_uint64),
        ("target_pitch", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
        ("flag", ctypes.c_uint64),
        ("programmatic", ctypes.c_uint64),
        ("cluster", ctypes.c_uint64 * 3),
        ("maps", ctypes.c_uint64),
    )


# Fields that both kinds of step have in the same form.
_SAME = {*CallStep.__struct_fields__} - {"data", "arguments", "pointers", "size"}


class Caller:
    """The compiled helper. Raises ToolchainError or MachineError when it cannot be had."""

    def __init__(self, driver: str = _DRIVER) -> None:
        self._library = ctypes.CDLL(str(CALLING.compiled()))
        self._library.calling_step_bytes.restype = ctypes.c_size_t
        self._library.calling_patch_bytes.restype = ctypes.c_size_t
        sizes = self._library.calling_step_bytes(), self._library.calling_patch_bytes()
        assert sizes == (ctypes.sizeof(_PackedStep), ctypes.sizeof(_Patch))
        if not self._library.calling_open(driver.encode()):
            raise MachineError(
                phrase("{driver} is missing, or too old: update the GPU's driver", driver=driver)
            )

    def call(self, steps: Sequence[CallStep], addresses: Sequence[int], stream: int) -> DriverCall:
        """``steps`` made ready; ``addresses`` are those of the plan's allocations."""
        return DriverCall(self._library, steps, addresses, stream)


class DriverCall:
    """The steps of one call, to be made again and again."""

    def __init__(
        self,
        library: ctypes.CDLL,
        steps: Sequence[CallStep],
        addresses: Sequence[int],
        stream: int,
    ) -> None:
        self._library = library
        self._keep: list[object] = []
        self._count = len(steps)
        self._steps = (_PackedStep * max(self._count, 1))(*map(self._packed, steps))
        self._addresses = (ctypes.c_uint64 * max(len(addresses), 1))(*addresses)
        self._stream = ctypes.c_void_p(stream)

    def _packed(self, step: CallStep) -> _PackedStep:
        data = ctypes.create_string_buffer(step.data, max(len(step.data), 1))
        patches = (_Patch * max(len(step.pointers), 1))(
            *(_Patch(slot.offset, slot.allocation, slot.delta) for slot in step.pointers)
        )
        arguments = (ctypes.c_uint64 * max(len(step.arguments), 1))(*step.arguments)
        self._keep += [data, patches, arguments]
        return _PackedStep(
            **{name: getattr(step, name) for name in _SAME},
            data=ctypes.addressof(data),
            bytes=len(step.data) if step.data else step.size,
            arguments=arguments,
            argument_count=len(step.arguments),
            patches=patches,
            patch_count=len(step.pointers),
            maps=MAGIC in step.data,
        )

    def run(self, start: int = 0, end: int = 0) -> None:
        """Make the call, asynchronously where it does not wait itself; ``start`` and ``end`` are
        events to record, 0 for none. Raises MemoryError and StepError."""
        done = ctypes.c_size_t()
        _check(
            self._library.calling_run(
                self._steps,
                ctypes.c_size_t(self._count),
                self._addresses,
                self._stream,
                ctypes.c_void_p(start),
                ctypes.c_void_p(end),
                ctypes.byref(done),
            )
        )

    def allocate(self, allocation: int, size: int) -> int:
        """Memory for ``allocation`` before the call is made; its address."""
        address = ctypes.c_uint64()
        _check(self._library.calling_allocate(ctypes.byref(address), ctypes.c_size_t(size)))
        self._addresses[allocation] = address.value
        return address.value

    def free(self, allocation: int) -> None:
        """Free ``allocation``, if it is there."""
        address, self._addresses[allocation] = self._addresses[allocation], 0
        if address:
            _check(self._library.calling_free(ctypes.c_uint64(address)))


def _check(status: int) -> None:
    if status == _OUT_OF_MEMORY:
        raise MemoryError
    if status:
        raise StepError(status)


# --- a plan's operations as steps ---------------------------------------------------------------

HOST = (Allocate, Free, Synchronise)  # work of the host alone


def steps_of(
    plan: Plan,
    operations: Sequence[Operation],
    places: Mapping[str, int],
    function: Callable[[str], int],
    *,
    host: bool,
) -> list[CallStep]:
    """The steps of ``operations``, which belong to ``plan``.

    places: of variables, in the table of addresses. function: the handle of a kernel. host: with
    what only the host does; without it every allocation is expected to be there. The first of them
    never begins before what the judge launched has ended.
    """
    steps = [
        _step(plan, operation, places, function, host)
        for operation in operations
        if host or not isinstance(operation, HOST)
    ]
    return [msgspec.structs.replace(step, programmatic=False) for step in steps[:1]] + steps[1:]


def _step(
    plan: Plan,
    operation: Operation,
    places: Mapping[str, int],
    function: Callable[[str], int],
    host: bool,
) -> CallStep:
    match operation:
        case Launch():
            return CallStep(
                kind=StepKind.LAUNCH,
                function=function(operation.kernel),
                grid=operation.grid,
                block=operation.block,
                shared=operation.shared_bytes,
                data=operation.params,
                arguments=operation.arguments,
                pointers=operation.pointers,
                flag=operation.cooperative,
                programmatic=operation.programmatic,
                cluster=operation.cluster,
            )
        case Memset():
            return CallStep(
                kind=StepKind.MEMSET,
                target=operation.allocation,
                target_delta=operation.delta,
                value=operation.value,
                size=operation.size,
            )
        case Copy():
            return CallStep(
                kind=StepKind.COPY,
                target=operation.target,
                target_delta=operation.target_delta,
                source=operation.source,
                source_delta=operation.source_delta,
                size=operation.size,
                rows=operation.rows,
                source_pitch=operation.source_pitch,
                target_pitch=operation.target_pitch,
            )
        case SymbolWrite() | Write():
            return CallStep(
                kind=StepKind.WRITE,
                target=operation.allocation
                if isinstance(operation, Write)
                else places[operation.symbol],
                target_delta=operation.delta,
                data=operation.data,
                pointers=operation.pointers,
                flag=host and operation.blocking,
            )
        case Allocate():
            return CallStep(
                kind=StepKind.ALLOCATE,
                target=operation.allocation,
                size=plan.allocations[operation.allocation].size,
                flag=operation.ordered,
            )
        case Free():
            return CallStep(kind=StepKind.FREE, target=operation.allocation, flag=operation.ordered)
        case Synchronise():
            return CallStep(kind=StepKind.SYNCHRONISE)
