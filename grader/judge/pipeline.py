"""One submission through every stage. Whatever a stage raises becomes a result here, too, so every
graded folder has one."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import datetime, timezone
from pathlib import Path

import msgspec

import grader
from grader import base
from grader.build import SassFunction, find_tensor_cores
from grader.judge import rulings
from grader.judge.contents import with_contents
from grader.judge.launches import held_to_the_clock
from grader.judge.program import Code, GradingContext, Program, build_program
from grader.judge.scoring import measures
from grader.judge.second_build import with_second_build
from grader.judge.second_look import look_again
from grader.judge.verdicts import DECIDING, broken_rule
from grader.judge.walk import Group, Ran, grade_hidden, record_group, walk
from grader.judge.whole_program import grade_program
from grader.labs import Submission, load_listed, load_submission, source_texts, student_of
from grader.results import (
    SCHEMA,
    SCHEMA_VERSION,
    Environment,
    Judgement,
    LabRef,
    Result,
    SlurmInfo,
    SubmissionRef,
    standing,
)
from grader.run import CaseOutcome, CpuDevice, GpuDevice, Progress, quietly
from ptxsim import engine_digest
from ptxsim.findings import declared_shapes, with_indices
from ptxsim.plan import Launch, Plan, Record
from ptxsim.text import phrase


class Graded(Record):
    """A result, and what the terminal shows besides it."""

    result: Result
    contents: Mapping[str, bytes]  # file name → what was graded; empty if nothing could be read
    printed: str  # by device printf in the smallest case that printed anything
    explain: bool = False  # whether to say why it is as fast as it is

    @property
    def sources(self) -> dict[str, str]:
        """File name → text, as the compiler sees it; findings point into it."""
        return source_texts(self.contents)


class Watcher:
    """Looks on while a submission is graded; nothing of what it does counts."""

    def planned(
        self,
        program: Program,
        plans: Sequence[Plan | base.Rejected],
        simulator: CpuDevice,
        *,
        idle: bool = False,
        card: base.gpus.Gpu | None = None,
        code: Code | None = None,
    ) -> None:
        """Learn that a build and the plans of its timed sizes exist.

        idle: whether nobody else needs the simulator until ``ruled``. card: graded on, if known.
        code: the build's machine code, if somebody reads it anyway.
        """

    def ruled(self, ruling: rulings.Ruling) -> None:
        """Learn what the public sizes come to, while the devices are open and idle."""


def grade(
    work: Path | Submission,
    context: GradingContext,
    progress: Progress,
    *,
    student: str | None = None,
    submitted: str | None = None,
    gpu: GpuDevice | None = None,
    watcher: Watcher | None = None,
) -> Graded:
    """Grade a submission, which may have been read already; calls ``progress`` for each stage.

    student: whose it is, if a list says so; ``work`` is then a folder or a single file. Without it,
    ``work`` is a folder named like the student. submitted: when it was handed in (ISO 8601), if
    known; it goes into the result. gpu: one that stands by already. watcher: looks on.

    On a GPU the simulator runs beside it at the lab's cpu sizes: the result includes its findings,
    and ``rules.findings`` says whether they decide.

    Raises SubmissionError if there is no submission to grade. Any other fault is in the result.
    """
    name = work.student if isinstance(work, Submission) else student or student_of(work)
    nothing = hashlib.sha256().hexdigest()
    times = (submitted,) if submitted else ()
    reference = SubmissionRef(student=name, sha256=nothing, files=(), submitted=times)
    contents: Mapping[str, bytes] = {}
    slurm: SlurmInfo | None = None
    watcher = watcher or Watcher()
    task = context.lab.program
    device = CpuDevice(context.sandbox, context.lab.limits, context.lab.problem_ref)
    with nullcontext() if task else device:
        try:
            slurm = slurm_job()
            submission = _read(work, student, context.lab.problem.interface.main)
            contents = submission.contents
            reference = msgspec.structs.replace(
                reference, sha256=submission.sha256, files=submission.files
            )
            if task:
                contents = {**contents, **task.course}
                ruling = grade_program(submission, task, context, progress)
            elif context.gpu_arch is None:
                ruling = grade_in_simulator(submission, context, device, progress, watcher)
            else:
                gpu = gpu or GpuDevice(context.lab.problem_ref)
                ruling = grade_on_gpu(submission, context, device, gpu, progress, watcher)
        except rulings.FATAL as failure:
            ruling = rulings.from_failure(failure)
    result = _result(reference, context, _with_indices(ruling, contents), slurm)
    return Graded(result=result, contents=contents, printed=ruling.printed, explain=ruling.explain)


def _with_indices(ruling: rulings.Ruling, contents: Mapping[str, bytes]) -> rulings.Ruling:
    """Name elements of shared arrays as the sources do, with an index for each dimension."""
    if not ruling.findings:
        return ruling
    shapes = declared_shapes(source_texts(contents).values())
    findings = (
        msgspec.structs.replace(each, message=with_indices(each.message, shapes))
        for each in ruling.findings
    )
    return msgspec.structs.replace(ruling, findings=tuple(findings))


def _read(work: Path | Submission, student: str | None, main: str) -> Submission:
    if isinstance(work, Submission):
        return work
    return load_submission(work, main) if student is None else load_listed(work, student, main)


def _result(
    reference: SubmissionRef,
    context: GradingContext,
    ruling: rulings.Ruling,
    slurm: SlurmInfo | None,
) -> Result:
    problem = context.lab.problem.info()
    ladders = [ladder for ladder in context.ladders if ladder.problem.like(problem)]
    shown = "rungs" not in context.lab.withheld()
    stands = standing(ruling.cases, ruling.gpu, ladders) if shown else None
    judged = base.convert(msgspec.structs.replace(ruling, standing=stands), Judgement)
    return Result(
        schema=SCHEMA,
        version=SCHEMA_VERSION,
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        lab=LabRef(id=context.lab.id, sha256=context.lab.sha256),
        problem=problem,
        submission=reference,
        environment=Environment(
            grader=grader.__version__,
            device="cpu" if context.gpu_arch is None else "gpu",
            gpu=ruling.gpu,
            cuda=context.toolchain.cuda_version,
            host=base.one_line(platform.node()),
            slurm=slurm,
            sandbox=context.sandbox.kind,
            exposed=context.sandbox.exposed,
            engine=engine_digest(),
        ),
        **msgspec.structs.asdict(judged),
    )


def slurm_job() -> SlurmInfo | None:
    """The Slurm job that this process runs in, or None. Raises MachineError for invalid values."""
    job = _variable("SLURM_JOB_ID")
    if job is None:
        return None
    restarts = _variable("SLURM_RESTART_COUNT") or "0"
    if not (restarts.isascii() and restarts.isdecimal()):
        words = phrase("SLURM_RESTART_COUNT={restarts}: not a number; unset it")
        raise base.MachineError(words.given(restarts=restarts))
    return SlurmInfo(
        job=job,
        node=_variable("SLURMD_NODENAME") or base.one_line(platform.node()),
        partition=_variable("SLURM_JOB_PARTITION") or "",
        task=_variable("SLURM_ARRAY_TASK_ID"),
        restarts=int(restarts[:9]),
    )


def _variable(name: str) -> str | None:
    """A variable of the environment as UTF-8, which is all that a document can hold."""
    value = os.environ.get(name)
    return None if value is None else base.one_line(value)


def grade_in_simulator(
    submission: Submission,
    context: GradingContext,
    device: CpuDevice,
    progress: Progress,
    watcher: Watcher,
) -> rulings.Ruling:
    """Grade at the lab's cpu sizes. Raises one of ``rulings.FATAL``."""
    lab, hidden = context.lab, context.lab.hidden
    timed = context.gpu_arch is not None  # by a GPU, so that nobody need look at these sizes here

    def run(group: Group, progress: Progress) -> Ran:
        if not group.planned:
            return (), ()
        return device.run(program.built, program.root, group.planned, lab, progress), ()

    program = build_program(submission, context, lab.architectures[0], device, progress)
    group = record_group(program, lab.cpu, progress, larger=() if timed else lab.performance)
    watcher.planned(program, [plan for _, plan in group.larger.plans], device)
    public = walk(group, run, device, progress)
    public = with_second_build(group, public, device, progress)
    public = with_contents(group, public, device, progress)
    ruling = rulings.conclude(public, lab)
    watcher.ruled(ruling)
    # Last of all, so that nothing said of the others can depend on them.
    if hidden is not None:
        secret = grade_hidden(
            program,
            hidden.cpu,
            nullcontext(run),
            device,
            larger=() if timed else hidden.performance,
            wanted=ruling.verdict not in DECIDING,
        )
        ruling = rulings.conclude(public, lab, hidden=secret)
    return ruling


