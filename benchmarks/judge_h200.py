"""What the GPU judge promises, measured: `python -m benchmarks.judge_h200` on a GPU machine.

cuBLAS judged as if it were a submission; replay beside native launches and beside nvbench; two
kernels one per cent apart; ten grades of one kernel; where the time of a whole grade goes.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import date
from pathlib import Path

import cupy

from benchmarks.tools import cubes, on_gpu
from grader.backends.gpu.bench import LoadedAhead, SharedBench
from grader.backends.gpu.gpu_messages import GpuJob
from grader.backends.gpu.measure import time_case
from grader.backends.gpu.measured_case import MeasuredCase
from grader.backends.gpu.plan_replay import load_module
from grader.backends.protocol import PlannedCase
from grader.grading.pipeline import Bench, grade
from grader.judging import scoring
from grader.model import Build, Result, Timing, size_text
from grader.problems.gemm.gemm import Gemm
from grader.toolchain.discovery import Toolchain

ALICE = Path(__file__).parents[1] / "submissions" / "alice"
SIZES = (512, 1024, 2048, 3072, 4096, 8192)
APART_AT = 4096
_DELAY = """\
__global__ void delay(long long cycles) {
  const long long end = clock64() + cycles;
  while (clock64() < end) {
  }
}

template <>
void run_custom"""


class Kernel:
    """A submission, built and recorded at some sizes; loaded once there is a context."""

    def __init__(self, folder: Path, tools: Bench, sizes: tuple[int, ...]) -> None:
        assert tools.gpu_arch
        ready = cubes(folder, sizes, tools, tools.gpu_arch)
        self.built: Build = ready.built
        self._memory = ExitStack()  # to the end of the process
        self.plans = {plan.size["m"]: plan for plan in ready.plans}

    def case(self, bench: SharedBench, n: int) -> MeasuredCase:
        """The first case of the process lies at the recorder's addresses, others in the pool."""
        module = load_module(self.built.cubin.read_bytes())
        planned = PlannedCase(id="case", plan=self.plans[n])
        memory = self._memory.enter_context(bench.arena.memory(planned.plan))
        case = MeasuredCase(bench, module, planned, memory)
        _, wrong = case.set_up()
        assert wrong is None, wrong
        return case


def measured(bench: SharedBench, case: MeasuredCase, seconds: float) -> Timing:
    job = GpuJob(
        cubin="",
        cases=(),
        runs=3,
        run_seconds=seconds,
    )
    timing = time_case(bench, case, job, lambda: None).outcome.timing
    assert timing is not None
    return timing


def shown(timing: Timing) -> str:
    low, high = timing.ratio_ci
    return (
        f"{timing.ratio:.4f} ± {(high - low) / 2:.4f} ({timing.samples} samples, noise "
        f"{100 * timing.noise:.2f} %, {timing.stopped}, {timing.scored_speed:.2f} TFLOPS)"
    )


# --- whole grades -----------------------------------------------------------------------------


def whole_grades(tools: Bench, count: int) -> None:
    scores, shares = [], []
    for i in range(count):
        begun = time.monotonic()
        result = grade(ALICE, tools, lambda _stage, _detail: None).result
        wall = time.monotonic() - begun
        assert result.score, result
        timed = timed_seconds(result)
        scores.append(result.score.total)
        shares.append(timed / wall)
        if i < 2:
            print(
                f"whole grade {i + 1}: {wall:.2f} s, of which timed kernels {timed:.2f} s "
                f"({100 * timed / wall:.0f} %); score {result.score.total}"
            )
            for case in result.cases:
                print(f"    {size_text(case.size)}: {case.seconds:.3f} s")
    print(
        f"{count} whole grades: score {statistics.mean(scores):.2f}, standard deviation "
        f"{statistics.stdev(scores):.3f} points, from {min(scores)} to {max(scores)}; "
        f"share of timed kernels {100 * statistics.median(shares):.0f} % (median)",
        flush=True,
    )


def timed_seconds(result: Result) -> float:
    """Seconds that the GPU spent in timed kernels, submission and baseline."""
    total = 0.0
    for case in result.cases:
        if case.timing is None:
            continue
        flops = case.amount / 1e12
        for run in case.timing.runs:
            each = flops / run.speed + flops / run.baseline_speed
            total += each * case.timing.samples / len(case.timing.runs)
    return total


