"""Replay at the recorder's own addresses beside the pool's: `python -m benchmarks.replay_h200`.

The same plan twice in one process: the first takes the addresses, the second falls back. Their
launches alternate, with the judge's stopwatch and a flushed L2. Beside them is what mapping costs,
and programs with pointers in odd places, replayed both ways.
"""

from __future__ import annotations

import statistics
import time
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.tools import MAIN, cubes, tools
from grader.backends.gpu.bench import LoadedAhead, SharedBench
from grader.backends.gpu.measure import verify_case
from grader.backends.gpu.measured_case import MeasuredCase
from grader.backends.gpu.memory import PlanMemory
from grader.backends.gpu.plan_replay import load_module
from grader.backends.probe import first_gpu_arch
from grader.backends.protocol import PlannedCase
from grader.grading.preparing import prepared
from grader.model import Plan, Size
from grader.problems.gemm.gemm import Gemm
from grader.submission.folder import load_submission

ROOT = Path(__file__).resolve().parents[1]
EXTENTS = (512, 1024, 4096)
TIMED = ("submissions/alice", "reference/sgemm/32_dispatch")
ROUNDS = {512: 400, 1024: 400, 4096: 40}
FIXTURES = sorted((ROOT / "tests" / "fixtures" / "correct").glob("*point*"))


def case_of(bench: SharedBench, module: Any, plan: Plan, memory: PlanMemory) -> MeasuredCase:
    return MeasuredCase(bench, module, PlannedCase(id="case", plan=plan), memory)


def side_by_side(bench: SharedBench, folder: str, arch: str) -> None:
    ready = cubes(ROOT / folder, EXTENTS, tools(), arch)
    module = load_module(ready.built.cubin.read_bytes())
    for plan in ready.plans:
        started = time.perf_counter()
        with bench.arena.memory(plan) as own:
            mapped = time.perf_counter() - started
            with bench.arena.memory(plan) as pool:
                assert pool.relocated and not own.relocated, own.relocated
                at_home = case_of(bench, module, plan, own)
                elsewhere = case_of(bench, module, plan, pool)
                times = alternated(bench, {"own": at_home, "pool": elsewhere})
            started = time.perf_counter()
        unmapped = time.perf_counter() - started
        own_ms, pool_ms, own_cublas, pool_cublas = (
            statistics.median(values[4:]) for values in times.values()
        )
        print(
            f"{folder:22} {plan.size['m']:5}  own {own_ms:9.5f} ms  pool {pool_ms:9.5f} ms  "
            f"own / pool {own_ms / pool_ms:.4f}, of cuBLAS {own_cublas / pool_cublas:.4f}  "
            f"map {1e3 * mapped:.1f} ms  unmap {1e3 * unmapped:.1f} ms",
            flush=True,
        )


def alternated(bench: SharedBench, cases: dict[str, MeasuredCase]) -> dict[str, list[float]]:
    """Milliseconds of the submission in each case, then of cuBLAS in each."""
    times: dict[str, list[float]] = {name: [] for name in (*cases, *(f"{n} cuBLAS" for n in cases))}
    products = {}
    for name, case in cases.items():
        case.set_up()
        case.fresh()
        products[name] = case.baselines(case.outputs)["cublasSgemm"]
    size = next(iter(cases.values())).size["m"]
    for turn in range(ROUNDS[size]):
        order = list(cases) if turn % 2 else list(reversed(cases))
        for name in order:
            times[name].append(bench.time(cases[name].launch))
        for name in order:
            times[f"{name} cuBLAS"].append(bench.time(products[name]))
    return times


def odd_pointers(bench: SharedBench, arch: str) -> None:
    size = Size.of(m=129, n=65, k=33)
    for folder in FIXTURES:
        ready = prepared(load_submission(folder, MAIN), [size], tools(), arch)
        (plan,) = ready.plans
        module = load_module(ready.built.cubin.read_bytes())
        with bench.arena.memory(plan) as own, bench.arena.memory(plan) as pool:
            seen = []
            for memory in (own, pool):
                outcome = verify_case(bench, case_of(bench, module, plan, memory)).outcome
                assert outcome.error
                where = f"relocated ({memory.relocated})" if memory.relocated else "own addresses"
                kinds = [finding.kind for finding in outcome.findings]
                seen.append(f"{where}: {outcome.error.wrong} wrong {kinds or ''}")
        print(f"{folder.name:32} {'; '.join(seen)}", flush=True)


def main() -> None:
    arch = first_gpu_arch()
    if arch is None:
        raise SystemExit("no NVIDIA GPU here")
    bench = SharedBench(LoadedAhead(Gemm()))
    print(f"{bench.gpu.name}, driver {bench.gpu.driver}, {date.today()}")
    with bench.stream:
        odd_pointers(bench, arch)
        for folder in TIMED:
            side_by_side(bench, folder, arch)


if __name__ == "__main__":
    main()
