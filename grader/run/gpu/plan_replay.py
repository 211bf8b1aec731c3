"""A launch plan on a real GPU: its set-up once, its call again and again, and the canaries.

``python -m grader.run.gpu.plan_replay JOB`` replays each plan of a job once, under a profiler. It
starts no other process, and verifies nothing. Apart from the submission's kernels, only ours run,
which fill the inputs, and the baseline's if the job asks for one.

A call is launched plainly, as a program does it and as the baseline beside it is. There are two
ways to make it. ``launch`` gives every allocation memory of ours with canaries around it, which
stays where it is: what the device does, without the host's part. ``call`` also allocates, frees and
waits as the program does, where and when it does.
"""

from __future__ import annotations

import ctypes
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import cupy
import msgspec
from cupy.cuda import runtime
from cupy_backends.cuda.api import driver

from grader.base import MachineError, Rejected, Verdict, decode
from grader.problems import ArraysOnGpu, Launcher, fresh_key, load_problem
from grader.run.gpu.calling import HOST, Caller, DriverCall, StepError, steps_of
from grader.run.gpu.memory import Arena, Kernels, PlanMemory, cuda_driver
from grader.run.gpu.messages import Watching, chosen_by
from ptxsim.plan import Allocate, Launch, Operation, Plan, SymbolWrite
from ptxsim.text import phrase, verbatim

_CANARY = 0x5AFEC0DE
_MAX_DYNAMIC_SHARED, _CARVEOUT, _LARGE_CLUSTERS = 8, 9, 14  # CUfunction_attribute
_STACK_SIZE = 0  # CUlimit
_DEFAULT_STACK = 1024  # bytes


