"""One submission through every stage: folder → ``Result``.

A stage that rejects the student's work raises ``Rejected``; one that fails through the machine's
fault raises ``MachineError``. Both become a result here, so every graded folder has one.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path

import msgspec

import grader
from grader.backends.gpu.device import GpuDevice
from grader.backends.protocol import Progress
from grader.backends.simulator.device import CpuDevice
from grader.errors import one_line
from grader.grading.document import slurm_job
from grader.grading.in_simulator import run_in_simulator
from grader.grading.on_gpu import run_on_gpu
from grader.grading.preparing import Bench
from grader.grading.ran import ENDINGS, Ran, ended
from grader.ladder.standing import standing
from grader.model import (
    SCHEMA,
    SCHEMA_VERSION,
    CaseResult,
    Environment,
    LabRef,
    Record,
    Result,
    SlurmInfo,
    Submission,
    SubmissionRef,
)
from grader.submission.folder import load_listed, load_submission, source_texts, student_of

__all__ = ["Bench", "Graded", "grade", "grade_loaded"]


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
    graded = _grade(name, load, bench, progress, gpu)
    who = msgspec.structs.replace(graded.result.submission, submitted=submitted)
    result = msgspec.structs.replace(graded.result, submission=who)
    return msgspec.structs.replace(graded, result=result)


def grade_loaded(submission: Submission, bench: Bench, progress: Progress) -> Graded:
    """Grade a submission that has been read already."""
    return _grade(submission.student, lambda: submission, bench, progress)


def _grade(
    name: str,
    load: Callable[[], Submission],
    bench: Bench,
    progress: Progress,
    gpu: GpuDevice | None = None,
) -> Graded:
    reference = SubmissionRef(student=name, sha256=hashlib.sha256().hexdigest(), files=())
    contents: Mapping[str, bytes] = {}
    slurm: SlurmInfo | None = None
    with CpuDevice(bench.sandbox, bench.lab.limits, bench.lab.problem_ref) as device:
        try:
            slurm = slurm_job()
            submission = load()
            reference = SubmissionRef(
                student=name, sha256=submission.sha256, files=submission.files
            )
            contents = submission.contents
            if bench.gpu_arch is None:
                ran = run_in_simulator(submission, bench, device, progress)
            else:
                gpu = gpu or GpuDevice(bench.lab.problem_ref)
                ran = run_on_gpu(submission, bench, device, gpu, progress)
        except ENDINGS as failure:
            ran = ended(failure)
    return Graded(
        result=_result(reference, bench, ran, slurm), contents=contents, printed=ran.printed
    )


def _summarised(case: CaseResult) -> CaseResult:
    """Without the times of single repetitions."""
    if case.timing is None:
        return case
    runs = tuple(msgspec.structs.replace(run, repetitions=()) for run in case.timing.runs)
    return msgspec.structs.replace(case, timing=msgspec.structs.replace(case.timing, runs=runs))


def _result(reference: SubmissionRef, bench: Bench, ran: Ran, slurm: SlurmInfo | None) -> Result:
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
            gpu=ran.gpu,
            cuda=bench.toolchain.cuda_version,
            host=one_line(platform.node()),
            slurm=slurm,
            sandbox=bench.sandbox.kind,
            exposed=bench.sandbox.exposed,
        ),
        build=ran.build,
        cases=ran.cases if bench.raw else tuple(map(_summarised, ran.cases)),
        findings=ran.findings,
        lines=ran.lines,
        verdict=ran.verdict,
        score=ran.score,
        error=ran.error,
        explanation=ran.explanation,
        standing=standing(ran.cases, ran.gpu, ladders),
        launches=ran.launches,
        groups=ran.groups,
    )
