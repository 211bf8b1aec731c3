"""A launch plan on a real GPU: launches, memsets and copies in one graph, and the canaries."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime
from cupy_backends.cuda.api import driver

from grader.backends.gpu.kernels import Kernels
from grader.backends.gpu.memory import PlanMemory
from grader.errors import MachineError, Rejected
from grader.model import Copy, Launch, Memset, Plan, PointerSlot, SymbolWrite, Verdict

_CANARY = 0x5AFEC0DE
_MAX_DYNAMIC_SHARED, _CARVEOUT = 8, 9  # CUfunction_attribute
_DEVICE_TO_DEVICE = 3
_PARAM_POINTER, _PARAM_SIZE, _PARAM_END = 1, 2, 0  # CU_LAUNCH_PARAM_*


class Replay:
    """One plan, ready to be launched again and again on ``stream``.

    ``memory`` outlives it. Raises Rejected(RE) if a launch needs more than the
    GPU has, and passes on CuPy's CUDA errors.
    """

    def __init__(
        self, module: Any, plan: Plan, memory: PlanMemory, kernels: Kernels, stream: Any
    ) -> None:
        self._module = module
        self._kernels = kernels
        self._stream = stream
        self._keep: list[Any] = []
        self._buffers = memory.buffers
        self._addresses = [
            self._symbol(allocation.name, 0, allocation.size) if buffer is None else buffer.address
            for allocation, buffer in zip(plan.allocations, memory.buffers, strict=True)
        ]
        self._allow_shared(plan)
        self._nodes = [self._node(operation) for operation in plan.operations]
        self._plan = plan
        for buffer in self._buffers:
            if buffer is not None:
                kernels.poison(buffer.before, _CANARY)
                kernels.poison(buffer.after, _CANARY)
        self._graph = self._captured() if len(self._nodes) > 1 else None

    def launch(self) -> None:
        """Run the whole plan, asynchronously."""
        if self._graph is not None:
            self._graph.launch(self._stream)
            return
        for node in self._nodes:
            node()

    def single_steps(self) -> list[tuple[object, Callable[[], None]]]:
        """The operations of ``launch`` one by one, in their order, each with what launches it."""
        return list(zip(self._plan.operations, self._nodes, strict=True))

    def poison_workspaces(self) -> None:
        for buffer in self._buffers[3:]:
            if buffer is not None:
                self._kernels.poison(buffer.words)

    def broken_canary(self) -> int | None:
        """Index of an allocation whose surroundings were written, if any."""
        for index, buffer in enumerate(self._buffers):
            if buffer is None:
                continue
            for edge in (buffer.before, buffer.after):
                if self._kernels.differs(edge, _CANARY)[0]:
                    return index
        return None

    # --- operations

    def _captured(self) -> Any:
        with self._stream:
            self._stream.begin_capture()
            for node in self._nodes:
                node()
            return self._stream.end_capture()

    def _node(self, operation: Launch | Memset | Copy | SymbolWrite) -> Callable[[], None]:
        stream = self._stream.ptr
        if isinstance(operation, Launch):
            return self._launch_node(operation)
        if isinstance(operation, Memset):
            at = self._addresses[operation.allocation] + operation.delta
            return lambda: runtime.memsetAsync(at, operation.value, operation.size, stream)
        if isinstance(operation, Copy):
            to = self._addresses[operation.target] + operation.target_delta
            source = self._addresses[operation.source] + operation.source_delta
        else:
            to = self._symbol(operation.symbol, operation.delta, len(operation.data))
            data = self._relocated(operation.data, operation.pointers)
            staged = cupy.asarray(np.frombuffer(data, np.uint8))
            self._keep.append(staged)
            source = int(staged.data.ptr)
        size = operation.size if isinstance(operation, Copy) else len(operation.data)
        return lambda: runtime.memcpyAsync(to, source, size, _DEVICE_TO_DEVICE, stream)

    def _launch_node(self, launch: Launch) -> Callable[[], None]:
        function = self._module.get_function(launch.kernel)
        block = self._relocated(launch.params, launch.pointers)
        parameters = (ctypes.c_uint8 * max(len(block), 1))(*block)
        size = ctypes.c_size_t(len(block))
        extra = (ctypes.c_void_p * 5)(
            _PARAM_POINTER,
            ctypes.addressof(parameters),
            _PARAM_SIZE,
            ctypes.addressof(size),
            _PARAM_END,
        )
        self._keep += [parameters, size, extra, function]
        address, stream = ctypes.addressof(extra), self._stream.ptr
        return lambda: driver.launchKernel(
            function.ptr, *launch.grid, *launch.block, launch.shared_bytes, stream, 0, address
        )

    def _relocated(self, data: bytes, pointers: Sequence[PointerSlot]) -> bytearray:
        """``data`` with relocated pointers to everything that is not at its recorded address:
        variables of the module, and buffers whose addresses the driver did not grant."""
        moved = bytearray(data)
        for slot in pointers:
            address = self._addresses[slot.allocation] + slot.delta
            moved[slot.offset : slot.offset + 8] = address.to_bytes(8, "little")
        return moved

    def _allow_shared(self, plan: Plan) -> None:
        """Raise every kernel's limit on dynamic shared memory to that of its largest launch."""
        by_kernel: dict[str, list[Launch]] = {}
        for operation in plan.operations:
            if isinstance(operation, Launch):
                by_kernel.setdefault(operation.kernel, []).append(operation)
        for name, own in sorted(by_kernel.items()):
            function = self._module.get_function(name)
            for attribute, value in (
                (_MAX_DYNAMIC_SHARED, max(launch.shared_bytes for launch in own)),
                (_CARVEOUT, own[-1].carveout),
            ):
                status = _driver().cuFuncSetAttribute(
                    ctypes.c_void_p(function.ptr), ctypes.c_int(attribute), ctypes.c_int(value)
                )
                if status:
                    raise Rejected(Verdict.RE, _refusal(name, attribute, value))

    def _symbol(self, name: str, start: int, size: int) -> int:
        """Address of byte ``start`` of a module variable that has ``size`` bytes from there on."""
        address, room = ctypes.c_uint64(), ctypes.c_size_t()
        status = _driver().cuModuleGetGlobal_v2(
            ctypes.byref(address),
            ctypes.byref(room),
            ctypes.c_void_p(self._module.ptr),
            name.encode(),
        )
        if status or not 0 <= start <= room.value or size > room.value - start:
            raise MachineError(f"{name} has no {size} bytes at {start}")
        return address.value + start


def _refusal(kernel: str, attribute: int, value: int) -> str:
    """The limit that the driver enforces, in terms of the student's request."""
    if attribute == _MAX_DYNAMIC_SHARED:
        most = int(cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"])
        return (
            f"{kernel} asks for {value} bytes of dynamic shared memory; "
            f"a block has at most {most} on this GPU, static ones included"
        )
    return f"{kernel}: this GPU takes no shared-memory carve-out of {value} %"


def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def load_module(cubin: bytes) -> Any:
    """Load the submission's device code, without any of its host code."""
    module = cupy.cuda.function.Module()
    module.load(cubin)
    return module
