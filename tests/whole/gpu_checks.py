"""The GPU judge's own checks tried on known faults, as JSON: `python -m tests.whole.gpu_checks`."""

import itertools
import json
import math
from typing import Any, get_args

import cupy
import msgspec
import numpy as np

from benchmarks.measure import tools
from benchmarks.verification import numbered_keys
from benchmarks.verification_16_bits import FORMATS, SUMS_IN_FP16
from grader.base.errors import MachineError
from grader.cli.chosen_lab import find_starter
from grader.judge import verdicts as judge
from grader.judge.launches import held_to_the_clock
from grader.judge.program import prepare
from grader.labs.lab import load_lab
from grader.labs.shape import Rules
from grader.labs.submission import load_submission
from grader.problems import inputs
from grader.problems.gemm.gemm import Gemm, Options
from grader.problems.gemm.layout import Layout
from grader.problems.operands import Operand, Order
from grader.problems.problem import Problem
from grader.run.gpu.host_check import HostCheck, HostInput, measured, take
from grader.run.gpu.measure import time_case, verify_case
from grader.run.gpu.memory import PlanMemory
from grader.run.gpu.messages import GpuJob
from grader.run.gpu.plan_replay import load_module
from grader.run.gpu.session import GpuSession, LoadedAhead, MeasuredCase
from grader.run.probe import first_gpu_arch
from grader.run.protocol import CaseOutcome, PlannedCase
from ptxsim.plan import Plan, Size
from tests.support.kinds import KINDS
from tests.support.places import ROOT
from tests.support.product import GEMM, MAIN
from tests.support.results import RIGHT

SIZE = Size.of(m=300, n=700, k=501)
KEYS = numbered_keys(7)
LAYOUTS = [Layout(A=a, B=b, C=c) for a, b, c in itertools.product(get_args(Order), repeat=3)]


def main() -> None:
    arch = first_gpu_arch()
    assert arch
    ready = prepare(load_submission(find_starter(ROOT, load_lab()), MAIN), [SIZE], tools(), arch)
    built, (plan,) = ready.built, ready.plans
    bench = GpuSession(LoadedAhead(GEMM))
    said: dict[str, object] = {}
    with bench.stream, bench.arena.memory(plan) as memory:
        module = load_module(built.cubin.read_bytes())
        case = MeasuredCase(bench, module, PlannedCase(case=begun(plan.size), plan=plan), memory)
        a, b, c = (cupy.empty(count, cupy.float32) for count in (300 * 501, 501 * 700, 300 * 700))
        bench.kernels.fill(a, KEYS[0])
        bench.kernels.fill(b, KEYS[1])
        expected = inputs.make_inputs(GEMM.operands(SIZE), KEYS)
        same = all((x.get() == y).all() for x, y in zip((a, b), expected, strict=True))
        said["the same inputs as on the CPU"] = bool(same)
        bench.kernels.fill(a[: 257 * 16 + 5], KEYS[1])
        (count, first), unchanged = bench.kernels.changed(GEMM.operands(SIZE)[:2], (a, b), KEYS)
        said["changed"] = [count > 4000, first, *unchanged]
        bench.kernels.fill(a, KEYS[0])
        bench.on_gpu.refer(SIZE, (a, b), (c,))

        def freivalds() -> float | None:
            excess = bench.on_gpu.prove(SIZE, (a, b), (c,))
            return None if math.isnan(excess) else excess

        said["freivalds, cuBLAS"] = freivalds()
        c[12345] += 1.0
        said["freivalds, one element"] = freivalds()
        c[12345] = cupy.nan
        said["freivalds, nan"] = freivalds()

        said["layouts"] = {str(each): in_layout(bench, each, a, b, c) for each in LAYOUTS}

        for options in (*FORMATS, SUMS_IN_FP16):
            said[" ".join(options.values())] = in_format(bench, options)

        said["kinds"] = [name for name in KINDS if not same_kind(bench, name)]

        said["forged"] = forged(bench, case)

        case.fresh()
        blank = case.outputs[0].copy()
        case.fresh()
        said["poison differs"] = bool((blank.view("u4") != case.outputs[0].view("u4")).all())

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
        job = GpuJob(cubin="", cases=(), runs=1, run_seconds=0.01)
        outcome = time_case(bench, case, job, lambda: None).outcome
        (held,) = held_to_the_clock([outcome], GEMM, bench.gpu)
        said["impossible"] = judge.judge_case(held, Rules())[0].value
    print(json.dumps(said))


def in_layout(bench: GpuSession, layout: Layout, a: Any, b: Any, c: Any) -> list[bool]:
    """Whether every baseline is right by Freivalds' check and the host's, and each check sees a
    wrong element."""
    problem = Gemm(Options(layout=layout))
    on_gpu = problem.on_gpu(bench.kernels)
    right = []
    for launch in on_gpu.baselines(SIZE, (a, b), (c,)).values():
        launch()
        right.append(on_gpu.prove(SIZE, (a, b), (c,)) <= 1)
    want = c.copy()
    right.append(on_gpu.compare(SIZE, (a, b), (c,), (want,)).wrong == 0)
    right.append(host_finds(problem, c) == 0)
    c[-1] += 1.0  # a corner: the host always looks there
    right.append(host_finds(problem, c) == 1)
    c[-1] = want[-1]
    c[4321] += 1.0
    right.append(on_gpu.compare(SIZE, (a, b), (c,), (want,)).wrong == 1)
    right.append(not on_gpu.prove(SIZE, (a, b), (c,)) <= 1)
    return right


