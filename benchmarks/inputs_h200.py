"""What unpredictable inputs cost, and what the cheats against them come to, on a GPU.

`python -m benchmarks.inputs_h200 [cheats] [costs] [noise]`: cheats graded as
tests/whole/test_gpu.py does; then the parts of a repetition, the noise of honest kernels as the
search for two speeds sees it, and how long launches take that are verified but not timed.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import cupy
import msgspec

from benchmarks.judge_h200 import Kernel, measured
from benchmarks.measure import ALICE, MAIN, on_gpu
from grader.build.building import Build
from grader.judge.launches import held_to_the_clock
from grader.judge.pipeline import grade
from grader.judge.program import GradingContext, prepare
from grader.labs.lab import Case, Lab
from grader.labs.submission import load_submission
from grader.problems.gemm.gemm import Gemm
from grader.problems.inputs import fresh_key
from grader.problems.operands import Operand
from grader.results.result import Result
from grader.run.gpu.measure import time_case, verify_case
from grader.run.gpu.messages import GpuJob
from grader.run.gpu.plan_replay import load_module
from grader.run.gpu.session import GpuSession, LoadedAhead, MeasuredCase
from grader.run.protocol import CaseOutcome, PlannedCase, quietly
from ptxsim.plan import Plan, Size
from tests.support.corpus import Fixture, cheats
from tests.support.places import HONEST

FAMILIES = (
    *("searches_in_the_warm_up", "searches_in_a_small_size", "fast_in_the_first_run"),
    *("fast_in_every_third_repetition", "slow_in_every_fifth_repetition", "slow_when_verified"),
    *("fast_when_verified", "hides_two_speeds_in_jitter", "predicts_the_next_inputs"),
    *("recognises_repeated_inputs", "just_above_the_least_time"),
    *("reads_what_cublas_left_in_shared_memory", "finds_leftovers_in_its_workspace"),
    *("slow_at_first", "cache_by_checksum", "reads_reference", "workspace_from_last_time"),
)
SIZES = (256, 512, 1024, 2048, 3072, 4096, 8192)


def quick(default: Lab, runs: int) -> Lab:
    """As tests/whole/test_gpu.py grades cheats: six sizes to verify, one to time."""
    case = Case(id="performance-0", size=Size.of(m=1024, n=1024, k=1024))
    return msgspec.structs.replace(
        default,
        performance=(case,),
        correctness=default.correctness[:6],
        cpu=default.cpu[:3],
        limits=msgspec.structs.replace(default.limits, launch_s=2),
        scoring=msgspec.structs.replace(default.scoring, runs=runs),
    )


def grade_cheats(tools: GradingContext) -> None:
    def graded(folder: Path, runs: int) -> Result:
        bench = msgspec.structs.replace(tools, lab=quick(tools.lab, runs))
        return grade(folder, bench, quietly).result

    honest = graded(HONEST, 1)
    assert honest.score
    print(f"honest work: {honest.verdict.value} {honest.score.total}")
    chosen: list[Fixture] = [cheat for cheat in cheats() if cheat.folder.name in FAMILIES]
    with ThreadPoolExecutor(4) as pool:
        results = [
            (cheat, runs, pool.submit(graded, cheat.folder, runs))
            for cheat in chosen
            for runs in ((1, 3) if "repetition" in cheat.folder.name else (1,))
        ]
        for cheat, runs, future in results:
            result = future.result()
            score = result.score.total if result.score else 0.0
            assert cheat.gpu
            met = cheat.gpu.met_by(result) and (
                score <= 1.05 * honest.score.total if cheat.gpu.no_gain else score == 0
            )
            said = [str(case.message) for case in result.cases if case.message][:1]
            timed = [case.timing for case in result.cases if case.timing]
            modes = timed[0].modes if timed else None
            print(
                f"{'' if met else 'NOT '}as declared: {cheat.folder.name} ({runs} runs): "
                f"{result.verdict.value} {score} {said or ''} {result.error or ''} {modes or ''}",
                flush=True,
            )


def parts(bench: GpuSession, kernel: Kernel) -> None:
    """Milliseconds of what a repetition consists of."""
    print("\nmilliseconds (median of 9): both inputs made, both checked, the rest of fresh;")
    print("submission, baseline; a whole repetition by the clock; share of inputs in it")
    for n in SIZES:
        case = kernel.case(bench, n)
        baseline = next(iter(case.rivals().values()))
        spent: dict[str, list[float]] = {}

        def part(
            name: str, work: Callable[[], object], spent: dict[str, list[float]] = spent
        ) -> None:
            bench.stream.synchronize()
            begun = time.perf_counter()
            work()
            bench.stream.synchronize()
            spent.setdefault(name, []).append(1e3 * (time.perf_counter() - begun))

        operands = Gemm().operands(Size.of(m=n, n=n, k=n))[:2]
        both = [cupy.empty(n * n, cupy.float32) for _ in operands]
        keys = [fresh_key() for _ in operands]

        def make(
            operands: Sequence[Operand] = operands, both: Any = both, keys: Any = keys
        ) -> None:
            for operand, matrix, key in zip(operands, both, keys, strict=True):
                bench.kernels.fill(matrix, key, operand.values, operand.element)

        def check(
            operands: Sequence[Operand] = operands, both: Any = both, keys: Any = keys
        ) -> None:
            found = bench.kernels.changed(operands, both, keys)
            assert [count for count, _ in found] == [0, 0]

        for _ in range(9):
            part("make", make)
            part("check", check)
            spent.setdefault("on the GPU", []).append(bench.time(make) / 2)
            begun = time.perf_counter()
            made = case.fresh()
            mine = bench.time(case.launch)
            theirs = bench.time(baseline)
            bench.watch.look()
            case.check(made, 0.0)
            spent.setdefault("one", []).append(1e3 * (time.perf_counter() - begun))
            begun = time.perf_counter()
            case.fresh()
            bench.time(baseline)
            made = case.fresh()
            bench.time(case.launch)
            baseline()
            bench.watch.look()
            case.check(made, 0.0)
            spent.setdefault("other", []).append(1e3 * (time.perf_counter() - begun))
        middle = {name: statistics.median(values) for name, values in spent.items()}
        whole = (middle["one"] + middle["other"]) / 2
        inputs = 1.5 * middle["make"] + middle["check"]  # every other repetition makes them twice
        print(
            f"{n:6} make {middle['make']:.3f} (one matrix by events {middle['on the GPU']:.3f}) "
            f"check {middle['check']:.3f}; submission {mine:.3f}, baseline {theirs:.3f}; "
            f"repetition {middle['one']:.2f} and {middle['other']:.2f}; "
            f"share {100 * inputs / whole:.1f} %",
            flush=True,
        )


def noise(bench: GpuSession, kernel: Kernel, times: int) -> None:
    print(f"\nhonest kernels, {times} measurements of 3 runs: which had two speeds?")
    for n in SIZES:
        for name in ("alice", "cuBLAS"):
            found, ratios = [], []
            for _ in range(times):
                case = kernel.case(bench, n)
                if name == "cuBLAS":
                    case.launch = case.baselines(case.outputs)[next(iter(case.rivals()))]
                timing = measured(bench, case, 0.25)
                ratios.append(timing.ratio)
                if timing.modes:
                    found.append(timing.modes.fast.speed / timing.modes.slow.speed)
            spread = (
                f"ratio {min(ratios):.4f} to {max(ratios):.4f}, noise {100 * timing.noise:.2f} %"
            )
            print(f"{n:6} {name:6} {spread}, {len(found)} of {times} {found or ''}", flush=True)


def untimed(bench: GpuSession, built: Build, plans: Sequence[Plan]) -> None:
    """Every correctness size in a module loaded afresh, and the warm-up at 8192."""
    outcomes: list[CaseOutcome] = []
    for plan in plans:
        module = load_module(built.cubin.read_bytes())
        with bench.arena.memory(plan) as memory:
            size, amount = plan.size, bench.problem.amount(plan.size)
            begun = CaseOutcome(id=str(size), size=size.dims, amount=amount)
            case = MeasuredCase(bench, module, PlannedCase(case=begun, plan=plan), memory)
            if plan.size["m"] == 8192:
                job = GpuJob(cubin="", cases=(), runs=1, run_seconds=0.2)
                outcomes.append(time_case(bench, case, job, lambda: None).outcome)
            else:
                outcomes.append(verify_case(bench, case).outcome)
    held = held_to_the_clock(outcomes, Gemm(), bench.gpu)
    print("\nalice: milliseconds of the launches that are verified or warm up, modules just loaded")
    for each in held:
        print(f"{each.id}: {each.untimed_ms:.3f} {[finding.message for finding in each.findings]}")


def main() -> None:
    tools = on_gpu()
    started = time.monotonic()
    wanted = sys.argv[1:] or ["cheats", "costs", "noise"]
    print(f"sandbox: {tools.sandbox.kind}")
    if "cheats" in wanted:
        grade_cheats(tools)
    # Everything that starts processes comes before CUDA is touched: a context does not fork.
    kernel = Kernel(ALICE, tools, SIZES)
    # At every size that is verified, and at 8192.
    sizes = [*(case.size for case in tools.lab.correctness), Size.of(m=8192, n=8192, k=8192)]
    plans = prepare(load_submission(ALICE, MAIN), sizes, tools, kernel.built.arch).plans
    print(f"\n{time.monotonic() - started:.0f} s so far", flush=True)
    bench = GpuSession(LoadedAhead(Gemm()))
    gpu = bench.gpu
    print(f"\n{gpu.name}, driver {gpu.driver}, {date.today()}, CUDA {tools.toolchain.cuda_version}")
    with bench.stream:
        if "costs" in wanted:
            untimed(bench, kernel.built, plans)
            parts(bench, kernel)
        if "noise" in wanted:
            noise(bench, kernel, 4)
    print(f"\n{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
