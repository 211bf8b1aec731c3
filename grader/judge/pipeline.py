"""One submission through every stage. Whatever a stage raises becomes a result here, too, so every
graded folder has one."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

import msgspec

import grader
from grader import base
from grader.judge import rulings
from grader.judge.program import GradingContext
from grader.judge.stages import Watcher, grade_in_simulator, grade_on_gpu
from grader.labs import load_listed, load_submission, source_texts, student_of
from grader.results import standing
from grader.run import CpuDevice, GpuDevice, Progress
from ptxsim import engine_digest
from ptxsim.plan import Record
from ptxsim.text import phrase


class Graded(Record):
    """A result, and what the terminal shows besides it."""

    result: base.Result
    contents: Mapping[str, bytes]  # file name → what was graded; empty if nothing could be read
    printed: str  # by device printf in the smallest case that printed anything
    explain: bool = False  # whether to say why it is as fast as it is

    @property
    def sources(self) -> dict[str, str]:
        """File name → text, as the compiler sees it; findings point into it."""
        return source_texts(self.contents)


def grade(
    work: Path | base.Submission,
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
    name = work.student if isinstance(work, base.Submission) else student or student_of(work)
    nothing = hashlib.sha256().hexdigest()
    times = (submitted,) if submitted else ()
    reference = base.SubmissionRef(student=name, sha256=nothing, files=(), submitted=times)
    contents: Mapping[str, bytes] = {}
    slurm: base.SlurmInfo | None = None
    watcher = watcher or Watcher()
    with CpuDevice(context.sandbox, context.lab.limits, context.lab.problem_ref) as device:
        try:
            slurm = slurm_job()
            submission = _read(work, student, context.lab.problem.interface.main)
            contents = submission.contents
            reference = msgspec.structs.replace(
                reference, sha256=submission.sha256, files=submission.files
            )
            if context.gpu_arch is None:
                ruling = grade_in_simulator(submission, context, device, progress, watcher)
            else:
                gpu = gpu or GpuDevice(context.lab.problem_ref)
                ruling = grade_on_gpu(submission, context, device, gpu, progress, watcher)
        except rulings.FATAL as failure:
            ruling = rulings.from_failure(failure)
    result = _result(reference, context, ruling, slurm)
    return Graded(result=result, contents=contents, printed=ruling.printed, explain=ruling.explain)


def _read(work: Path | base.Submission, student: str | None, main: str) -> base.Submission:
    if isinstance(work, base.Submission):
        return work
    return load_submission(work, main) if student is None else load_listed(work, student, main)


def _result(
    reference: base.SubmissionRef,
    context: GradingContext,
    ruling: rulings.Ruling,
    slurm: base.SlurmInfo | None,
) -> base.Result:
    problem = context.lab.problem.info()
    ladders = [ladder for ladder in context.ladders if ladder.problem.like(problem)]
    stands = standing(ruling.cases, ruling.gpu, ladders)
    judged = base.convert(msgspec.structs.replace(ruling, standing=stands), base.Judgement)
    return base.Result(
        schema=base.SCHEMA,
        version=base.SCHEMA_VERSION,
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        lab=base.LabRef(id=context.lab.id, sha256=context.lab.sha256),
        problem=problem,
        submission=reference,
        environment=base.Environment(
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


def slurm_job() -> base.SlurmInfo | None:
    """The Slurm job that this process runs in, or None. Raises MachineError for invalid values."""
    job = _variable("SLURM_JOB_ID")
    if job is None:
        return None
    restarts = _variable("SLURM_RESTART_COUNT") or "0"
    if not (restarts.isascii() and restarts.isdecimal()):
        words = phrase("SLURM_RESTART_COUNT={restarts}: not a number; unset it")
        raise base.MachineError(words.given(restarts=restarts))
    return base.SlurmInfo(
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
