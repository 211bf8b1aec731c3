"""One worker's GPU: its description, and the session in which launches are timed and checked."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import Any

import cupy
from cupy.cuda import runtime

from grader.base import GpuInfo, cache_folder, with_peaks
from grader.problems import ArraysOnGpu, Launch, OnGpu, Problem
from grader.run.gpu.calling import Caller
from grader.run.gpu.measure import Choices
from grader.run.gpu.memory import Arena, Kernels, cuda_driver
from grader.run.gpu.plan_replay import Replay
from grader.run.gpu.watch import GpuWatch, Nvml
from grader.run.probe import first_gpu_uuid
from grader.run.statistics import Clocked


def describe(nvml: Nvml) -> GpuInfo:
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
    return with_peaks(
        GpuInfo(
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


# --- bench -------------------------------------------------------------------------------------

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
        self.choices = Choices(cache_folder() / "baselines", self.gpu, self.on_gpu.library)
        self.arena = Arena()
        self.caller = loaded.caller
        self._driver = cuda_driver()
        self._events = (cupy.cuda.Event(), cupy.cuda.Event())
        self.watch.begin()

    def time(self, launch: Launch) -> float:
        """Milliseconds of one launch with none of its data in the L2."""
        return self.clocked(launch).gpu_ms

    def clocked(self, launch: Launch) -> Clocked:
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
        """Milliseconds between two events that have happened."""
        return float(cupy.cuda.get_elapsed_time(first, last))
