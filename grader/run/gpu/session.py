"""One worker's GPU: its description, the session in which launches are timed and checked, and one
size there, with its buffers, what can be launched, and what is checked afterwards."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import cupy
import msgspec
from cupy.cuda import runtime

from grader import base
from grader.problems import (
    ArraysOnGpu,
    Launcher,
    OnGpu,
    Problem,
    check,
    describe_contents,
    fresh_key,
    look_into,
    shows_enough,
)
from grader.results import PartTime
from grader.run.gpu.calling import Caller
from grader.run.gpu.host_check import take
from grader.run.gpu.measure import MOST_STEPS, Choices, part_of, time_parts
from grader.run.gpu.memory import Arena, Buffer, Kernels, PlanMemory, cuda_driver
from grader.run.gpu.messages import Taken
from grader.run.gpu.plan_replay import Replay
from grader.run.gpu.watch import GpuWatch, Nvml
from grader.run.probe import first_gpu_uuid
from grader.run.protocol import CaseOutcome, PlannedCase
from grader.run.statistics import Clocked
from ptxsim.findings import Severity
from ptxsim.text import NOTHING, enumerated, phrase, verbatim


def describe(nvml: Nvml) -> base.GpuInfo:
    """The first GPU, as CUDA and NVML describe it. Makes no context."""
    device = cupy.cuda.Device()
    properties = runtime.getDeviceProperties(device.id)
    attributes = device.attributes
    name = properties["name"].decode(errors="replace")
    try:
        line = Path("/proc/driver/nvidia/version").read_text(errors="replace").splitlines()[0]
        driver = next((word for word in line.split() if word[0].isdigit()), line)
    except OSError:
        driver = str(runtime.driverGetVersion())
    # Two transfers a clock: the memory's rate is given in kHz, its bus in bits.
    dram = 2 * attributes["MemoryClockRate"] * 1e3 * attributes["GlobalMemoryBusWidth"] / 8 / 1e9
    return base.gpus.with_peaks(
        base.GpuInfo(
            name=name,
            uuid=first_gpu_uuid() or "",  # CuPy's ends at the first zero byte
            driver=driver,
            sm_clock_mhz=attributes["ClockRate"] // 1000,
            memory_bytes=int(properties["totalGlobalMem"]),
            compute_capability=f"{properties['major']}.{properties['minor']}",
            multiprocessors=attributes["MultiProcessorCount"],
            dram_gb_s=dram or None,  # of a slice perhaps the whole card's
        ),
        cores=nvml.cores(),
        shared_dram_gb_s=nvml.dram_gb_s(),
    )


_FLUSH_FACTOR = 2  # the flush buffer against the L2
# Submitting a launch takes the host tens of microseconds, more on a busy machine. If the GPU waited
# for it, the time would include the wait, and a small size would have two speeds.
_HEAD_START_US = 100.0


class LoadedAhead:
    """Modules that need no CUDA context, loaded while another process measures on the GPU."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        for module in problem.gpu_modules:
            import_module(module)
        self.nvml = Nvml(first_gpu_uuid())
        self.gpu = describe(self.nvml)
        device = cupy.cuda.Device()
        self.l2_bytes = int(device.attributes["L2CacheSize"])
        self.caller = Caller()