def in_format(bench: GpuSession, options: dict[str, str]) -> dict[str, object]:
    """Inputs as the CPU makes them, every baseline right by the criterion, faults found."""
    problem = Gemm(msgspec.convert(options, Options))
    on_gpu = problem.on_gpu(bench.kernels)
    operands = problem.operands(SIZE)
    a, b, c = arrays = [cupy.empty(each.count, each.element.dtype) for each in operands]
    for array, key, operand in zip(arrays, KEYS, operands, strict=False):
        bench.kernels.fill(array, key, operand.values, operand.element)
    expected = inputs.make_inputs(operands, KEYS)
    said: dict[str, object] = {
        "same inputs": all(
            bool((x.get() == y).all()) for x, y in zip((a, b), expected, strict=True)
        ),
        "changed": bench.kernels.changed(operands[:2], (a, b), KEYS),
    }
    on_gpu.refer(SIZE, (a, b), (c,))
    said["freivalds"] = on_gpu.prove(SIZE, (a, b), (c,))
    wrong: dict[str, int] = {}
    for name, launch in on_gpu.baselines(SIZE, (a, b), (c,)).items():
        c.fill(0)
        launch()
        wrong[name] = on_gpu.compare(SIZE, (a, b), (c,), (c,)).wrong
    said["wrong"] = wrong
    said["the host finds"] = host_finds(problem, c)
    kept = c[0].copy()
    c[0] = c[1]
    said["the host finds, one element"] = host_finds(problem, c)
    c[0] = kept
    kept = c[4321].copy()
    c[4321] = c[4320]
    said["one element"] = on_gpu.compare(SIZE, (a, b), (c,), (c,)).wrong
    c[4321] = kept
    other = SIZE.dims | {"k": SIZE["k"] - 1}  # the reference of other inputs: all is wrong
    on_gpu.refer(Size(dims=other), (a, b), (c,))
    said["another product"] = on_gpu.compare(SIZE, (a, b), (c,), (c,)).wrong
    said["freivalds, another product"] = on_gpu.prove(SIZE, (a, b), (c,))
    return said


def same_kind(bench: GpuSession, name: str) -> bool:
    """Whether the GPU makes these elements as the CPU does, and sees that one was changed."""
    element, kind = KINDS[name]
    operand = Operand(name="in", role="in", shape=(100_003,), element=element, values=kind)
    (expected,) = inputs.make_inputs([operand], KEYS[:1])
    made = cupy.empty(operand.count, element.dtype)
    bench.kernels.fill(made, KEYS[0], kind, element)
    same = bool((made.get() == expected).all())
    host = HostInput(KEYS[0], operand).at(np.arange(99_000, 100_003))
    same = same and bool((element.packed(host) == expected[99_000:]).all())
    seen = bench.kernels.changed([operand], [made], KEYS[:1])
    made[70_001] += 1
    later = bench.kernels.changed([operand], [made], KEYS[:1])
    return same and seen[0][0] == 0 and later == [(1, 70_001)]


def host_finds(problem: Problem, c: Any) -> int:
    """How many elements of a product of the inputs of KEYS the host finds wrong."""
    taken = take(problem, SIZE, KEYS, [c])
    found = HostCheck(problem).confirm(measured(outcome_of(problem), [], [taken]))
    assert found.error
    return found.error.wrong


def begun(size: Size) -> CaseOutcome:
    return CaseOutcome(id="case", size=size.dims, amount=GEMM.amount(size))


def outcome_of(problem: Problem) -> CaseOutcome:
    """What a comparison says that finds nothing wrong."""
    target = problem.operands(SIZE)[2]
    error = msgspec.structs.replace(RIGHT.error, operand=target.name, shape=target.shape)
    return msgspec.structs.replace(begun(SIZE), error=error)


def forged(bench: GpuSession, case: MeasuredCase) -> dict[str, list[str]]:
    """Verdict and kinds of findings where the grader's kernels on the GPU let everything pass: a
    right product, one that nobody wrote, one that the grader's kernels write later, and one of
    inputs that are not those of the keys."""
    submission, kernels, on_gpu = case.launch, bench.kernels, bench.on_gpu
    compare, refer, fill, changed = on_gpu.compare, on_gpu.refer, kernels.fill, kernels.changed
    c = case.outputs[0]

    def verdict() -> list[str]:
        outcome = HostCheck(bench.problem).confirm(verify_case(bench, case))
        kinds = [finding.kind.value for finding in outcome.findings]
        return [judge.judge_case(outcome, Rules())[0].value, *kinds]

    def late(size: Size, inputs: Any, outputs: Any) -> None:
        refer(size, inputs, outputs)
        refer(size, inputs, case.outputs)

    on_gpu.compare = lambda *_: outcome_of(bench.problem).error
    found = {"right": verdict()}
    case.launch = lambda: (submission(), c[: c.size // 2].fill(0))
    found["half of it"] = verdict()
    case.launch = lambda: None
    found["unwritten"] = verdict()
    on_gpu.refer = late
    found["written later"] = verdict()
    case.launch, on_gpu.compare, on_gpu.refer = submission, compare, refer
    kernels.fill = lambda out, _key, *kind: fill(out, KEYS[0], *kind)
    kernels.changed = lambda _operands, arrays, _keys: [(0, 0) for _ in arrays]
    found["other inputs"] = verdict()
    kernels.fill, kernels.changed = fill, changed
    return found


def replayed(bench: GpuSession, module: Any, plan: Plan, memory: PlanMemory) -> dict[str, int]:
    case = MeasuredCase(bench, module, PlannedCase(case=begun(plan.size), plan=plan), memory)
    outcome = HostCheck(bench.problem).confirm(verify_case(bench, case))
    assert outcome.error
    return {"relocated": bool(memory.relocated), "wrong": outcome.error.wrong}


if __name__ == "__main__":
    main()
