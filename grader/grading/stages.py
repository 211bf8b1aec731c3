"""The stages in a row, in the simulator or on a GPU. They raise what ends a grading early."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import msgspec

from grader.backends.gpu.device import GpuDevice
from grader.backends.protocol import CaseOutcome, PlannedCase, Progress, refused
from grader.backends.simulator.device import CpuDevice
from grader.compile.building import compile_submission
from grader.errors import GraderError, MachineError, OutOfTime, Rejected
from grader.grading.document import build_info, launches_of
from grader.hardware import gpus
from grader.judging import scoring
from grader.judging import verdicts as judge
from grader.labs.lab import Case, Lab
from grader.ladder.document import Ladder
from grader.model import (
    Build,
    BuildInfo,
    CaseResult,
    Explanation,
    Finding,
    GpuInfo,
    KernelLaunch,
    Launch,
    LineCount,
    Mnk,
    Plan,
    Record,
    Score,
    Submission,
    Verdict,
)
from grader.performance import sass
from grader.performance.explanation import explain_speed
from grader.record.recording import record_plans
from grader.sandbox.running import Sandbox
from grader.toolchain.discovery import Toolchain
from ptxsim.frontend.interface import Interface


class Bench(Record):
    """What all submissions of one command share."""

    lab: Lab
    toolchain: Toolchain
    sandbox: Sandbox
    gpu_arch: str | None = None  # "sm_90": grade on the GPU at hand; None: in the simulator
    explain: bool = True  # say why a right kernel is as fast as it is; takes a second or two
    ladders: tuple[Ladder, ...] = ()  # to say where a submission stands; the first that fits


class Ran(Record):
    """What the stages gave, as far as they came."""

    verdict: Verdict
    error: str | None = None
    build: BuildInfo | None = None
    cases: tuple[CaseResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    lines: tuple[LineCount, ...] = ()
    printed: str = ""
    launches: tuple[KernelLaunch, ...] = ()
    gpu: GpuInfo | None = None
    score: Score | None = None
    explanation: Explanation | None = None


def run(submission: Submission, bench: Bench, device: CpuDevice, progress: Progress) -> Ran:
    lab = bench.lab
    progress("compiling", "")
    built = compile_submission(
        submission,
        bench.toolchain,
        bench.sandbox,
        arch=f"sm_{lab.architectures[0]}",
        compile_s=lab.limits.compile_s,
        memory_mb=lab.limits.memory_mb,
    )
    declared = device.read(built, str(submission.folder), progress)
    cases = sorted(lab.cpu, key=lambda case: case.size.flops)
    largest = _largest(lab).size
    sizes = [case.size for case in cases]
    progress("recording the launches", f"for {len(cases)} sizes")
    plans = _recorded(
        built, declared, submission, [*sizes, largest] if bench.explain else sizes, bench
    )
    outcomes, planned = _told_apart(cases, plans)
    if planned:
        outcomes += device.run(built, str(submission.folder), planned, lab, progress)
    results = judge.judge_cases(cases, outcomes, lab.rules)
    findings = judge.merge_findings(outcomes)
    verdict = judge.overall(results)
    worth = verdict is Verdict.AC or judge.only_slow(results, findings)
    return Ran(
        verdict=verdict,
        build=build_info(built),
        cases=results,
        findings=findings,
        lines=judge.line_counts(outcomes),
        printed=next((outcome.printed for outcome in outcomes if outcome.printed), ""),
        launches=launches_of(planned),
        explanation=_explained(built, _plan_of(largest, plans), submission, bench, device, progress)
        if worth
        else None,
    )


def run_on_gpu(submission: Submission, bench: Bench, device: CpuDevice, progress: Progress) -> Ran:
    """The real grade; ``device`` is the simulator, which runs beside the GPU."""
    # The GPU's build is another than the simulator's; somebody else has to read it.
    with CpuDevice(bench.sandbox, bench.lab.limits) as reader:
        return _run_on_gpu(submission, bench, device, reader, progress)


def _run_on_gpu(
    submission: Submission, bench: Bench, device: CpuDevice, reader: CpuDevice, progress: Progress
) -> Ran:
    assert bench.gpu_arch is not None
    lab = bench.lab
    with ThreadPoolExecutor(max_workers=1) as pool, ExitStack() as ending, GpuDevice() as gpu:
        # Whatever ends this early must not wait for the simulator.
        ending.callback(device.__exit__, None, None, None)
        simulated = pool.submit(_simulated, submission, bench, device)
        progress("compiling", "")
        built = compile_submission(
            submission,
            bench.toolchain,
            bench.sandbox,
            arch=bench.gpu_arch,
            compile_s=lab.limits.compile_s,
            memory_mb=lab.limits.memory_mb,
        )
        declared = reader.read(built, str(submission.folder), progress)
        # By growing size: one that takes too long costs the sizes above it only.
        cases = sorted((*lab.correctness, *lab.performance), key=lambda case: case.size.flops)
        progress("recording the launches", f"for {len(cases)} sizes")
        recorded = _recorded(built, declared, submission, [case.size for case in cases], bench)
        outcomes, planned = _told_apart(cases, recorded)
        plans = [case.plan for case in planned]
        notes = reader.tensor_cores(plans)
        notes = notes or sass.find_tensor_cores(_launched(_machine_code(built, bench), plans))
        if notes and lab.rules.tensor_cores == "forbid":
            place = f" at {notes[0].file}:{notes[0].line}" if notes[0].file else ""
            words = f"tensor-core{place}: this lab forbids tensor cores"
            raise Rejected(Verdict.RF, words, notes, build_info(built))
        if planned:
            outcomes += gpu.run(built, str(submission.folder), planned, lab, progress)
        progress("simulating", "beside the GPU")
        seen = simulated.result()
    results = judge.judge_cases(cases, outcomes, lab.rules)
    verdict = judge.overall(results)
    fails = lab.rules.findings == "fail" and verdict is Verdict.AC
    if fails and seen.verdict not in (Verdict.AC, Verdict.IE):
        verdict = seen.verdict
    score = scoring.score(lab.performance, results, lab.scoring)
    if score is not None and verdict is not Verdict.AC:
        score = msgspec.structs.replace(score, total=0.0)
    findings = (*judge.merge_findings(outcomes), *notes, *seen.findings)
    slow = judge.only_slow(results, findings) and seen.verdict in (Verdict.AC, Verdict.IE)
    card = gpus.of(gpu.gpu) if gpu.gpu and (verdict is Verdict.AC or slow) else None
    return Ran(
        verdict=verdict,
        build=build_info(built),
        cases=results,
        findings=findings,
        lines=seen.lines,
        printed=seen.printed,
        gpu=gpu.gpu,
        launches=launches_of(planned),
        score=score,
        explanation=_explained(
            built, _plan_of(_largest(lab).size, plans), submission, bench, reader, progress, card
        )
        if card
        else None,
    )


def _simulated(submission: Submission, bench: Bench, device: CpuDevice) -> Ran:
    """What the simulator sees; that it cannot grade something is no fault of the submission."""
    try:
        # Blocks that wait for each other need not fit more than this GPU.
        assert bench.gpu_arch is not None
        here = int("".join(filter(str.isdigit, bench.gpu_arch)))
        lab = msgspec.structs.replace(bench.lab, architectures=(*bench.lab.architectures, here))
        quiet = msgspec.structs.replace(bench, lab=lab, explain=False)  # the GPU's is explained
        return run(submission, quiet, device, lambda _stage, _detail: None)
    except Rejected as refusal:
        return Ran(verdict=refusal.verdict, findings=refusal.findings)
    except MachineError as failure:
        return Ran(verdict=Verdict.IE, error=str(failure))
    except OSError as failure:
        return Ran(verdict=Verdict.IE, error=str(MachineError.of(failure)))


def _explained(
    built: Build,
    plan: Plan | None,
    submission: Submission,
    bench: Bench,
    simulator: CpuDevice,
    progress: Progress,
    card: gpus.Gpu | None = None,
) -> Explanation | None:
    """Why it is as fast as it is, at the size of ``plan``. card: graded on."""
    if not bench.explain or plan is None:
        return None
    progress("explaining", "")
    folder = str(submission.folder)
    try:
        return explain_speed(
            built, folder, plan, bench.toolchain, bench.sandbox, simulator, gpu=card
        )
    except OutOfTime:
        raise
    except GraderError as failure:  # the verdict stands, whatever cannot be explained
        progress("not explained:", str(failure))
    except OSError as failure:
        progress("not explained:", str(MachineError.of(failure)))
    except Exception:  # a fault of ours
        traceback.print_exc()
    return None


def _largest(lab: Lab) -> Case:
    """Of the timed sizes: the one to explain."""
    return max(lab.performance, key=lambda case: case.size.flops)


def _plan_of(size: Mnk, plans: Iterable[Plan | Rejected]) -> Plan | None:
    found = (plan for plan in plans if isinstance(plan, Plan))
    return next((plan for plan in found if plan.size == size), None)


def _recorded(
    built: Build,
    declared: Interface,
    submission: Submission,
    sizes: Sequence[Mnk],
    bench: Bench,
) -> tuple[Plan | Rejected, ...]:
    return record_plans(
        built,
        submission,
        sizes,
        bench.toolchain,
        bench.sandbox,
        declared=declared,
        record_s=bench.lab.limits.record_s,
        memory_mb=bench.lab.limits.memory_mb,
    )


def _told_apart(
    cases: Sequence[Case], plans: Sequence[Plan | Rejected]
) -> tuple[list[CaseOutcome], list[PlannedCase]]:
    """The cases that recording refused, and the others with their plans."""
    outcomes: list[CaseOutcome] = []
    planned: list[PlannedCase] = []
    # Fewer plans after an endless host loop; one more where a larger size is explained.
    for case, plan in zip(cases, plans, strict=False):
        if isinstance(plan, Plan):
            planned.append(PlannedCase(id=case.id, plan=plan))
        else:
            outcomes.append(refused(case.id, case.size, plan))
    return outcomes, planned


def _machine_code(built: Build, bench: Bench) -> tuple[sass.Function, ...]:
    """() where there is no nvdisasm: doctor says how to get it."""
    if bench.toolchain.nvdisasm is None:
        return ()
    return sass.disassemble(built.cubin, bench.toolchain, bench.sandbox)


def _launched(
    functions: tuple[sass.Function, ...], plans: Sequence[Plan]
) -> tuple[sass.Function, ...]:
    """The kernels that ``plans`` launch, and what they may call."""
    kernels = {o.kernel for plan in plans for o in plan.operations if isinstance(o, Launch)}
    return tuple(f for f in functions if f.name in kernels or not f.entry)
