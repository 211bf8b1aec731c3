"""What the GPU judge promises, measured: `python -m benchmarks.judge_h200 [PART …]` with a GPU.

grades: ten grades of one kernel, and where the time of a whole one goes. choices: how the baseline
is chosen. itself: cuBLAS judged as if it were a submission. anatomy: the parts of a repetition.
apart: two kernels one per cent apart. nvbench: replay beside nvbench. Without PART all of them.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import date
from itertools import islice
from pathlib import Path
from typing import get_args

import cupy

from benchmarks.measure import ALICE, cubes, on_gpu
from grader.base.records import size_text
from grader.build.building import Build
from grader.judge import scoring
from grader.judge.pipeline import grade
from grader.judge.program import GradingContext
from grader.problems.gemm.gemm import Gemm, Options
from grader.problems.gemm.layout import Format
from grader.problems.inputs import fresh_key
from grader.results.case import Timing
from grader.results.result import Result
from grader.run.gpu.measure import close_to_the_fastest, time_case, turns
from grader.run.gpu.messages import GpuJob
from grader.run.gpu.plan_replay import load_module
from grader.run.gpu.session import GpuSession, LoadedAhead, MeasuredCase
from grader.run.protocol import CaseOutcome, PlannedCase, quietly
from ptxsim.plan import Size

SIZES = (512, 1024, 2048, 3072, 4096, 8192)
APART_AT = 4096
CHOSEN_AT, CHOICES = (1024, 4096, 8192), 5
PARTS = ("grades", "choices", "itself", "anatomy", "apart", "nvbench")
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

    def __init__(self, folder: Path, tools: GradingContext, sizes: tuple[int, ...]) -> None:
        assert tools.gpu_arch
        ready = cubes(folder, sizes, tools, tools.gpu_arch)
        self.built: Build = ready.built
        self._memory = ExitStack()  # to the end of the process
        self.plans = {plan.size["m"]: plan for plan in ready.plans}

    def case(self, bench: GpuSession, n: int) -> MeasuredCase:
        """The first case of the process lies at the recorder's addresses, others in the pool."""
        module = load_module(self.built.cubin.read_bytes())
        plan = self.plans[n]
        begun = CaseOutcome(id="case", size=plan.size.dims, amount=bench.problem.amount(plan.size))
        planned = PlannedCase(case=begun, plan=plan)
        memory = self._memory.enter_context(bench.arena.memory(planned.plan))
        case = MeasuredCase(bench, module, planned, memory)
        _, wrong = case.set_up()
        assert wrong is None, wrong
        return case


def measured(bench: GpuSession, case: MeasuredCase, seconds: float) -> Timing:
    job = GpuJob(cubin="", cases=(), runs=3, run_seconds=seconds)
    timing = time_case(bench, case, job, lambda: None).outcome.timing
    assert timing is not None
    return timing


def shown(timing: Timing) -> str:
    low, high = timing.ratio_ci
    second = timing.runner_up
    other = f", {second.name} {second.ratio:.4f} of it" if second else ""
    return (
        f"{timing.ratio:.4f} ± {(high - low) / 2:.4f} of {timing.baseline}{other} "
        f"({timing.samples} samples, noise {100 * timing.noise:.2f} %, {timing.stopped}, "
        f"{timing.scored_speed:.2f} TFLOPS)"
    )


# --- whole grades -----------------------------------------------------------------------------


def whole_grades(tools: GradingContext, count: int) -> None:
    scores, shares = [], []
    for i in range(count):
        begun = time.monotonic()
        result = grade(ALICE, tools, quietly).result
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


def anatomy(bench: GpuSession, kernel: Kernel) -> None:
    """Where the time of one repetition goes at the largest size."""
    case = kernel.case(bench, SIZES[-1])
    baseline = next(iter(case.rivals().values()))
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


# --- the choice of the baseline ---------------------------------------------------------------