def anatomy(bench: SharedBench, kernel: Kernel) -> None:
    """Where the time of one repetition goes at the largest size."""
    case = kernel.case(bench, SIZES[-1])
    _, baseline = case.baseline()
    spent: dict[str, list[float]] = {}

    def part(name: str, work: Callable[[], object]) -> None:
        begun = time.perf_counter()
        work()
        bench.stream.synchronize()
        spent.setdefault(name, []).append(1e3 * (time.perf_counter() - begun))

    for _ in range(5):
        keys: list[tuple[bytes, bytes]] = []
        part("fresh inputs and poison", lambda made=keys: made.append(case.fresh()))
        part("submission, with L2 flush", lambda: bench.time(case.launch))
        part("baseline, with L2 flush", lambda: bench.time(baseline))
        part("NVML", bench.watch.look)
        part("comparison, inputs, canaries", lambda made=keys: case.check(made[0], 0.0))
    part("FP64 check of the reference, once", case.prove_reference)
    print(f"\none repetition at {SIZES[-1]}, milliseconds:")
    for name, values in spent.items():
        print(f"{statistics.median(values):9.2f}  {name}")


# --- replay beside native launches ------------------------------------------------------------


class Native:
    """The same host object, launched by CUDA's own runtime in this process."""

    def __init__(self, built: Build, toolchain: Toolchain) -> None:
        folders = (toolchain.nvcc.parent.parent / name for name in ("lib64", "lib"))
        found = [path for folder in folders for path in sorted(folder.glob("libcudart.so.*"))]
        ctypes.CDLL(str(found[0]) if found else "libcudart.so.13", ctypes.RTLD_GLOBAL)
        self._entry = ctypes.CDLL(str(built.host_library), os.RTLD_LAZY).sgemm_grader_entry

    def launch(self, addresses: tuple[int, int, int], n: int) -> Callable[[], None]:
        pointers = tuple(map(ctypes.c_void_p, addresses))
        sizes = (ctypes.c_int(n),) * 3
        return lambda: self._entry(*pointers, *sizes)


@contextmanager
def default_stream(bench: SharedBench) -> Iterator[None]:
    """Native launches go to the default stream: the stopwatch must look there."""
    own, bench.stream = bench.stream, cupy.cuda.Stream.null
    try:
        yield
    finally:
        bench.stream = own


def replay_beside_native(bench: SharedBench, kernel: Kernel, native: Native) -> None:
    print("\nmedian milliseconds of alice, alternating: replay, native launch, replay / native")
    for n in SIZES:
        case = kernel.case(bench, n)
        case.fresh()
        a, b, c = case.addresses
        launch = native.launch((a, b, c), n)
        ours, theirs = [], []
        for i in range(4 + (200 if n <= 3072 else 60 if n <= 4096 else 15)):
            mine = bench.time(case.launch)
            with default_stream(bench):
                other = bench.time(launch)
            if i >= 4:
                ours.append(mine)
                theirs.append(other)
        x, y = statistics.median(ours), statistics.median(theirs)
        print(f"{n:6}  {x:9.4f}  {y:9.4f}  {x / y:.4f}", flush=True)


# --- two kernels one per cent apart -----------------------------------------------------------


def one_per_cent_apart(bench: SharedBench, tools: Bench, kernel: Kernel, pairs: int) -> None:
    case = kernel.case(bench, APART_AT)
    case.fresh()
    own = statistics.median(bench.time(case.launch) for _ in range(20))
    with tempfile.TemporaryDirectory() as scratch:
        slower = Path(scratch) / "slower"
        shutil.copytree(ALICE, slower)
        main = slower / "sgemm.cu"
        clock = bench.gpu.sm_clock_mhz * 1e3  # cycles per millisecond
        text = main.read_text().replace("template <>\nvoid run_custom", _DELAY)
        head, tail = text.rsplit("}", 1)
        cycles = int(0.01 * own * clock - 3e-3 * clock)  # starting a kernel takes some 3 µs
        main.write_text(f"{head}  delay<<<1, 1>>>({cycles});\n}}{tail}")
        other = Kernel(slower, tools, (APART_AT,)).case(bench, APART_AT)
    rules = tools.lab.scoring
    right, apart = 0, []
    for i in range(pairs):
        order = (case, other) if i % 2 else (other, case)
        got = {id(each): measured(bench, each, 0.15) for each in order}
        fast, slow = got[id(case)], got[id(other)]
        right += scoring.points(fast, rules) > scoring.points(slow, rules)
        apart.append(1 - slow.ratio / fast.ratio)
    print(
        f"\ntwo kernels {100 * statistics.median(apart):.2f} % apart at {APART_AT} (median; from "
        f"{100 * min(apart):.2f} to {100 * max(apart):.2f}): ranked right in {right} of {pairs}",
        flush=True,
    )


