"""Worker processes in parallel, one task each, replaced when they die.

On the CPU every worker grades. On each GPU two workers take turns: nothing disturbs a measurement,
and the GPU does not wait for work on the CPU. The others compile ahead of them.
"""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Literal

import msgspec

from grader.base import Verdict
from grader.run import VisibleGpu
from grader.study.forks import fork, warm_up
from grader.study.worker import Kind, Lane, Setup, Task, TaskReport, serve
from ptxsim.text import Message, phrase

# A worker that grades on a GPU keeps so many processes busy: two builds, simulating, reading.
_BUSY = 4


def lanes(device: Literal["cpu", "gpu"], jobs: int, gpus: Sequence[VisibleGpu] = ()) -> list[Lane]:
    """Choose each worker's part, when ``jobs`` may work at a time.

    A GPU has two workers that grade: while one measures, the other prepares or writes its report.
    The GPU's lock admits only one of them. gpus: () stands for the first one.
    """
    if device == "cpu":
        return [Lane(kind="grade")] * jobs
    # A small class gets a GPU for each submission before any GPU gets its second.
    grading = [Lane(kind="grade", gpu=gpu) for gpu in gpus or (None,)] * 2
    # The first grades of all wait for their own builds; more compilers than cores would slow them.
    return grading + [Lane(kind="compile")] * max(1, jobs - _BUSY * len(grading))


class _Worker:
    """One process, the lane it works in, and what it is doing."""

    def __init__(self, lane: Lane, setup: Setup) -> None:
        self.lane = lane
        self.task: Task | None = None
        self._process, self.pipe = fork(serve, dict(os.environ), setup, lane)

    def start(self, task: Task) -> bool:
        """Give it a task; False if it died while idle."""
        self.task = task
        try:
            self.pipe.send(task)
        except ConnectionError:
            return False
        return True

    def report(self) -> TaskReport | None:
        """Return the worker's report on its task; None when it has died."""
        try:
            report: TaskReport = self.pipe.recv()
        except (EOFError, ConnectionError):
            return None
        self.task = None
        return report

    def last_words(self) -> Message:
        self._process.join()
        code = self._process.exitcode or 0
        how = phrase("exit status {number}") if code >= 0 else phrase("signal {number}")
        words = phrase("the process that graded it ended unexpectedly ({how})")
        return words.given(how=how.given(number=abs(code)))

    def dismiss(self, *, kill: bool) -> None:
        """Let the process end: at once, or after the task it has."""
        self.pipe.close()
        if kill:
            self._process.terminate()

    def join(self) -> None:
        self._process.join()


class Queue:
    """Tasks in order. With ``ahead``, compiled submissions are graded first."""

    def __init__(self, tasks: Sequence[Task], *, ahead: bool) -> None:
        self._grade = deque(tasks)
        self._compile = deque(tasks if ahead else ())
        self._compiling: set[str] = set()
        self._compiled: set[str] = set()

    def next(self, kind: Kind) -> Task | None:
        """The next task for a worker of this kind; None: nothing now, perhaps later."""
        if kind == "compile":
            while self._compile:
                task = self._compile.popleft()
                if task in self._grade:
                    self._compiling.add(task.student)
                    return msgspec.structs.replace(task, kind="compile")
            return None
        # If none is compiled, take one that no worker compiles yet: waiting would be slower.
        choices = [task for task in self._grade if task.student in self._compiled]
        choices += [task for task in self._grade if task.student not in self._compiling]
        if not choices:
            return None
        self._grade.remove(choices[0])
        return choices[0]

    def compiled(self, task: Task) -> None:
        self._compiling.discard(task.student)
        self._compiled.add(task.student)


def grade_all(tasks: Sequence[Task], lanes: Sequence[Lane], setup: Setup) -> Iterator[TaskReport]:
    """Reports on every grading as they come; ``lanes`` says what each worker does.

    Closing the iterator, or an exception such as Ctrl-C in it, ends the workers.
    """
    graders = [lane for lane in lanes if lane.kind == "grade"][: len(tasks)]
    compilers = [lane for lane in lanes if lane.kind == "compile"]
    queue = Queue(tasks, ahead=bool(compilers))
    workers: list[_Worker] = []
    finished = False

    def replace(i: int) -> None:
        workers[i].dismiss(kill=True)
        workers[i].join()
        workers[i] = _Worker(workers[i].lane, setup)

    try:
        warm_up()
        for lane in (*graders, *compilers):
            workers.append(_Worker(lane, setup))
            if (task := queue.next(lane.kind)) is not None:
                workers[-1].start(task)
        remaining = len(tasks)
        while remaining:
            for i, worker in enumerate(workers):
                if worker.task is not None or (task := queue.next(worker.lane.kind)) is None:
                    continue
                if not worker.start(task):
                    replace(i)
                    workers[i].start(task)  # if this one is dead too, its report says so
            for i in _ready(workers):
                task = workers[i].task
                assert task is not None
                report = workers[i].report()
                if report is None:
                    report = TaskReport(
                        task=task, verdict=Verdict.IE, message=workers[i].last_words(), seconds=0
                    )
                    replace(i)
                if workers[i].lane.kind == "compile":
                    queue.compiled(task)
                else:
                    remaining -= 1
                    yield msgspec.structs.replace(report, place=workers[i].lane.place)
        finished = True
    finally:
        for worker in workers:  # they end beside each other
            worker.dismiss(kill=not finished)
        for worker in workers:
            worker.join()


def _ready(workers: Sequence[_Worker]) -> list[int]:
    """Indices of the workers that have something to say, waiting for the first."""
    busy: dict[Connection, int] = {
        worker.pipe: i for i, worker in enumerate(workers) if worker.task is not None
    }
    return [busy[pipe] for pipe in wait(list(busy)) if isinstance(pipe, Connection)]
