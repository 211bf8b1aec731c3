"""One submission through every stage: folder → ``Result``.

A stage that rejects the student's work raises ``Rejected``; one that fails through the machine's
fault raises ``MachineError``. Both become a result here, so every graded folder has one.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path

import msgspec

import grader
from grader.base import (
    SCHEMA,
    SCHEMA_VERSION,
    CaseResult,
    Environment,
    Explanation,
    Finding,
    GpuInfo,
    Kind,
    LabRef,
    Rejected,
    Result,
    SizeGroup,
    SlurmInfo,
    Submission,
    SubmissionRef,
    Verdict,
    gpus,
    one_line,
)
from grader.explain import sass, with_host_calls
from grader.judge import rulings
from grader.judge.launches import with_refused_calls
from grader.judge.program import Bench, Explaining, Program, build_program
from grader.judge.scoring import Yardsticks, measures
from grader.judge.simulated import (
    ENDINGS,
    Group,
    StageResults,
    end_early,
    grade_in_simulator,
    record_group,
    results_of,
    sealed,
    slurm_job,
)
from grader.judge.verdicts import broken_rule
from grader.labs import load_listed, load_submission, source_texts, student_of
from grader.results import standing
from grader.run import CaseOutcome, CpuDevice, GpuDevice, Progress, quietly
from ptxsim.engine import engine_digest
from ptxsim.message import phrase
from ptxsim.records import Launch, Record


class Graded(Record):
    """A result, and what the terminal shows besides it."""

    result: Result
    contents: Mapping[str, bytes]  # file name → what was graded; empty if nothing could be read
    printed: str  # by device printf in the smallest case that printed anything

    @property
    def sources(self) -> dict[str, str]:
        """File name → text, as the compiler sees it; findings point into it."""
        return source_texts(self.contents)


def grade(
    path: Path,
    bench: Bench,
    progress: Progress,
    *,
    student: str | None = None,
    submitted: str | None = None,
    gpu: GpuDevice | None = None,
) -> Graded:
    """Grade the submission ``path``; calls ``progress`` for each stage.

    student: whose it is, if a list says so; ``path`` is then a folder or a single file. Without it,
    ``path`` is a folder named like the student. submitted: when it was handed in (ISO 8601), if
    known; it goes into the result. gpu: one that stands by already.

    On a GPU the simulator runs beside it at the lab's cpu sizes: the result includes its findings,
    and ``rules.findings`` says whether they decide.

    Raises SubmissionError if there is no submission to grade. Any other fault is in the result.
    """
    main = bench.lab.problem.interface.main

    def load() -> Submission:
        return load_submission(path, main) if student is None else load_listed(path, student, main)

    name = student_of(path) if student is None else student
    return _grade(name, load, bench, progress, gpu, submitted)


def grade_loaded(submission: Submission, bench: Bench, progress: Progress) -> Graded:
    """Grade a submission that has been read already."""
    return _grade(submission.student, lambda: submission, bench, progress)


def _grade(
    name: str,
    load: Callable[[], Submission],
    bench: Bench,
    progress: Progress,
    gpu: GpuDevice | None = None,
    submitted: str | None = None,
) -> Graded:
    nothing = hashlib.sha256().hexdigest()
    reference = SubmissionRef(student=name, sha256=nothing, files=(), submitted=submitted)
    contents: Mapping[str, bytes] = {}
    slurm: SlurmInfo | None = None
    with CpuDevice(bench.sandbox, bench.lab.limits, bench.lab.problem_ref) as device:
        try:
            slurm = slurm_job()
            submission = load()
            contents = submission.contents
            reference = msgspec.structs.replace(
                reference, sha256=submission.sha256, files=submission.files
            )
            if bench.gpu_arch is None:
                made = grade_in_simulator(submission, bench, device, progress)
            else:
                gpu = gpu or GpuDevice(bench.lab.problem_ref)
                made = grade_on_gpu(submission, bench, device, gpu, progress)
        except ENDINGS as failure:
            made = end_early(failure)
    result = _result(reference, bench, made, slurm)
    return Graded(result=result, contents=contents, printed=made.printed)


def _summarised(case: CaseResult) -> CaseResult:
    """Without the times of single repetitions."""
    if case.timing is None:
        return case
    runs = tuple(msgspec.structs.replace(run, repetitions=()) for run in case.timing.runs)
    return msgspec.structs.replace(case, timing=msgspec.structs.replace(case.timing, runs=runs))


def _result(
    reference: SubmissionRef, bench: Bench, made: StageResults, slurm: SlurmInfo | None
) -> Result:
    problem = bench.lab.problem.info()
    ladders = [ladder for ladder in bench.ladders if ladder.problem.like(problem)]
    return Result(
        schema=SCHEMA,
        version=SCHEMA_VERSION,
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        lab=LabRef(id=bench.lab.id, sha256=bench.lab.sha256),
        problem=problem,
        submission=reference,
        environment=Environment(
            grader=grader.__version__,
            device="cpu" if bench.gpu_arch is None else "gpu",
            gpu=made.gpu,
            cuda=bench.toolchain.cuda_version,
            host=one_line(platform.node()),
            slurm=slurm,
            sandbox=bench.sandbox.kind,
            exposed=bench.sandbox.exposed,
            engine=engine_digest(),
        ),
        build=made.build,
        cases=tuple(map(_summarised, made.cases)),
        findings=made.findings,
        lines=made.lines,
        verdict=made.verdict,
        score=made.score,
        error=made.error,
        explanation=made.explanation,
        standing=standing(made.cases, made.gpu, ladders),
        launches=made.launches,
        groups=made.groups,
    )


# --- on a GPU ----------------------------------------------------------------------------------

_Code = Callable[[], tuple[sass.SassFunction, ...]]  # the machine code, once it is read


def grade_on_gpu(
    submission: Submission, bench: Bench, device: CpuDevice, gpu: GpuDevice, progress: Progress
) -> StageResults:
    """Grade on the GPU at hand; ``device`` is the simulator, which runs beside it.

    Raises one of ``ENDINGS``.
    """
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
        simulation = pool.submit(_simulate, submission, bench, device)
        program = build_program(submission, bench, lab.arch_on(bench.gpu_arch), reader, progress)
        code = pool.submit(_disassemble, program)
        group = record_group(program, (*lab.correctness, *lab.performance), progress)
        explanations: list[Future[Explanation | None]] = []

        def explain(info: GpuInfo) -> None:
            """Begin beside the measurement, before anyone knows whether the submission is right."""
            work = Explaining(program, group.plans, gpus.of(info), code.result)
            explanations.append(pool.submit(ending.enter_context(work).result, reader, quietly))

        outcomes, notes = _run(program, group, gpu, reader, code.result, progress, explain)
        progress(phrase("simulating"), phrase("beside the GPU"))
        simulated = simulation.result()
        by = measures(lab, gpu.gpu.name, bench.ladders) if gpu.gpu else None
        # Two programs that run at the same time can signal to each other through the machine's
        # load, so the hidden sizes begin when all that is public has ended.
        hidden = _grade_hidden(program, gpu, reader, code.result, outcomes, progress, by)
        warned = {finding.subject for each in outcomes for finding in each.findings}
        others = (
            finding
            for finding in simulated.findings
            if finding.kind is not Kind.LIBRARY
            and not (finding.kind is Kind.REFUSED_CALL and finding.subject in warned)
        )
        ruling = rulings.on_gpu(
            group.cases,
            outcomes,
            lab,
            gpu=gpu.gpu,
            simulated=simulated.verdict,
            notes=(*notes, *group.notes, *others),
            by=by,
            hidden=hidden,
        )
        explanation = explanations[0].result() if explanations and ruling.explain else None
        if explanation is not None:
            plans = [case.plan for case in group.planned]
            explanation = with_host_calls(explanation, plans, ruling.cases)
    return msgspec.structs.replace(
        results_of(ruling, program, group),
        lines=simulated.lines,
        printed=simulated.printed,
        gpu=gpu.gpu,
        explanation=explanation,
    )


def _run(
    program: Program,
    group: Group,
    gpu: GpuDevice,
    reader: CpuDevice,
    code: _Code,
    progress: Progress,
    ready: Callable[[GpuInfo], None] = lambda _: None,
) -> tuple[tuple[CaseOutcome, ...], tuple[Finding, ...]]:
    """Run the group on the GPU. Return the outcomes and the notes on tensor cores.

    Raises Rejected where the lab forbids the tensor cores that PTX or machine code show.
    """
    lab, outcomes = program.bench.lab, group.refusals
    plans = [case.plan for case in group.planned]

    def permitted(notes: tuple[Finding, ...]) -> tuple[Finding, ...]:
        if broken := broken_rule(notes, lab.rules, lab.problem.arithmetic):
            raise Rejected(Verdict.RF, broken, notes, program.info)
        return notes

    notes = permitted(reader.tensor_cores(plans))
    if plans:
        outcomes += gpu.run(program.build, program.root, group.planned, lab, progress, ready)
    # PTX does not show calls through pointers. nvdisasm takes a while: the GPU does not wait.
    operations = [o for plan in plans for o in (*plan.setup, *plan.operations)]
    kernels = {o.kernel for o in operations if isinstance(o, Launch)}
    # A function that is no entry may be called by any of them.
    launched = (f for f in code() if f.name in kernels or not f.entry)
    in_code = permitted(sass.find_tensor_cores(tuple(launched)))
    outcomes = tuple(with_refused_calls(outcomes, group.plans, lab.architectures))
    return outcomes, notes or in_code


def _grade_hidden(
    program: Program,
    gpu: GpuDevice,
    reader: CpuDevice,
    code: _Code,
    public: Sequence[CaseOutcome],
    progress: Progress,
    by: Yardsticks | None,
) -> SizeGroup | None:
    """Take the hidden sizes the same way, and reduce what comes out to a ``SizeGroup``.

    public: the outcomes of the others; if one of them ended its worker, these do not run.
    """
    lab, hidden = program.bench.lab, program.bench.lab.hidden
    if hidden is None:
        return None
    cases = (*hidden.correctness, *hidden.performance)
    if not hidden.known:
        return rulings.not_run(hidden, 0)
    if gpu.gpu is None or any(outcome.stopped in ("time", "crash") for outcome in public):
        return rulings.not_run(hidden, len(cases))
    try:
        with sealed(), gpu.successor() as other:
            group = record_group(program, cases, quietly, located=False)
            progress(phrase("running on the GPU"), phrase("the hidden sizes"))
            outcomes, _ = _run(program, group, other, reader, code, quietly)
            return rulings.hidden_on_gpu(group.cases, outcomes, public, lab, gpu=gpu.gpu, by=by)
    except Rejected as refusal:
        return rulings.refused(hidden, len(cases), refusal)


def _simulate(submission: Submission, bench: Bench, device: CpuDevice) -> StageResults:
    """Grade in the simulator. If it cannot grade the submission, nobody is at fault."""
    try:
        # Blocks that wait for each other need not fit more than this GPU.
        assert bench.gpu_arch is not None
        known = (*bench.lab.architectures, bench.gpu_arch)
        lab = msgspec.structs.replace(bench.lab, architectures=known)
        if lab.rules.findings == "warn":  # nothing of hidden sizes would be shown
            lab = msgspec.structs.replace(lab, hidden=None)
        quiet = msgspec.structs.replace(bench, lab=lab, explain=False)  # the GPU's is explained
        return grade_in_simulator(submission, quiet, device, quietly)
    except ENDINGS as failure:
        return end_early(failure)


def _disassemble(program: Program) -> tuple[sass.SassFunction, ...]:
    """Return () without nvdisasm; ``grade doctor`` says how to install it."""
    bench = program.bench
    if bench.toolchain.nvdisasm is None:
        return ()
    return sass.disassemble(program.build.cubin, bench.toolchain, bench.sandbox)
