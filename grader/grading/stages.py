"""All stages in order, in the simulator or on a GPU. They raise if a grading ends early."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import msgspec

from grader.backends.gpu.device import GpuDevice
from grader.backends.protocol import CaseOutcome, PlannedCase, Progress, refused
from grader.backends.simulator.device import CpuDevice
from grader.errors import MachineError, OutOfTime, Rejected
from grader.grading import timed_sizes
from grader.grading.document import build_info, launches_of, with_kernels
from grader.grading.explaining import Explaining
from grader.grading.preparing import Bench, compiled, recorded
from grader.hardware import gpus
from grader.judging import libraries, rulings
from grader.judging import verdicts as judge
from grader.labs.lab import Case, Lab
from grader.model import (
    Build,
    BuildInfo,
    CaseResult,
    Explanation,
    Finding,
    GpuInfo,
    KernelLaunch,
    Kind,
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
from grader.performance.advice import with_host_calls
from ptxsim.frontend.interface import Interface


class Ran(Record):
    """The results of the stages, as far as they ran."""

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


ENDINGS = (Rejected, OutOfTime, MachineError, OSError)  # of a grading that cannot go on


def ended(failure: Rejected | OutOfTime | MachineError | OSError) -> Ran:
    """What is left of a grading that ``failure`` ended."""
    if isinstance(failure, OSError):  # such as a full disk or a deleted folder
        failure = MachineError.of(failure)
    verdict, error = rulings.of_failure(failure), str(failure)
    if isinstance(failure, Rejected):
        return Ran(verdict=verdict, error=error, build=failure.build, findings=failure.findings)
    return Ran(verdict=verdict, error=error)


def run(submission: Submission, bench: Bench, device: CpuDevice, progress: Progress) -> Ran:
    lab = bench.lab
    progress("compiling", "")
    built = compiled(submission, bench, f"sm_{lab.architectures[0]}")
    declared = device.read(built, str(submission.folder), progress)
    cases = sorted(lab.cpu, key=lambda case: case.size.flops)
    # On a GPU the timed sizes run for themselves; here it is seen whether they could.
    timed = [each.size for each in lab.performance] if bench.gpu_arch is None else []
    sizes = [*(case.size for case in cases), *timed]
    progress("recording the launches", f"for {len(sizes)} sizes")
    plans = recorded(built, declared, submission, sizes, bench)
    used = _libraries(built, declared, plans, bench)
    larger = plans[len(cases) :]
    outcomes, planned = _told_apart(cases, plans)
    with _explaining(built, plans, submission, bench) as explaining:
        if planned:
            outcomes += device.run(built, str(submission.folder), planned, lab, progress)
        ruling = rulings.in_simulator(cases, outcomes, lab.rules, seen=used)
        beyond = timed_sizes.Beyond()
        if ruling.verdict is Verdict.AC:
            beyond = timed_sizes.look_at(
                timed,
                larger,
                lab.architectures,
                lambda those, arch: recorded(built, declared, submission, those, bench, arch),
            )
            if beyond.verdict is Verdict.AC:
                folder = str(submission.folder)
                beyond = timed_sizes.probe(larger, built, folder, device, progress)
            ruling = rulings.at_timed_sizes(ruling, beyond.verdict, beyond.findings)
        explanation = explaining.result(device, progress) if ruling.explain else None
    return Ran(
        verdict=ruling.verdict,
        error=beyond.words or None,
        build=build_info(built),
        cases=with_kernels(ruling.cases, plans),
        findings=ruling.findings,
        lines=judge.line_counts(outcomes),
        printed=next((outcome.printed for outcome in outcomes if outcome.printed), ""),
        launches=launches_of(planned),
        explanation=explanation,
    )


def run_on_gpu(submission: Submission, bench: Bench, device: CpuDevice, progress: Progress) -> Ran:
    """The real grade; ``device`` is the simulator, which runs beside the GPU."""
    # The GPU has a build of its own; a second worker reads it.
    with CpuDevice(bench.sandbox, bench.lab.limits) as reader:
        return _run_on_gpu(submission, bench, device, reader, progress)


def _run_on_gpu(
    submission: Submission, bench: Bench, device: CpuDevice, reader: CpuDevice, progress: Progress
) -> Ran:
    assert bench.gpu_arch is not None
    lab = bench.lab
    with ThreadPoolExecutor(max_workers=3) as pool, ExitStack() as ending, GpuDevice() as gpu:
        # If this ends early, it must not wait for the simulator, nor for an explanation.
        ending.callback(device.__exit__, None, None, None)
        ending.callback(reader.__exit__, None, None, None)
        simulated = pool.submit(_simulated, submission, bench, device)
        progress("compiling", "")
        built = compiled(submission, bench, bench.gpu_arch)
        code = pool.submit(_machine_code, built, bench)
        declared = reader.read(built, str(submission.folder), progress)
        # In increasing order: a size that takes too long costs only the larger ones.
        cases = sorted((*lab.correctness, *lab.performance), key=lambda case: case.size.flops)
        progress("recording the launches", f"for {len(cases)} sizes")
        found = recorded(built, declared, submission, [case.size for case in cases], bench)
        outcomes, planned = _told_apart(cases, found)
        plans = [case.plan for case in planned]
        used = _libraries(built, declared, plans, bench)
        notes = reader.tensor_cores(plans)
        notes = notes or sass.find_tensor_cores(_launched(code.result(), plans))
        broken = judge.broken_rule(notes, lab.rules)
        if broken:
            raise Rejected(Verdict.RF, broken, notes, build_info(built))
        explaining: list[Future[Explanation | None]] = []

        def explain(info: GpuInfo) -> None:
            """Beside the measurement, before anyone knows whether the submission is right."""
            work = ending.enter_context(
                _explaining(built, plans, submission, bench, gpus.of(info), code.result)
            )
            explaining.append(pool.submit(work.result, reader, _quietly))

        if planned:
            outcomes += gpu.run(built, str(submission.folder), planned, lab, progress, explain)
        progress("simulating", "beside the GPU")
        seen = simulated.result()
        others = (finding for finding in seen.findings if finding.kind is not Kind.LIBRARY)
        ruling = rulings.on_gpu(
            cases,
            outcomes,
            lab,
            gpu=gpu.gpu,
            simulated=seen.verdict,
            seen=(*notes, *used, *others),
        )
        explanation = None
        if explaining and ruling.explain:
            explanation = explaining[0].result()
            if explanation is not None:
                explanation = with_host_calls(explanation, plans, ruling.cases)
    return Ran(
        verdict=ruling.verdict,
        build=build_info(built),
        cases=with_kernels(ruling.cases, found),
        findings=ruling.findings,
        lines=seen.lines,
        printed=seen.printed,
        gpu=gpu.gpu,
        launches=launches_of(planned),
        score=ruling.score,
        explanation=explanation,
    )


def _simulated(submission: Submission, bench: Bench, device: CpuDevice) -> Ran:
    """What the simulator sees. If it cannot grade the submission, nobody is at fault."""
    try:
        # Blocks that wait for each other need not fit more than this GPU.
        assert bench.gpu_arch is not None
        here = int("".join(filter(str.isdigit, bench.gpu_arch)))
        lab = msgspec.structs.replace(bench.lab, architectures=(*bench.lab.architectures, here))
        quiet = msgspec.structs.replace(bench, lab=lab, explain=False)  # the GPU's is explained
        return run(submission, quiet, device, _quietly)
    except ENDINGS as failure:
        return ended(failure)


def _quietly(_stage: str, _detail: str) -> None:
    pass


def _explaining(
    built: Build,
    plans: Iterable[Plan | Rejected],
    submission: Submission,
    bench: Bench,
    card: gpus.Gpu | None = None,
    code: Callable[[], tuple[sass.Function, ...]] | None = None,
) -> Explaining:
    """At the largest of the timed sizes. card: graded on, if known. code: its machine code, if
    somebody reads it anyway."""
    plan = _plan_of(_largest(bench.lab).size, plans) if bench.explain else None
    folder = str(submission.folder)
    return Explaining(built, folder, plan, bench.toolchain, bench.sandbox, card=card, code=code)


def _largest(lab: Lab) -> Case:
    """The largest timed size, which is explained."""
    return max(lab.performance, key=lambda case: case.size.flops)


def _plan_of(size: Mnk, plans: Iterable[Plan | Rejected]) -> Plan | None:
    found = (plan for plan in plans if isinstance(plan, Plan))
    return next((plan for plan in found if plan.size == size), None)


def _libraries(
    built: Build, declared: Interface, plans: Iterable[Plan | Rejected], bench: Bench
) -> tuple[Finding, ...]:
    """The library kernels that ``plans`` launch. Raises Rejected where the lab forbids them."""
    launched = (plan for plan in plans if isinstance(plan, Plan))
    notes = libraries.library_kernels(launched, declared)
    refusal = libraries.refusal(notes, bench.lab.rules, build_info(built))
    if refusal is not None:
        raise refusal
    return notes


def _told_apart(
    cases: Sequence[Case], plans: Sequence[Plan | Rejected]
) -> tuple[list[CaseOutcome], list[PlannedCase]]:
    """The cases that the recorder or the lab's rules rejected, and the others with their plans."""
    outcomes: list[CaseOutcome] = []
    planned: list[PlannedCase] = []
    # Fewer plans after an endless host loop; more where the timed sizes are planned, too.
    for case, plan in zip(cases, plans, strict=False):
        if isinstance(plan, Plan):
            planned.append(PlannedCase(id=case.id, plan=plan))
        else:
            outcomes.append(refused(case.id, case.size, plan))
    return outcomes, planned


def _machine_code(built: Build, bench: Bench) -> tuple[sass.Function, ...]:
    """() without nvdisasm; ``grade doctor`` says how to install it."""
    if bench.toolchain.nvdisasm is None:
        return ()
    return sass.disassemble(built.cubin, bench.toolchain, bench.sandbox)


def _launched(
    functions: tuple[sass.Function, ...], plans: Sequence[Plan]
) -> tuple[sass.Function, ...]:
    """The kernels that ``plans`` launch, and the functions that they may call."""
    operations = [o for plan in plans for o in (*plan.setup, *plan.operations)]
    kernels = {o.kernel for o in operations if isinstance(o, Launch)}
    return tuple(f for f in functions if f.name in kernels or not f.entry)