def grade_on_gpu(
    submission: Submission,
    context: GradingContext,
    device: CpuDevice,
    gpu: GpuDevice,
    progress: Progress,
    watcher: Watcher,
) -> rulings.Ruling:
    """Grade on the GPU at hand; ``device`` is the simulator, which runs beside it.

    Raises one of ``rulings.FATAL``.
    """
    assert context.gpu_arch is not None
    lab, hidden = context.lab, context.lab.hidden
    with (
        # The GPU has a build of its own; a second worker reads it.
        CpuDevice(context.sandbox, lab.limits) as reader,
        ThreadPoolExecutor(max_workers=3) as pool,
        ExitStack() as ending,
        gpu,
    ):
        # If this ends early, it must not wait for the simulator, nor for who looks on.
        ending.callback(device.__exit__, None, None, None)
        ending.callback(reader.__exit__, None, None, None)
        simulation = pool.submit(_simulate, submission, context, device)
        program = build_program(
            submission, context, lab.arch_on(context.gpu_arch), reader, progress
        )
        code = pool.submit(_machine_code, program).result
        group = record_group(program, (*lab.correctness, *lab.performance), progress)
        run = _GpuRun(gpu=gpu, reader=reader, code=code, watcher=watcher)
        public = walk(group, run, reader, progress)
        progress(phrase("simulating"), phrase("simulating beside the GPU"))
        simulated = look_again(group, public, simulation.result(), device, progress)
        yardsticks = measures(lab, gpu.gpu.name, context.ladders) if gpu.gpu else {}
        # Two programs that run at the same time can signal to each other through the machine's
        # load, so the hidden sizes begin when all that is public has ended.
        secret = None
        if hidden is not None:
            ended = any(each.stopped in ("time", "crash") for each in public.cases)
            secret = grade_hidden(
                program,
                (*hidden.correctness, *hidden.performance),
                run.by_another_worker(public.cases, progress),
                reader,
                yardsticks=yardsticks,
                wanted=gpu.gpu is not None and not ended,
            )
        ruling = rulings.conclude(
            public, lab, hidden=secret, simulated=simulated, yardsticks=yardsticks
        )
        watcher.ruled(ruling)
    return msgspec.structs.replace(ruling, gpu=gpu.gpu)


