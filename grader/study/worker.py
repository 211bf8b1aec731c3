"""A process that grades one submission after another, and the messages on its pipe.

It writes the results itself, so a finished result is on disk whatever happens to its parent.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal

import msgspec

from grader.base import ENGLISH, GraderError, Rejected, Verdict, choose_language
from grader.judge import ContextSettings, GradingContext, compile_for
from grader.labs import Entrant, load_listed
from grader.report import html
from grader.results import keep_sources, store, stored_profile
from grader.run import VISIBLE, VisibleGpu, quietly
from grader.study.explaining import grade_and_explain
from ptxsim.plan import Record
from ptxsim.text import NOTHING, Message, phrase, verbatim

Kind = Literal["grade", "compile"]
_BEHIND = 10  # added to a compiling process's niceness: the GPU must not wait for those that grade


class Setup(ContextSettings, kw_only=True):
    """Settings that all workers of a run share."""

    out: Path
    report: bool  # whether pages are written
    language: str = ENGLISH.code  # of the pages


class Task(Entrant, kw_only=True):
    kind: Kind  # "compile" only fills the build cache while the device is busy

    @staticmethod
    def grading(entrant: Entrant) -> Task:
        return Task(kind="grade", **msgspec.structs.asdict(entrant))


class TaskReport(Record):
    """The outcome of a task. ``verdict`` None: compiled only, or the task failed."""

    task: Task
    verdict: Verdict | None
    message: Message  # why, when the verdict is IE or None
    seconds: float
    place: str = ""  # the lane's


class Lane(Record):
    """The work of one process of the pool."""

    kind: Kind
    gpu: VisibleGpu | None = None  # to measure on; null: the first one, or the simulator

    @property
    def place(self) -> str:
        """``GPU 2``; "" where there is no choice."""
        return f"GPU {self.gpu.index}" if self.gpu else ""


def serve(pipe: Connection, environment: Mapping[str, str], setup: Setup, lane: Lane) -> None:
    """Answer tasks with reports until the other end closes. environment: the first worker's."""
    os.environ.clear()
    os.environ.update(environment)
    if lane.gpu is not None:  # CUDA has not been asked for anything yet
        os.environ[VISIBLE] = lane.gpu.uuid
    if lane.kind == "compile":
        os.nice(_BEHIND)
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C reaches all: the parent decides
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        context = setup.context()
    except GraderError as error:  # the machine has lost something since the parent checked it
        with contextlib.suppress(EOFError, ConnectionError):
            task = pipe.recv()
            pipe.send(TaskReport(task=task, verdict=Verdict.IE, message=error.message, seconds=0))
        return
    try:
        while True:
            pipe.send(_answer(pipe.recv(), context, setup))
    except (EOFError, ConnectionError):
        return


def _answer(task: Task, context: GradingContext, setup: Setup) -> TaskReport:
    started = time.monotonic()
    verdict, message = None, NOTHING
    try:
        if task.kind == "compile":
            _compile(task, context)
        else:
            verdict, message = _grade(task, context, setup)
    except GraderError as error:
        verdict, message = Verdict.IE, error.message
    except Exception as error:
        # A bug in the grader must not end the class; the trace helps to find it.
        traceback.print_exc()
        verdict, message = Verdict.IE, verbatim(f"{type(error).__name__}: {error}")
    seconds = time.monotonic() - started
    return TaskReport(task=task, verdict=verdict, message=message, seconds=seconds)


def _grade(task: Task, context: GradingContext, setup: Setup) -> tuple[Verdict, Message]:
    graded = grade_and_explain(
        task.source, context, quietly, student=task.student, submitted=task.submitted
    )
    result = graded.result
    if result.verdict is Verdict.IE:
        return Verdict.IE, result.error or phrase("the grader failed")
    document = store.result_path(setup.out, result)
    if setup.report:  # before the document: a run that is killed in between writes both again
        language = choose_language(setup.language, {})
        page = html.render(result, graded.sources, language, stored_profile(document))
        store.write(document.with_suffix(".html"), page.encode())
    keep_sources(document, graded.contents.values())
    store.save(setup.out, result)
    return result.verdict, NOTHING


def _compile(task: Task, context: GradingContext) -> None:
    """Build for the GPU and for the simulator that looks on."""
    if context.lab.program:
        return
    simulated = context.lab.architectures[0]
    with contextlib.suppress(Rejected):  # the grading will report it
        submission = load_listed(task.source, task.student, context.lab.problem.interface.main)
        timed = context.lab.arch_on(context.gpu_arch) if context.gpu_arch else simulated
        for arch in dict.fromkeys((timed, simulated)):
            compile_for(submission, context, arch)
