"""All stages of a grading on a GPU, in order."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack

import msgspec

from grader.backends.gpu.device import GpuDevice
from grader.backends.protocol import Progress
from grader.backends.simulator.device import CpuDevice
from grader.errors import Rejected
from grader.grading import hidden_sizes
from grader.grading.document import build_info, launches_of, with_kernels
from grader.grading.explaining import Explaining, quietly
from grader.grading.in_simulator import run_in_simulator
from grader.grading.measures import measures
from grader.grading.planning import told_apart, used_libraries
from grader.grading.preparing import Bench, compiled, recorded
from grader.grading.ran import ENDINGS, Ran, ended
from grader.hardware import gpus
from grader.judging import rulings
from grader.judging import verdicts as judge
from grader.model import (
    NOTHING,
    Build,
    Explanation,
    Finding,
    GpuInfo,
    Kind,
    Launch,
    Plan,
    Submission,
    Verdict,
    counted,
    phrase,
)
from grader.performance import sass
from grader.performance.advice import with_host_calls


def run_on_gpu(
    submission: Submission, bench: Bench, device: CpuDevice, gpu: GpuDevice, progress: Progress
) -> Ran:
    """The real grade; ``device`` is the simulator, which runs beside the GPU."""
    assert bench.gpu_arch is not None
    lab = bench.lab
    with (
        # The GPU has a build of its own; a second worker reads it.
        CpuDevice(bench.sandbox, lab.limits) as reader,
        ThreadPoolExecutor(max_workers=3) as pool,
        ExitStack() as ending,
        gpu,
    ):
        # If this ends early, it must not wait for the simulator, nor for an explanation.
        ending.callback(device.__exit__, None, None, None)
        ending.callback(reader.__exit__, None, None, None)
        simulated = pool.submit(_simulated, submission, bench, device)
        progress(phrase("compiling"), NOTHING)
        built = compiled(submission, bench, lab.arch_on(bench.gpu_arch))
        code = pool.submit(_machine_code, built, bench)
        declared = reader.read(built, str(submission.folder), progress)
        # In increasing order: a size that takes too long costs only the larger ones.
        every = (*lab.correctness, *lab.performance)
        cases = sorted(every, key=lambda case: lab.problem.amount(case.size))
        progress(
            phrase("recording the launches"),
            counted("for {count} size", "for {count} sizes", len(cases)),
        )
        found = recorded(built, declared, submission, [case.size for case in cases], bench)
        outcomes, planned = told_apart(cases, found)
        plans = [case.plan for case in planned]
        used = used_libraries(built, declared, plans, bench)

        def permitted(tensor_cores: tuple[Finding, ...]) -> tuple[Finding, ...]:
            """Raises Rejected where the lab forbids them."""
            if broken := judge.broken_rule(tensor_cores, lab.rules, lab.problem.arithmetic):
                raise Rejected(Verdict.RF, broken, tensor_cores, build_info(built))
            return tensor_cores

        def in_ptx(launched: Sequence[Plan]) -> tuple[Finding, ...]:
            return permitted(reader.tensor_cores(launched))

        def in_code(launched: Sequence[Plan]) -> tuple[Finding, ...]:
            """Calls through pointers show in the machine code alone."""
            return permitted(sass.find_tensor_cores(_launched(code.result(), launched)))

        notes = in_ptx(plans)
        secret: hidden_sizes.OnGpu | None = None
        if lab.hidden is not None and lab.hidden.known:
            # Two programs that run at the same time can signal to each other through the machine's
            # load: host code at a hidden size, to host code at a public one.
            wait([simulated])
            secret = hidden_sizes.for_gpu(
                submission, built, declared, bench, lambda each: (in_ptx(each), in_code(each))
            )
        begun: list[Future[Explanation | None]] = []

        def explain(info: GpuInfo) -> None:
            """Beside the measurement, before anyone knows whether the submission is right."""
            work = Explaining(built, plans, submission, bench, gpus.of(info), code.result)
            begun.append(pool.submit(ending.enter_context(work).result, reader, quietly))

        if planned:
            with hidden_sizes.closed(progress, lab) as told:
                outcomes += gpu.run(
                    built,
                    str(submission.folder),
                    planned,
                    lab,
                    told,
                    explain,
                    later=secret.planned if secret else (),
                )
        seen_in_code = in_code(plans)  # nvdisasm takes a while: the GPU does not wait for it
        outcomes, of_hidden = hidden_sizes.told_apart_again(outcomes)
        progress(phrase("simulating"), phrase("beside the GPU"))
        seen = simulated.result()
        by = measures(lab, gpu.gpu.name, bench.ladders) if gpu.gpu else None
        hidden = hidden_sizes.ruling(secret, of_hidden, outcomes, lab, gpu.gpu, by)
        others = (finding for finding in seen.findings if finding.kind is not Kind.LIBRARY)
        ruling = rulings.on_gpu(
            cases,
            outcomes,
            lab,
            gpu=gpu.gpu,
            simulated=seen.verdict,
            seen=(*(notes or seen_in_code), *used, *others),
            by=by,
            hidden=hidden,
        )
        explanation = begun[0].result() if begun and ruling.explain else None
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
        launches=launches_of(planned, lab.problem),
        score=ruling.score,
        explanation=explanation,
        groups=ruling.groups,
    )


def _simulated(submission: Submission, bench: Bench, device: CpuDevice) -> Ran:
    """What the simulator sees. If it cannot grade the submission, nobody is at fault."""
    try:
        # Blocks that wait for each other need not fit more than this GPU.
        assert bench.gpu_arch is not None
        known = (*bench.lab.architectures, bench.gpu_arch)
        lab = msgspec.structs.replace(bench.lab, architectures=known)
        if lab.rules.findings == "warn":  # nothing of hidden sizes would be told
            lab = msgspec.structs.replace(lab, hidden=None)
        quiet = msgspec.structs.replace(bench, lab=lab, explain=False)  # the GPU's is explained
        return run_in_simulator(submission, quiet, device, quietly)
    except ENDINGS as failure:
        return ended(failure)


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
