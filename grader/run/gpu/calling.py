"""Calls made step by step from C++ (calling.cpp), so that the host's part costs what it costs a
program that calls the CUDA runtime itself.

Nothing here imports CuPy: functions, streams and events are the driver's handles as integers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

from grader.base import MachineError, Native
from ptxsim import ENGINE, MAGIC
from ptxsim import plan as records

CALLING = Native(
    name="calling",
    sources=(Path(__file__).with_name("calling.cpp"),),
    shared=True,
    flags=("-O2", f"-I{ENGINE}", "-ldl"),
)
_DRIVER = "libcuda.so.1"
_OUT_OF_MEMORY = 2  # CUresult


StepKind = IntEnum(
    "StepKind", ("LAUNCH", "MEMSET", "COPY", "WRITE", "ALLOCATE", "FREE", "SYNCHRONISE"), start=0
)


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


class CallStep(ctypes.Structure):
    """One step of a call: Step in calling.cpp, which says what its fields mean."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("kind", "function", "shared_bytes")),
        *((name, ctypes.c_uint64 * 3) for name in ("grid", "block", "cluster")),
        *(("data", ctypes.POINTER(ctypes.c_char)), ("size", ctypes.c_uint64)),
        *(("arguments", ctypes.POINTER(ctypes.c_uint64)), ("argument_count", ctypes.c_uint64)),
        *(("patches", ctypes.POINTER(_Patch)), ("patch_count", ctypes.c_uint64)),
        *((name, ctypes.c_int64) for name in ("target_delta", "source_delta")),
        *((name, ctypes.c_uint64) for name in ("target", "source", "rows", "source_pitch")),
        *((name, ctypes.c_uint64) for name in ("target_pitch", "value", "flag", "programmatic")),
        ("maps", ctypes.c_uint64),
    )

    def __init__(
        self,
        kind: StepKind,
        data: bytes = b"",
        pointers: Sequence[records.PointerSlot] = (),
        arguments: Sequence[int] = (),
        **numbers: Any,
    ) -> None:
        """pointers: in data. numbers: other fields by name; one that does not matter is 0."""
        patches = (_Patch(slot.offset, slot.allocation, slot.delta) for slot in pointers)
        super().__init__(
            **{"kind": kind, "size": len(data), **numbers},
            data=ctypes.create_string_buffer(data, len(data)),
            arguments=(ctypes.c_uint64 * len(arguments))(*arguments),
            argument_count=len(arguments),
            patches=(_Patch * len(pointers))(*patches),
            patch_count=len(pointers),
            maps=MAGIC in data,
        )


_NUMBERS = {name for name, *_ in CallStep._fields_} - {"data", "arguments", "patches"}


class Caller:
    """The compiled helper. Raises ToolchainError or MachineError when it cannot be had."""

    def __init__(self, driver: str = _DRIVER) -> None:
        self._library = ctypes.CDLL(str(CALLING.compiled()))
        self._library.calling_step_bytes.restype = ctypes.c_size_t
        self._library.calling_patch_bytes.restype = ctypes.c_size_t
        sizes = self._library.calling_step_bytes(), self._library.calling_patch_bytes()
        assert sizes == (ctypes.sizeof(CallStep), ctypes.sizeof(_Patch))
        if not self._library.calling_open(driver.encode()):
            raise MachineError.saying(
                "{driver} is missing, or too old: update the GPU's driver", driver=driver
            )

    def call(self, steps: Sequence[CallStep], addresses: Sequence[int], stream: int) -> DriverCall:
        """``steps`` made ready; ``addresses`` are those of the plan's allocations."""
        return DriverCall(self._library, steps, addresses, stream)


class DriverCall:
    """The steps of one call, to be made again and again."""

    def __init__(
        self, library: ctypes.CDLL, steps: Sequence[CallStep], addresses: Sequence[int], stream: int
    ) -> None:
        self._library = library
        self._steps = (CallStep * len(steps))(*steps)  # which keeps what they point to
        self._addresses = (ctypes.c_uint64 * len(addresses))(*addresses)
        self._stream = ctypes.c_void_p(stream)

    def run(self, start: int = 0, end: int = 0) -> None:
        """Make the call, asynchronously where it does not wait itself; ``start`` and ``end`` are
        events to record, 0 for none. Raises MemoryError and StepError."""
        done = ctypes.c_size_t()
        _check(
            self._library.calling_run(
                self._steps,
                ctypes.c_size_t(len(self._steps)),
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

HOST = (records.Allocate, records.Free, records.Synchronise)  # work of the host alone


def steps_of(
    plan: records.Plan,
    operations: Sequence[records.Operation],
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

    def step(operation: records.Operation) -> CallStep:
        same = {n: getattr(operation, n) for n in operation.__struct_fields__ if n in _NUMBERS}
        match operation:
            case records.Launch(params=data, pointers=pointers, arguments=arguments):
                same |= {"function": function(operation.kernel), "flag": operation.cooperative}
                return CallStep(StepKind.LAUNCH, data, pointers, arguments, **same)
            case records.Memset(allocation=target, delta=delta):
                return CallStep(StepKind.MEMSET, target=target, target_delta=delta, **same)
            case records.Copy():
                return CallStep(StepKind.COPY, **same)
            case records.SymbolWrite(delta=delta) | records.Write(delta=delta):
                if isinstance(operation, records.Write):
                    same["target"] = operation.allocation
                else:
                    same["target"] = places[operation.symbol]
                same |= {"target_delta": delta, "flag": host and operation.blocking}
                return CallStep(StepKind.WRITE, operation.data, operation.pointers, **same)
            case records.Allocate(allocation=target, ordered=ordered):
                size = plan.allocations[target].size
                return CallStep(StepKind.ALLOCATE, target=target, size=size, flag=ordered)
            case records.Free(allocation=target, ordered=ordered):
                return CallStep(StepKind.FREE, target=target, flag=ordered)
            case records.Synchronise():
                return CallStep(StepKind.SYNCHRONISE)

    steps = [step(each) for each in operations if host or not isinstance(each, HOST)]
    for first in steps[:1]:
        first.programmatic = False
    return steps