# --- nvbench ----------------------------------------------------------------------------------


def beside_nvbench(bench: SharedBench, kernel: Kernel) -> None:
    """Medians of the same replay on the same stream, by nvbench and by the judge's stopwatch."""
    try:
        from cuda import bench as nvbench
        from cuda.bench.results import BenchmarkResult
    except ImportError as missing:
        print(f"\nnvbench is not here ({missing}): pip install cuda-bench[cu13]")
        return
    cases = {n: kernel.case(bench, n) for n in SIZES if n >= 1024}
    ours: dict[int, list[float]] = {n: [] for n in cases}

    def sgemm(state: nvbench.State) -> None:
        n = state.get_int64("N")
        case = cases[n]
        case.fresh()
        bench.stream.synchronize()
        ours[n] += [bench.time(case.launch) for _ in range(5 if n > 4096 else 40)][2:]
        state.set_stream(bench.stream)
        state.exec(lambda _launch: case.launch(), batched=False)
        ours[n] += [bench.time(case.launch) for _ in range(5 if n > 4096 else 40)][2:]

    registered = nvbench.register(sgemm)
    registered.add_int64_axis("N", list(cases))
    registered.set_timeout(2)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "nvbench.json"
        nvbench.run_all_benchmarks(["sgemm", "--devices", "0", "--jsonbin", str(file), "--quiet"])
        result = BenchmarkResult.from_json(file)
        states = {int(state.point["N"]): state for state in result["sgemm"]}
        print("\nmedian milliseconds of alice: judge, nvbench, judge / nvbench")
        for n, state in states.items():
            theirs = 1e3 * (state.center(statistics.median) or float("nan"))
            mine = statistics.median(ours[n])
            print(f"{n:6}  {mine:9.4f}  {theirs:9.4f}  {mine / theirs:.4f}", flush=True)


def main() -> None:
    tools = on_gpu()
    started = time.monotonic()
    whole_grades(tools, 10)
    kernel = Kernel(ALICE, tools, SIZES)
    bench = SharedBench(LoadedAhead(Gemm()))
    gpu = bench.gpu
    print(
        f"\n{gpu.name}, driver {gpu.driver}, {date.today()}, CUDA {tools.toolchain.cuda_version}; "
        f"peak {gpu.fp32_peak_tflops:.1f} TFLOPS at {gpu.sm_clock_mhz} MHz, "
        f"DRAM {gpu.dram_gb_s:.0f} GB/s; now: {bench.watch.look()}"
    )
    with bench.stream:
        print("\ncuBLAS against itself, then alice: ratio ± half width of the 95 % interval")
        for n in SIZES:
            case = kernel.case(bench, n)
            itself = kernel.case(bench, n)
            itself.stand_in(itself.baseline("best")[0])
            print(f"{n:6}  itself {shown(measured(bench, itself, 0.3))}")
            print(f"        alice  {shown(measured(bench, case, 0.3))}", flush=True)
        del case, itself
        pool = cupy.get_default_memory_pool()
        pool.free_all_blocks()
        largest = kernel.case(bench, SIZES[-1])
        measured(bench, largest, 0.1)
        print(f"\ndevice memory at {SIZES[-1]}: {pool.total_bytes() / 2**30:.2f} GiB")
        del largest
        anatomy(bench, kernel)
        replay_beside_native(bench, kernel, Native(kernel.built, tools.toolchain))
        one_per_cent_apart(bench, tools, kernel, 20)
    # nvbench ends its process when something is wrong: last, and apart.
    print(f"\n{time.monotonic() - started:.0f} s so far", flush=True)
    with bench.stream:
        beside_nvbench(bench, kernel)


if __name__ == "__main__":
    main()