class GpuSession:
    """Made once per worker, in a process that has no CUDA context yet."""

    def __init__(self, loaded: LoadedAhead) -> None:
        problem = loaded.problem
        self.watch = GpuWatch(loaded.nvml)
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.kernels = Kernels(self.stream)
        self.gpu = loaded.gpu
        flushed = max(_FLUSH_FACTOR * loaded.l2_bytes, 1 << 20)
        self._flush = cupy.empty(flushed, dtype=cupy.uint8)
        self.problem = problem
        with self.stream:
            self.on_gpu: OnGpu = problem.on_gpu(self.kernels) or ArraysOnGpu(problem)
        self.choices = Choices(base.cache_folder() / "baselines", self.gpu, self.on_gpu.library)
        self.arena = Arena()
        self.caller = loaded.caller
        self._driver = cuda_driver()
        self.looked = False  # into wrong elements, which is done once
        self._events = (cupy.cuda.Event(), cupy.cuda.Event())
        self.watch.begin()

    def time(self, launch: Launcher) -> float:
        """Milliseconds of one launch with none of its data in the L2."""
        return self.clocked(launch).gpu_ms

    def clocked(self, launch: Launcher) -> Clocked:
        """The same, by the GPU's events and by the host's clock. The GPU is kept busy until the
        host has handed over the first launches, as it is when a program makes call after call
        without waiting."""
        began = self._begin()
        self.kernels.head_start(_HEAD_START_US)
        self._clear_l2()
        start, end = self._events
        start.record(self.stream)
        launch()
        end.record(self.stream)
        return self._ended(began)

    def charged(self, replay: Replay, *, waits: bool) -> Clocked:
        """One call with the host's part. waits: it waits for the GPU, so that the next call of a
        program finds the GPU idle; nothing that the host does is hidden then."""
        replay.prepare()
        start, end = self._events
        began = self._begin()
        if not waits:
            self.kernels.head_start(_HEAD_START_US)
        self._clear_l2()
        if waits:
            self.stream.synchronize()
        replay.call(start.ptr, end.ptr)
        taken = self._ended(began)
        replay.clean()
        return taken

    def _begin(self) -> float:
        """When the GPU was idle, by the host's clock."""
        self._driver.cuCtxResetPersistingL2Cache()  # fails harmlessly on old GPUs
        self.stream.synchronize()  # earlier work must not count in this launch's time
        return time.perf_counter()

    def _clear_l2(self) -> None:
        runtime.memsetAsync(self._flush.data.ptr, 0, self._flush.nbytes, self.stream.ptr)

    def _ended(self, began: float) -> Clocked:
        start, end = self._events
        end.synchronize()
        host_ms = 1e3 * (time.perf_counter() - began)
        return Clocked(gpu_ms=float(cupy.cuda.get_elapsed_time(start, end)), host_ms=host_ms)

    def mark(self) -> Any:
        """An event on the stream, after everything that was launched so far."""
        event = cupy.cuda.Event()
        event.record(self.stream)
        return event

    def elapsed(self, first: Any, last: Any) -> float:
        return float(cupy.cuda.get_elapsed_time(first, last))


# --- one size ----------------------------------------------------------------------------------

Keys = tuple[bytes, ...]  # of the inputs

# To tell the device's part of a call from the host's: as many repetitions, or as long.
_DEVICE_REPETITIONS, _DEVICE_MS = 5, 500.0
_LOOK_SECONDS = 3.0  # of the launches that say what wrong elements hold
# Operations, and elements of all operands, up to which the host looks for a cause.
_EXPLAINED, _EXAMINED = 10**8, 1 << 23


