"""When things happen in `grade` and in the processes that it starts, for benchmarks.

The command runs with a ``sitecustomize`` that wraps a few functions as their modules are loaded.
Each call leaves a line in a file: nothing of this is in the grader itself.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

ROOT = Path(__file__).parents[1]
_GPU = "grader.run.gpu"
_FOLLOWED = {  # module → functions, or methods as Class.name
    "grader.study.worker": ("_grade", "_compile"),
    "grader.build.steps": ("translate", "assemble", "link"),
    "grader.judge.pipeline": ("build_program", "record_group", "_simulate"),
    "grader.judge.program": ("Program.disassemble",),
    "grader.study.explaining": ("_explain",),
    "grader.run.simulator.device": ("CpuDevice.read", "CpuDevice.tensor_cores"),
    f"{_GPU}.device": ("GpuDevice.stand_by", "GpuDevice.run", "GpuDevice._end"),
    f"{_GPU}.session": ("LoadedAhead.__init__", "GpuSession.__init__"),
    f"{_GPU}.measure": ("verify_case", "time_case"),
    f"{_GPU}.host_check": ("HostCheck.confirm",),
}


class Happened(msgspec.Struct, frozen=True):
    """One call, by the machine's monotonic clock."""

    what: str
    who: str  # the student, if an argument names one
    process: int
    parent: int
    begin: float
    end: float


def environment(folder: Path) -> dict[str, str]:
    """For a command whose moments go to ``folder``."""
    (folder / "sitecustomize.py").write_text(
        f"from benchmarks import timeline\ntimeline.follow({str(folder / 'moments')!r})\n"
    )
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}


def happened(folder: Path) -> list[Happened]:
    lines = (folder / "moments").read_bytes().splitlines()
    return sorted((msgspec.json.decode(each, type=Happened) for each in lines), key=_begin)


def _begin(each: Happened) -> float:
    return each.begin


def follow(file: str) -> None:
    """Called in each process of the command as it starts."""
    _note(file, "process", "", time.monotonic())
    sys.meta_path.insert(0, _Finder(file))


def _note(file: str, what: str, who: str, begin: float) -> None:
    moment = {
        "what": what,
        "who": who,
        "process": os.getpid(),
        "parent": os.getppid(),
        "begin": begin,
        "end": time.monotonic(),
    }
    with Path(file).open("a") as log:  # one write: lines of several processes do not mix
        log.write(json.dumps(moment) + "\n")


class _Finder(MetaPathFinder):
    def __init__(self, file: str) -> None:
        self._file = file

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        found = PathFinder.find_spec(name, path, target) if name in _FOLLOWED else None
        if found is not None and found.loader is not None:
            found.loader = _Loader(found.loader, self._file)
        return found


class _Loader(Loader):
    def __init__(self, real: Loader, file: str) -> None:
        self._real, self._file = real, file

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._real.exec_module(module)
        for each in _FOLLOWED[module.__name__]:
            *owners, name = each.split(".")
            owner: Any = functools.reduce(getattr, owners, module)
            setattr(owner, name, _wrapped(getattr(owner, name), each, self._file))


def _wrapped(function: Callable[..., Any], what: str, file: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        begin = time.monotonic()
        try:
            return function(*arguments, **named)
        finally:
            who = getattr(arguments[0], "student", "") if arguments else ""
            _note(file, what, who if isinstance(who, str) else "", begin)

    return wrapper


# --- what the moments say of the GPU ----------------------------------------------------------


class Turn(msgspec.Struct, frozen=True):
    """One submission on one GPU; seconds of the monotonic clock."""

    student: str
    process: float  # its worker's beginning
    loaded: float  # what needs no context
    asked: float  # the grader has plans, and waits for its turn
    context: tuple[float, float]  # its making
    cases: tuple[float, float]  # from the first to the end of the last
    timing: tuple[float, float]  # from the first timed case to the end of the last
    timed: float  # seconds in timed cases
    verified: float
    ending: float  # the worker is told to end
    gone: float  # its end


def turns(moments: Iterable[Happened]) -> list[Turn]:
    """In the order in which they had the GPU; without those that a failure ended."""
    moments = list(moments)
    return sorted(_turns(moments), key=lambda turn: turn.cases)


def _turns(moments: Sequence[Happened]) -> Iterator[Turn]:
    workers: dict[int, list[Happened]] = {}
    for each in moments:
        workers.setdefault(each.process, []).append(each)
    for asked in (each for each in moments if each.what == "GpuDevice.run"):
        own = [
            worker
            for worker in workers.values()
            if worker[0].parent == asked.process
            and any(asked.begin < each.begin < asked.end for each in _cases(worker))
        ]
        if len(own) != 1:  # two: the first was ended by a timed size
            continue
        (worker,) = own
        cases = _cases(worker)
        timed = [each for each in cases if each.what == "time_case"]
        if not timed:
            continue
        ends = [
            each
            for each in workers[asked.process]
            if each.what == "GpuDevice._end" and each.end > cases[-1].end
        ]
        grading = [
            each.who
            for each in workers[asked.process]
            if each.what == "_grade" and each.begin < asked.begin and asked.end < each.end
        ]
        bench = next(each for each in worker if each.what == "GpuSession.__init__")
        loaded = next((each for each in worker if each.what == "LoadedAhead.__init__"), bench)
        yield Turn(
            student=grading[0] if grading else "",
            process=worker[0].begin,
            loaded=loaded.end,
            asked=asked.begin,
            context=(bench.begin, bench.end),
            cases=(cases[0].begin, cases[-1].end),
            timing=(timed[0].begin, timed[-1].end),
            timed=sum(each.end - each.begin for each in timed),
            verified=sum(each.end - each.begin for each in cases if each.what == "verify_case"),
            ending=min((each.begin for each in ends), default=asked.end),
            gone=min((each.end for each in ends), default=asked.end),
        )


def beside_timing(on_one_gpu: Sequence[Turn]) -> list[str]:
    """What happened on a GPU while a submission was timed there: a context was made, a size of
    another submission ran, a worker ended. Nothing of this may be."""
    found = []
    for timed in on_one_gpu:
        for other in on_one_gpu:
            events = {
                "made its context": other.context,
                "ran": other.cases,
                "ended": (other.ending, other.gone),
            }
            found += [
                f"{other.student} {what} while {timed.student} was timed"
                for what, (begin, end) in events.items()
                if other is not timed and begin < timed.timing[1] and timed.timing[0] < end
            ]
    return found


def _cases(worker: Sequence[Happened]) -> list[Happened]:
    return [each for each in worker if each.what in ("verify_case", "time_case")]