class Replay:
    """One plan, ready to be launched on ``stream``; ``set_up`` first. ``memory`` outlives it.
    Raises Rejected(RE) if a launch needs more than the GPU has, and CuPy's CUDA errors."""

    def __init__(
        self,
        module: Any,
        plan: Plan,
        memory: PlanMemory,
        kernels: Kernels,
        stream: Any,
        caller: Caller,
    ) -> None:
        self._plan, self._module, self._kernels, self._stream = plan, module, kernels, stream
        self._buffers = memory.buffers
        self._extents = dict(self._variables())
        # Variables that the host writes or that live on follow the allocations in the table.
        self._places = {name: len(plan.allocations) + i for i, name in enumerate(self._extents)}
        addresses = [
            self._extents[allocation.name][0] if buffer is None else buffer.address
            for allocation, buffer in zip(plan.allocations, memory.buffers, strict=True)
        ]
        addresses += [address for address, _ in self._extents.values()]
        self._allow_shared()
        self._caller, self._addresses = caller, addresses
        self._setup = self._call(plan.setup, host=False)
        self._launch = self._call(plan.operations, host=False)
        self._real = self._call(plan.operations, host=True)
        for buffer in self._buffers:
            if buffer is not None:
                kernels.poison(buffer.before, _CANARY)
                kernels.poison(buffer.after, _CANARY)
        for buffer in self._buffers[plan.given :]:
            if buffer is not None:
                kernels.poison(buffer.words)
        self._company = list(self._held_beside())
        self._left: list[tuple[Any, Any]] = []  # what the set-up left, and where, if it is put back

    def set_up(self) -> None:
        """Run the set-up; what it leaves stays. Asynchronous."""
        _run(self._setup)

    def remember(self) -> None:
        """If the calls of the program differ, keep what the set-up left: each launch finds that."""
        if self._plan.calls_differ:
            self._left = [(place, place.copy()) for place in self._lasting()]

    def fresh(self) -> None:
        """Poison what a call allocates itself, and put back what is to be put back."""
        for index in sorted(self._plan.own):
            buffer = self._buffers[index]
            assert buffer
            self._kernels.poison(buffer.words)
        for place, contents in self._left:
            place[...] = contents

    def launch(self) -> None:
        """One call, the device's part of it, asynchronously."""
        _run(self._launch)

    def single_steps(self) -> list[tuple[Operation, Callable[[], None]]]:
        """The operations of ``launch`` one by one, in their order, each with what launches it."""
        steps = [o for o in self._plan.operations if not isinstance(o, HOST)]
        return [(o, partial(_run, self._call([o], host=False))) for o in steps]

    def prepare(self) -> None:
        """Before ``call``: memory that it frees and did not allocate itself is there, and memory
        that it may get is poisoned."""

        def allocated(index: int) -> Any:
            """Words of memory for an allocation; None where it has not one."""
            size = self._plan.allocations[index].size
            address = self._real.allocate(index, size)
            return _bytes_at(address, size // 4 * 4).view(cupy.uint32) if size >= 4 else None

        for index in sorted(self._plan.own):
            if (words := allocated(index)) is not None:
                self._kernels.poison(words)
        self._stream.synchronize()
        for index in sorted(self._plan.own):
            self._real.free(index)
        for index in sorted(self._plan.freed):
            buffer = self._buffers[index]
            assert buffer
            if (words := allocated(index)) is not None:
                words[...] = buffer.words[: words.size]
        self._stream.synchronize()

    def call(self, start: int, end: int) -> None:
        """One call with the host's part, between two events."""
        _run(self._real, start, end)

    def clean(self) -> None:
        """After ``call`` has ended: free what it left allocated."""
        for index in sorted(self._plan.own | self._plan.freed):
            self._real.free(index)

    def broken_canary(self) -> int | None:
        """Index of an allocation whose surroundings were written, if any."""
        for index, buffer in enumerate(self._buffers):
            for edge in (buffer.before, buffer.after) if buffer else ():
                if self._kernels.differs(edge, _CANARY):
                    return index
        return None

    # --- memory

    def _held_beside(self) -> Iterator[Any]:
        """Memory of the sizes that the program holds when it calls cudaMalloc; never used. The
        driver carves small allocations out of larger ones, so what a program holds decides what its
        next cudaMalloc costs. Our own buffers are made in another way."""
        if any(isinstance(o, Allocate) and not o.ordered for o in self._plan.operations):
            for index, allocation in enumerate(self._plan.allocations):
                if allocation.symbol is None and index not in self._plan.own:
                    yield cupy.cuda.Memory(allocation.size)

    def _lasting(self) -> Iterator[Any]:
        """Memory whose contents live on from call to call."""
        for index, buffer in enumerate(self._buffers):
            if buffer is not None and index >= self._plan.given and index not in self._plan.own:
                yield buffer.words
        for name in self._plan.variables:
            address, size = self._extents[name]
            if size:
                yield _bytes_at(address, size)

    def _variables(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Address and size of every variable that the plan names."""
        sizes = dict.fromkeys(self._plan.variables, 0)
        for allocation in self._plan.allocations:
            if allocation.symbol is not None:
                sizes[allocation.name] = allocation.size
        for operation in (*self._plan.setup, *self._plan.operations):
            if isinstance(operation, SymbolWrite):
                end = operation.delta + len(operation.data)
                sizes[operation.symbol] = max(end, sizes.get(operation.symbol, 0))
        for name, least in sizes.items():
            at, size, module = ctypes.c_uint64(), ctypes.c_size_t(), self._module.ptr
            status = cuda_driver().cuModuleGetGlobal_v2(
                ctypes.byref(at), ctypes.byref(size), ctypes.c_void_p(module), name.encode()
            )
            # Nothing in the machine code uses a variable that the compiler dropped.
            address, room = (0, 0) if status else (at.value, size.value)
            if not 0 <= least <= room:
                raise MachineError(f"{name} has no {least} bytes")
            yield name, (address, room)

    # --- operations

    def _call(self, operations: Sequence[Operation], host: bool) -> DriverCall:
        """host: with what only the host does; else every allocation lies in our memory."""

        def function(kernel: str) -> int:
            return int(self._module.get_function(kernel).ptr)

        steps = steps_of(self._plan, operations, self._places, function, host=host)
        table = list(self._addresses)
        for index in self._plan.own | self._plan.freed if host else ():
            table[index] = 0
        return self._caller.call(steps, table, self._stream.ptr)

    def _allow_shared(self) -> None:
        """Raise the stack, and every kernel's limit on dynamic shared memory, to the largest
        launch's."""
        by_kernel: defaultdict[str, list[Launch]] = defaultdict(list)
        stack = 0
        for operation in (*self._plan.setup, *self._plan.operations):
            if isinstance(operation, Launch):
                by_kernel[operation.kernel].append(operation)
                stack = max(stack, operation.stack_bytes)
        if stack > _DEFAULT_STACK:
            status = cuda_driver().cuCtxSetLimit(ctypes.c_int(_STACK_SIZE), ctypes.c_size_t(stack))
            if status:
                words = phrase("this GPU takes no stack of {stack} bytes per thread", stack=stack)
                raise Rejected(Verdict.RE, words)

        def set_attribute(function: Any, attribute: int, value: int) -> int:
            handle, words = ctypes.c_void_p(function.ptr), map(ctypes.c_int, (attribute, value))
            return int(cuda_driver().cuFuncSetAttribute(handle, *words))

        for name, own in sorted(by_kernel.items()):
            function = self._module.get_function(name)
            for attribute, value in (
                (_MAX_DYNAMIC_SHARED, max(launch.shared_bytes for launch in own)),
                (_CARVEOUT, own[-1].carveout),
            ):
                status = set_attribute(function, attribute, value)
                if status and attribute == _CARVEOUT:
                    how = f"{name}: this GPU takes no shared-memory carve-out of {value} %"
                    raise Rejected(Verdict.RE, verbatim(how))
                if status:
                    most = int(cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"])
                    how = (
                        f"{name} asks for {value} bytes of dynamic shared memory; "
                        f"a block has at most {most} on this GPU, static ones included"
                    )
                    raise Rejected(Verdict.RE, verbatim(how))
            # The recorder has checked sizes of clusters. GPUs without clusters refuse this.
            set_attribute(function, _LARGE_CLUSTERS, 1)


def _run(call: DriverCall, start: int = 0, end: int = 0) -> None:
    try:
        call.run(start, end)
    except StepError as failure:
        raise driver.CUDADriverError(failure.status) from None


def _bytes_at(address: int, size: int) -> Any:
    """Device memory that is not ours as an array."""
    memory = cupy.cuda.UnownedMemory(address, size, None, cupy.cuda.Device().id)
    return cupy.ndarray(size, cupy.uint8, cupy.cuda.MemoryPointer(memory, 0))


def load_module(cubin: bytes) -> Any:
    """Load the submission's device code, without any of its host code."""
    module = cupy.cuda.function.Module()
    module.load(cubin)
    return module


# --- once, under a profiler ----------------------------------------------------------------------

_TRIALS = 4  # of each baseline


def main() -> None:
    """JOB is a file that holds a JSON list of ``Watching``."""
    jobs = decode(Path(sys.argv[1]).read_bytes(), list[Watching])
    stream = cupy.cuda.Stream(non_blocking=True)
    kernels, arena, caller = Kernels(stream), Arena(), Caller()
    chosen: list[str] = []  # the baselines, in the order of the jobs that ask for one
    with stream:
        for job in jobs:
            with arena.memory(job.plan) as memory:
                problem = load_problem(job.problem)
                pairs = zip(problem.operands(job.plan.size), memory.given(job.plan), strict=True)
                arrays = [(operand, buffer.array(operand)) for operand, buffer in pairs]
                for operand, array in arrays:
                    if operand.given:
                        kernels.fill(array, fresh_key(), operand.values, operand.element)
                module = load_module(Path(job.cubin).read_bytes())
                replay = Replay(module, job.plan, memory, kernels, stream, caller)
                replay.set_up()
                replay.fresh()
                stream.synchronize()
                runtime.profilerStart()  # of the calls that are timed
                replay.launch()
                stream.synchronize()
                runtime.profilerStop()
                if job.baseline:
                    on_gpu = problem.on_gpu(kernels) or ArraysOnGpu(problem)
                    inputs = [array for operand, array in arrays if operand.given]
                    targets = [array for operand, array in arrays if operand.written]
                    launches = on_gpu.baselines(job.plan.size, inputs, targets)
                    chosen.append(_run_fastest(launches, stream))
        chosen_by(Path(sys.argv[1])).write_bytes(msgspec.json.encode(chosen))


def _run_fastest(launches: Mapping[str, Launcher], stream: Any) -> str:
    """Run the fastest baseline on the call's own inputs, and tell its name."""

    def trial(name: str) -> float:
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record(stream)
        launches[name]()
        end.record(stream)
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, end))

    fastest = min(launches, key=lambda name: min(trial(name) for _ in range(_TRIALS)))
    runtime.profilerStart()
    launches[fastest]()
    stream.synchronize()
    runtime.profilerStop()
    return fastest


if __name__ == "__main__":
    main()