class MeasuredCase:
    """One size: its buffers, the submission's replay and the baselines."""

    def __init__(
        self, session: GpuSession, module: Any, planned: PlannedCase, memory: PlanMemory
    ) -> None:
        self.planned = planned
        self.size = planned.plan.size
        self._bench = session
        self._operands = session.problem.operands(self.size)
        self._given = memory.given(planned.plan)
        arrays = [b.array(o) for b, o in zip(self._given, self._operands, strict=True)]
        given = list(zip(self._operands, arrays, strict=True))[: planned.plan.inputs]
        # Of what a call changes in place, a copy of what it was given, and where that goes.
        self.inputs = [Buffer(o.bytes).array(o) if o.written else a for o, a in given]
        self._placed = [
            pair for pair in zip(arrays, self.inputs, strict=False) if pair[0] is not pair[1]
        ]
        targets = [each for each in self._operands if each.written]
        self.outputs = arrays[-len(targets) :]
        self._answers = [Buffer(each.bytes) for each in targets]
        self._reference = [b.array(o) for b, o in zip(self._answers, targets, strict=True)]
        self._replay = Replay(
            module, planned.plan, memory, session.kernels, session.stream, session.caller
        )
        self.launch: Launcher = self._replay.launch
        self._charged = planned.plan.host_calls > 0
        self._first_is_right = False  # a call before this one was, on other inputs
        self.first: list[Taken] = []  # of that call

    def fresh(self) -> Keys:
        """New inputs, poison everywhere else. Returns the keys of the inputs. The keys are drawn
        after all launched work has ended, so no kernel is left that could find them."""
        self._bench.stream.synchronize()
        keys = tuple(fresh_key() for _ in self.inputs)
        kernels = self._bench.kernels
        kernels.begin_call()
        for array, operand, key in zip(self.inputs, self._operands, keys, strict=False):
            kernels.fill(array, key, operand.values, operand.element)
        for place, contents in self._placed:
            place[...] = contents
        for buffer in self._given[len(self.inputs) :]:
            kernels.poison(buffer.words)
        self._replay.fresh()
        return keys

    def set_up(self) -> tuple[float, CaseOutcome | None]:
        """Run what a program's first call does, once, and check its product. Returns the
        milliseconds and, if something is wrong, what."""
        if not self.planned.plan.setup or self._first_is_right:
            return 0.0, None
        started = time.monotonic()
        keys = self.fresh()
        took = self._bench.time(self._replay.set_up)
        self.first.append(self.sample(keys))
        self.reference()
        outcome = self.check(keys, time.monotonic() - started)
        self._replay.remember()
        right = outcome.error is not None and not outcome.error.wrong and not outcome.findings
        self._first_is_right = right
        return took, None if right else outcome

    def timed(self, charged: bool) -> Clocked:
        """One repetition. charged: with what the host does, if it does anything."""
        if charged and self._charged:
            return self._bench.charged(self._replay, waits=self.planned.plan.waits)
        return self._bench.clocked(self.launch)

    def device_ms(self) -> float | None:
        """Measure the device's part of a call; None if a call has no other part."""
        if not self._charged:
            return None
        times: list[float] = []
        while len(times) < _DEVICE_REPETITIONS and sum(times) < _DEVICE_MS:
            self.fresh()
            times.append(self._bench.time(self._replay.launch))
        return statistics.median(times)

    def baselines(self, target: Sequence[Any]) -> Mapping[str, Launcher]:
        """The lab's ways to compute the result into ``target``, by name."""
        return self._bench.on_gpu.baselines(self.size, self.inputs, target)

    def reference(self) -> None:
        self._bench.on_gpu.refer(self.size, self.inputs, self._reference)

    def rivals(self, beat: Callable[[], None] = lambda: None) -> Mapping[str, Launcher]:
        """The fastest of the baselines that the lab admits, first, and the next one if it is close.
        ``beat`` is called after each launch."""
        found = self.baselines(self._reference)
        self.fresh()
        session = self._bench

        def milliseconds(launch: Launcher) -> float:
            taken = session.time(launch)
            beat()
            return taken

        names = session.choices.best(session.problem.key, self.size, found, milliseconds)
        return {name: found[name] for name in names}

    def refer_beside(self, baseline: Launcher, *, launched: bool) -> None:
        """The reference for the inputs of this repetition. launched: the baseline ran last on them,
        and may have left it."""
        if not self._bench.on_gpu.baselines_are_right:
            self.reference()
        elif not launched:
            baseline()

    def parts(self, beat: Callable[[], None]) -> tuple[PartTime, ...]:
        """How long each part of the call takes; ``beat`` is called after each repetition."""

        def repeat(launch: Launcher) -> None:
            self.fresh()
            self._bench.time(launch)
            beat()

        if len(self.planned.plan.operations) > MOST_STEPS:
            return ()
        steps = [(part_of(each), launch) for each, launch in self._replay.single_steps()]
        return time_parts(steps, repeat, self._bench.mark, self._bench.elapsed)

    def prove_reference(self) -> None:
        """Raises base.MachineError unless the reference is right, checked in another way."""
        excess = self._bench.on_gpu.prove(self.size, self.inputs, self._reference)
        if not (excess <= 1):
            words = phrase(
                "the reference itself is wrong at {size} ({excess:.3g} times what rounding "
                "explains): the GPU or its libraries are faulty"
            )
            raise base.MachineError(words.given(size=str(self.size), excess=excess))

    def sample(self, keys: Keys) -> Taken:
        """Elements of the outputs for the host to check. Call it right after the launch: no kernel
        of ours has run since, which the submission could have made to write the outputs."""
        return take(self._bench.problem, self.size, keys, self.outputs)

    def make_ready(self, keys: Keys) -> list[base.Finding]:
        """Find what the run overwrote of its inputs. Call it before a baseline runs on them.

        It reads the inputs and poisons where the baseline writes, as ``fresh`` does for the
        submission: so a baseline finds the same caches, page tables and multiprocessors as the
        submission did, and none that the submission prepared for it.
        """
        found = self._modified(keys)
        for buffer in self._answers:
            self._bench.kernels.poison(buffer.words)
        return found

    def check(
        self, keys: Keys, seconds: float, modified: Sequence[base.Finding] | None = None
    ) -> CaseOutcome:
        """Compare the outputs with the reference; look at canaries, and at inputs unless
        ``modified`` says already what was found there."""
        if modified is None:
            modified = self._modified(keys)
        findings = list(modified)
        if (index := self._replay.broken_canary()) is not None:
            name = self.planned.plan.allocations[index].name
            words = phrase("something was written just outside {name}", name=name)
            findings.append(base.Finding.at(None, base.Kind.CANARY, Severity.ERROR, words))
        stats = self._bench.on_gpu.compare(self.size, self.inputs, self.outputs, self._reference)
        message = base.wrong_elements(stats.wrong, math.prod(stats.shape))
        problem = self._bench.problem
        if stats.wrong and not modified and self._explainable():
            inputs, outputs = ([each.get() for each in e] for e in (self.inputs, self.outputs))
            plain, message = message, check(problem, self.size, inputs, outputs).message or message
            if message == plain and not self._bench.looked and shows_enough(problem, self.size):
                self._bench.looked = True
                found = look_into(problem, self.size, self._on_codes, _LOOK_SECONDS)
                self._put(inputs)  # the reference is of these, and is proved yet
                cause, strips = describe_contents(found, self.planned.plan)
                if cause:
                    message = phrase("{amount}: {cause}", amount=message, cause=cause)
                    stats = msgspec.structs.replace(stats, strips=strips)
        if self._first_is_right:
            message = phrase("the first call is right, a later one is not: {how}", how=message)
        return msgspec.structs.replace(
            self.planned.case,
            message=message if stats.wrong else NOTHING,
            seconds=seconds,
            error=stats,
            findings=tuple(findings),
        )

    def _explainable(self) -> bool:
        """Whether the host has the time for causes while the grader waits for the next message."""
        elements = sum(each.count for each in self._operands)
        return self._bench.problem.work(self.size) <= _EXPLAINED and elements <= _EXAMINED

    def _on_codes(self, inputs: Sequence[Any], _seconds: float) -> Sequence[Any]:
        """The outputs of one launch on other inputs."""
        self.fresh()
        self._put(inputs)
        self.launch()
        self._bench.stream.synchronize()
        return [each.get() for each in self.outputs]

    def _put(self, inputs: Sequence[Any]) -> None:
        for array, values in zip(self.inputs, inputs, strict=True):
            array.set(values)
        for place, contents in self._placed:
            place[...] = contents

    def _modified(self, keys: Keys) -> list[base.Finding]:
        operands = self._operands[: len(keys)]
        names = enumerated(verbatim(each.name) for each in operands)
        words = phrase(
            "{count} elements of {operand} were overwritten, the first at index "
            "{first}; {names} must not change"
        )
        own, found = (base.Kind.INPUT_MODIFIED, Severity.ERROR), []
        seen = self._bench.kernels.changed(operands, self.inputs, keys)
        for operand, (count, first) in zip(operands, seen, strict=True):
            if count:
                message = words.given(count=count, operand=operand.name, first=first, names=names)
                found.append(base.Finding.at(None, *own, message, count=count))
        return found