def _machine_code(program: Program) -> tuple[SassFunction, ...]:
    """Return none without nvdisasm; ``grade doctor`` says how to install it."""
    return program.disassemble() if program.context.toolchain.nvdisasm else ()


class _GpuRun(Record):
    """Runs a group on the GPU, and looks for tensor cores in what it launches."""

    gpu: GpuDevice
    reader: CpuDevice  # of the PTX
    code: Code
    watcher: Watcher = Watcher()
    pace: Sequence[CaseOutcome] = ()  # other sizes, which say how long untimed launches may take

    @contextmanager
    def by_another_worker(
        self, pace: Sequence[CaseOutcome], progress: Progress
    ) -> Iterator[_GpuRun]:
        with self.gpu.successor() as gpu:
            progress(phrase("running on the GPU"), phrase("running the hidden sizes on the GPU"))
            yield _GpuRun(gpu=gpu, reader=self.reader, code=self.code, pace=pace)

    def __call__(self, group: Group, progress: Progress) -> Ran:
        """Return the outcomes, and the notes on tensor cores. Raises Rejected where the lab forbids
        those that PTX or machine code show."""
        program, lab = group.program, group.program.context.lab
        plans = [planned.plan for planned in group.planned]

        def ready(info: base.GpuInfo) -> None:
            card = base.gpus.of(info)
            self.watcher.planned(program, plans, self.reader, idle=True, card=card, code=self.code)

        notes = _permitted(self.reader.tensor_cores(plans), program)
        outcomes: tuple[CaseOutcome, ...] = ()
        if plans:
            outcomes = self.gpu.run(
                program.built, program.root, group.planned, lab, progress, ready
            )
        # PTX does not show calls through pointers. nvdisasm takes a while: the GPU does not wait.
        operations = [o for plan in plans for o in (*plan.setup, *plan.operations)]
        kernels = {o.kernel for o in operations if isinstance(o, Launch)}
        # A function that is no entry may be called by any of them.
        launched = (f for f in self.code() if f.name in kernels or not f.entry)
        in_code = _permitted(find_tensor_cores(tuple(launched)), program)
        held = held_to_the_clock((*outcomes, *self.pace), lab.problem, self.gpu.gpu)
        return held[: len(outcomes)], notes or in_code


def _permitted(notes: tuple[base.Finding, ...], program: Program) -> tuple[base.Finding, ...]:
    """Return the notes on tensor cores. Raises Rejected where they break a rule of the lab."""
    lab = program.context.lab
    if broken := broken_rule(notes, lab.rules, lab.problem.arithmetic):
        raise base.Rejected(base.Verdict.RF, broken, notes, program.built.info)
    return notes


def _simulate(submission: Submission, context: GradingContext, device: CpuDevice) -> rulings.Ruling:
    """Grade in the simulator. If it cannot grade the submission, nobody is at fault."""
    try:
        # Blocks that wait for each other need not fit more than this GPU.
        assert context.gpu_arch is not None
        known = (*context.lab.architectures, context.gpu_arch)
        lab = msgspec.structs.replace(context.lab, architectures=known)
        if lab.rules.findings == "warn":  # nothing of hidden sizes would be shown
            lab = msgspec.structs.replace(lab, hidden=None)
        own = msgspec.structs.replace(context, lab=lab)
        return grade_in_simulator(submission, own, device, quietly, Watcher())
    except rulings.FATAL as failure:
        return rulings.from_failure(failure)