def choices(bench: GpuSession) -> None:
    """What is chosen from scratch, time after time; what is lost with one variant and with two,
    against the best by all turns together; what eight candidates would have cost."""
    print("\nthe choice of the baseline, from scratch each time")
    for kind in get_args(Format):
        problem = Gemm(Options(type=kind))
        on_gpu = problem.on_gpu(bench.kernels)
        for n in CHOSEN_AT:
            size = Size.of(m=n, n=n, k=n)
            operands = problem.operands(size)
            arrays = [cupy.empty(each.count, each.element.dtype) for each in operands]
            for array, operand in zip(arrays[:2], operands, strict=False):
                bench.kernels.fill(array, fresh_key(), operand.values, operand.element)
            launches = on_gpu.baselines(size, arrays[:2], arrays[2:])
            every: dict[str, list[float]] = {name: [] for name in launches}
            chosen: list[tuple[str, ...]] = []
            begun = time.monotonic()
            for _ in range(CHOICES):
                times = turns(launches, bench.time)
                chosen.append(close_to_the_fastest(times))
                for name, each in times.items():
                    every[name] += each
            took = (time.monotonic() - begun) / CHOICES
            medians = {name: statistics.median(each) for name, each in every.items()}
            best = min(medians, key=medians.__getitem__)
            first_eight = [name for name in medians if int(name.partition(" ")[2] or 0) <= 8]
            lost = {
                "one": max(medians[each[0]] for each in chosen),
                "two": max(min(medians[name] for name in each) for each in chosen),
                "eight candidates": min(medians[name] for name in first_eight),
            }
            losses = ", ".join(
                f"{name} {100 * (ms / medians[best] - 1):.2f} %" for name, ms in lost.items()
            )
            names = " | ".join(", ".join(each) for each in chosen)
            print(
                f"{kind:>4} {n:5}  {best} of {len(launches)}: {medians[best]:.4f} ms; "
                f"lost with {losses}; a choice takes {took:.2f} s\n             {names}",
                flush=True,
            )


def beside_itself(bench: GpuSession, kernel: Kernel) -> None:
    """cuBLAS in the place of a submission, and alice; and what the second variant costs."""
    print("\ncuBLAS against itself, then alice: ratio ± half width of the 95 % interval")
    for n in SIZES:
        for name in ("itself", "alice"):
            case = kernel.case(bench, n)
            rivals = dict(case.rivals())
            if name == "itself":
                case.launch = case.baselines(case.outputs)[next(iter(rivals))]
            for count in range(1, len(rivals) + 1):
                some = dict(islice(rivals.items(), count))
                case.rivals = lambda _beat=None, some=some: some
                begun = time.monotonic()
                timing = measured(bench, case, 0.3)
                each_ms = 1e3 * (time.monotonic() - begun) / timing.samples
                print(f"{n:6}  {name:6} {shown(timing)}, {each_ms:.2f} ms a repetition", flush=True)


# --- two kernels one per cent apart -----------------------------------------------------------


def one_per_cent_apart(
    bench: GpuSession, tools: GradingContext, kernel: Kernel, pairs: int
) -> None:
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
        right += scoring.place(fast, rules).points > scoring.place(slow, rules).points
        apart.append(1 - slow.ratio / fast.ratio)
    print(
        f"\ntwo kernels {100 * statistics.median(apart):.2f} % apart at {APART_AT} (median; from "
        f"{100 * min(apart):.2f} to {100 * max(apart):.2f}): ranked right in {right} of {pairs}",
        flush=True,
    )


# --- nvbench ----------------------------------------------------------------------------------


def beside_nvbench(bench: GpuSession, kernel: Kernel) -> None:
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
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judge_h200", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=(*PARTS, []), metavar="PART")
    wanted = parser.parse_args().parts or PARTS
    tools = on_gpu()
    started = time.monotonic()
    if "grades" in wanted:
        whole_grades(tools, 10)
    kernel = Kernel(ALICE, tools, SIZES)
    bench = GpuSession(LoadedAhead(Gemm()))
    gpu = bench.gpu
    print(
        f"\n{gpu.name}, driver {gpu.driver}, {date.today()}, CUDA {tools.toolchain.cuda_version}, "
        f"{bench.on_gpu.library}; peak {gpu.fp32_peak_tflops:.1f} TFLOPS at {gpu.sm_clock_mhz} "
        f"MHz, DRAM {gpu.dram_gb_s:.0f} GB/s; now: {bench.watch.look()}"
    )
    pool = cupy.get_default_memory_pool()
    with bench.stream:
        if "choices" in wanted:
            choices(bench)
            pool.free_all_blocks()
        if "itself" in wanted:
            beside_itself(bench, kernel)
            pool.free_all_blocks()
        if "anatomy" in wanted:
            measured(bench, kernel.case(bench, SIZES[-1]), 0.1)
            print(f"\ndevice memory at {SIZES[-1]}: {pool.total_bytes() / 2**30:.2f} GiB")
            anatomy(bench, kernel)
        if "apart" in wanted:
            one_per_cent_apart(bench, tools, kernel, 20)
    print(f"\n{time.monotonic() - started:.0f} s so far", flush=True)
    if "nvbench" in wanted:  # it ends its process when something is wrong: last, and apart
        with bench.stream:
            beside_nvbench(bench, kernel)


if __name__ == "__main__":
    main()
