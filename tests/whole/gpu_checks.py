"""The GPU judge's own checks tried on known faults, as JSON: `python -m tests.whole.gpu_checks`."""

from __future__ import annotations

import json
import math
from typing import Any

import cupy
import msgspec

from benchmarks.tools import tools
from benchmarks.verification import numbered_keys
from grader.backends.gpu.bench import SharedBench
from grader.backends.gpu.gpu_messages import GpuJob
from grader.backends.gpu.measure import MeasuredCase, time_case, verify_case
from grader.backends.gpu.memory import PlanMemory
from grader.backends.gpu.plan_replay import load_module
from grader.backends.probe import first_gpu_arch
from grader.backends.protocol import PlannedCase
from grader.cli.scaffold import find_starter
from grader.errors import MachineError
from grader.grading.preparing import prepared
from grader.judging import verdicts as judge
from grader.judging.times import held_to_the_clock
from grader.labs.lab import Rules
from grader.model import Plan, Size
from grader.problems import inputs
from grader.submission.folder import load_submission
from tests.support.places import ROOT

SIZE = Size.of(m=300, n=700, k=501)
KEYS = numbered_keys(7)


def main() -> None:
    arch = first_gpu_arch()
    assert arch
    ready = prepared(load_submission(find_starter(ROOT)), [SIZE], tools(), arch)
    built, (plan,) = ready.built, ready.plans
    bench = SharedBench()
    said: dict[str, object] = {}
    with bench.stream, bench.arena.memory(plan) as memory:
        module = load_module(built.cubin.read_bytes())
        case = MeasuredCase(bench, module, PlannedCase(id="case", plan=plan), memory)
        a, b, c = (cupy.empty(count, cupy.float32) for count in (300 * 501, 501 * 700, 300 * 700))
        bench.kernels.fill(a, KEYS[0])
        bench.kernels.fill(b, KEYS[1])
        expected = inputs.make_inputs(SIZE, KEYS)
        same = all((x.get() == y).all() for x, y in zip((a, b), expected, strict=True))
        said["the same inputs as on the CPU"] = bool(same)
        bench.kernels.fill(a[: 257 * 16 + 5], KEYS[1])
        (count, first), unchanged = bench.kernels.changed((a, KEYS[0]), (b, KEYS[1]))
        said["changed"] = [count > 4000, first, *unchanged]
        bench.kernels.fill(a, KEYS[0])
        pointers = [int(each.data.ptr) for each in (a, b, c)]
        bench.cublas.sgemm(SIZE, *pointers)()

        def freivalds() -> float | None:
            excess = bench.kernels.freivalds(SIZE, a, b, c)
            return None if math.isnan(excess) else excess

        said["freivalds, cuBLAS"] = freivalds()
        c[12345] += 1.0
        said["freivalds, one element"] = freivalds()
        c[12345] = cupy.nan
        said["freivalds, nan"] = freivalds()

        case.fresh()
        case.reference()
        case.fresh()  # the reference is that of other inputs now
        try:
            case.prove_reference()
        except MachineError as error:
            said["faulty reference"] = str(error)

        # While this plan's addresses are taken, another of the same lies elsewhere.
        said["own addresses"] = replayed(bench, module, plan, memory)
        with bench.arena.memory(plan) as elsewhere:
            said["other addresses"] = replayed(bench, module, plan, elsewhere)

        # A GPU that could do next to nothing: any kernel is faster than it can be.
        bench.gpu = msgspec.structs.replace(bench.gpu, fp32_peak_tflops=1e-3)
        job = GpuJob(
            cubin="", cases=(), runs=1, run_seconds=0.01, baseline="cublas", host_calls="charged"
        )
        outcome = time_case(bench, case, job, lambda: None)
        (held,) = held_to_the_clock([outcome], bench.gpu)
        said["impossible"] = judge.judge_case(held, Rules())[0].value
    print(json.dumps(said))


def replayed(bench: SharedBench, module: Any, plan: Plan, memory: PlanMemory) -> dict[str, int]:
    case = MeasuredCase(bench, module, PlannedCase(id="case", plan=plan), memory)
    outcome = verify_case(bench, case, lambda: None)
    assert outcome.error
    return {"relocated": bool(memory.relocated), "wrong": outcome.error.wrong}


if __name__ == "__main__":
    main()
