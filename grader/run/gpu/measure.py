"""Measures one size: the choice of baselines, once per GPU, driver and size; the
interleaved repetitions; and the time of each part of a call."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from grader.base import Finding, GpuInfo, decode
from grader.problems import Launcher
from grader.results import PartTime
from grader.run import statistics
from grader.run.gpu.host_check import measured
from grader.run.gpu.messages import GpuJob, Measured, Taken
from grader.run.gpu.watch import DisturbanceLog
from ptxsim.plan import Copy, Launch, Memset, Record, Size, SymbolWrite, Write

_TURNS = 3  # of all baselines; before the first counted one each is launched once
# Launches of one baseline in a turn: so many, but no more after so many milliseconds. The time of
# one short launch scatters by more than the best two are apart.
_LAUNCHES, _TURN_MS = 5, 2.0
_CLOSE = 1.02  # the time of the second best / that of the best, at most


class Choice(Record):
    """One file of the cache; ``key`` is for people, its hash is the file's name."""

    key: str
    best: tuple[str, ...]  # names, the fastest first


class Choices:
    """Stores choices in ``folder``; measures again what it cannot read or write."""

    def __init__(self, folder: Path, gpu: GpuInfo, library: str) -> None:
        self._folder = folder
        self._where = f"{gpu.name}, {gpu.uuid}, driver {gpu.driver}, {library}"

    def best(
        self,
        problem: str,
        size: Size,
        baselines: Mapping[str, Launcher],
        milliseconds: Callable[[Launcher], float],
    ) -> tuple[str, ...]:
        """Names of the fastest of the ``baselines`` and of the next one, if it is close. problem:
        with its options."""
        key = f"{problem}, {size}, {self._where}"
        path = self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            known = decode(path.read_bytes(), Choice)
            if known.key == key and known.best and baselines.keys() >= set(known.best):
                return known.best
        best = close_to_the_fastest(turns(baselines, milliseconds))
        scratch = path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            scratch.write_bytes(msgspec.json.encode(Choice(key=key, best=best)))
            scratch.replace(path)
        return best


def turns(
    baselines: Mapping[str, Launcher], milliseconds: Callable[[Launcher], float]
) -> dict[str, list[float]]:
    """The time of each baseline in each turn; every second turn runs backwards."""
    for launch in baselines.values():  # its code may have to be loaded
        milliseconds(launch)
    times: dict[str, list[float]] = {name: [] for name in baselines}
    for turn in range(_TURNS):
        for name in reversed(times) if turn % 2 else times:
            own: list[float] = []
            while len(own) < _LAUNCHES and sum(own) < _TURN_MS:
                own.append(milliseconds(baselines[name]))
            times[name].append(median(own))
    return times


def close_to_the_fastest(times: Mapping[str, list[float]]) -> tuple[str, ...]:
    """Return the variant with the lowest median, and the next one if it is within 2 %."""
    medians = {name: median(each) for name, each in times.items()}
    first, *others = sorted(medians, key=medians.__getitem__)
    return first, *(name for name in others[:1] if medians[name] <= _CLOSE * medians[first])


# --- measure -----------------------------------------------------------------------------------

if TYPE_CHECKING:  # they need CuPy; what is done with them does not
    from grader.run.gpu.session import GpuSession, Keys, MeasuredCase


def verify_case(
    session: GpuSession, case: MeasuredCase, beat: Callable[[], None] = lambda: None
) -> Measured:
    """One launch on fresh inputs, compared with the reference."""
    started = time.monotonic()
    setting_up, wrong = case.set_up()
    beat()
    if wrong is not None:
        return measured(msgspec.structs.replace(wrong, untimed_ms=setting_up), case.first, [])
    keys = case.fresh()
    took = session.time(case.launch)
    taken = case.sample(keys)
    case.reference()
    session.stream.synchronize()
    beat()  # the first check of a machine compiles
    outcome = case.check(keys, time.monotonic() - started)
    if not outcome.findings:  # changed inputs say nothing about the reference
        case.prove_reference()
    outcome = msgspec.structs.replace(outcome, untimed_ms=max(setting_up, took))
    return measured(outcome, case.first, [taken])


def time_case(
    session: GpuSession, case: MeasuredCase, job: GpuJob, beat: Callable[[], None]
) -> Measured:
    """Runs of interleaved repetitions; the output of every one is compared in full, and elements of
    it are taken for the host. ``beat`` is called after everything that launched the submission.
    Raises MachineError when the GPU was shared or slowed for too many repetitions."""
    started = time.monotonic()
    setting_up, refused = case.set_up()
    beat()
    if refused is not None:
        return measured(refused, case.first, [])
    rivals = case.rivals(beat)
    case.fresh()
    warm_up = max(setting_up, session.time(case.launch))  # module loading, instruction caches
    beat()
    charged = job.host_calls == "charged"
    least = session.problem.at(case.size).least_ms(session.gpu)
    runs: list[list[statistics.Repetition]] = []
    proved: set[str] = set()  # variants whose product was the reference and is right
    log = DisturbanceLog()
    clocks: list[tuple[statistics.Clocked, statistics.Clocked]] = []  # submission and baseline
    taken: list[Taken] = []
    turn = 0
    for _ in range(job.runs):
        run: list[statistics.Repetition] = []
        runs.append(run)
        deadline = time.monotonic() + job.run_seconds
        while not run or (
            time.monotonic() < deadline
            and not statistics.settled(statistics.pair_with(runs, statistics.find_fastest(runs)))
        ):
            seen = _take_turn(session, case, rivals, turn, charged)
            mine, theirs = seen.mine, seen.theirs
            taken.append(seen.taken)
            clocks.append((mine, theirs[next(iter(rivals))]))
            snapshot = session.watch.look()
            beat()
            outcome = case.check(seen.keys, time.monotonic() - started, seen.modified)
            if seen.reference not in proved and not outcome.findings:
                case.prove_reference()
                proved.add(seen.reference)
            turn += 1
            wrong = outcome.error is None or outcome.error.wrong
            if wrong or outcome.findings:
                return measured(outcome, case.first, taken)
            if not (mine.gpu_ms >= least):  # stop measuring; the judge rules on it
                outcome = msgspec.structs.replace(outcome, clocks=tuple(clocks))
                return measured(outcome, case.first, [])
            if log.accepts(snapshot):
                times = {name: each.gpu_ms for name, each in theirs.items()}
                run.append(statistics.Repetition(bench_ms=mine.gpu_ms, baselines_ms=times))
                if len(rivals) > 1:
                    slower = statistics.find_slower(runs)
                    rivals = {name: rivals[name] for name in rivals if name not in slower}
    best = statistics.find_fastest(runs)
    timing = statistics.summarise(
        statistics.pair_with(runs, best),
        partial(session.problem.speed, case.size),
        best,
        runner_up=statistics.find_runner_up(runs, best),
        disturbed=log.disturbed,
        watched=log.seen(),
        device_ms=case.device_ms() if charged else None,
    )
    timing = msgspec.structs.replace(timing, parts=case.parts(beat))
    took = time.monotonic() - started
    outcome = msgspec.structs.replace(
        outcome, timing=timing, untimed_ms=warm_up, clocks=tuple(clocks), seconds=took
    )
    return measured(outcome, case.first, taken)


class _Turn(Record):
    """The submission and each variant of the baseline, once."""

    keys: Keys  # of the inputs that the submission got
    mine: statistics.Clocked
    theirs: Mapping[str, statistics.Clocked]
    taken: Taken
    modified: list[Finding]  # inputs that the submission overwrote
    reference: str  # the variant whose product is the reference


def _take_turn(
    session: GpuSession,
    case: MeasuredCase,
    rivals: Mapping[str, Launcher],
    turn: int,
    charged: bool,
) -> _Turn:
    """Time one turn. The first variant runs ahead of the submission in every second turn. Variants
    change places every two turns: each runs as often ahead of it, right after it, and last."""
    names = tuple(rivals)
    order = names[::-1] if turn // 2 % 2 else names
    ahead, after = order[: turn % 2], order[turn % 2 :]
    theirs: dict[str, statistics.Clocked] = {}
    keys = case.fresh()
    for name in ahead:
        theirs[name] = session.clocked(rivals[name])
        # The baseline leaves parts of its result in shared memory, registers and workspaces. They
        # must not belong to what the submission must compute now.
        keys = case.fresh()
    mine = case.timed(charged)
    taken = case.sample(keys)
    modified = case.make_ready(keys)
    for name in after:
        theirs[name] = session.clocked(rivals[name])
    case.refer_beside(rivals[order[-1]], launched=bool(after))
    return _Turn(
        keys=keys, mine=mine, theirs=theirs, taken=taken, modified=modified, reference=order[-1]
    )


# --- parts -------------------------------------------------------------------------------------

# After the scored repetitions a call of several operations is launched a few more times, one
# operation after the other on the same stream, with an event after each. What lies between an
# operation's end and that of the one before is its time, the gap before it included. Kernels do not
# overlap across an event: the parts of a call with programmatic launches may take longer together
# than the call. These repetitions have fresh inputs and a flushed L2 like the scored ones.
REPETITIONS = 3
# Of more operations the host could not launch each before the GPU has finished the one before.
MOST_STEPS = 64

Part = tuple[str, bool]  # its name, and whether it is a kernel
PartStep = tuple[Part, Callable[[], None]]  # what it belongs to, and what launches it


def part_of(operation: object) -> Part:
    """The part that an operation belongs to: one for each kernel, and for what else takes time."""
    if isinstance(operation, Launch):
        return operation.kernel, True
    if isinstance(operation, Memset):
        return "memset", False
    copies = isinstance(operation, Copy | SymbolWrite | Write)
    return "copy" if copies else "host calls", False


def time_parts(
    steps: Sequence[PartStep],
    repeat: Callable[[Callable[[], None]], object],
    mark: Callable[[], Any],
    elapsed: Callable[[Any, Any], float],
) -> tuple[PartTime, ...]:
    """The parts in order of their first operation; () for a single operation, or for too many.
    repeat: prepares a repetition, calls what it is given, and waits for the GPU. mark: an event on
    the stream, now. elapsed: milliseconds between two events."""
    if not 1 < len(steps) <= MOST_STEPS:
        return ()
    seen: dict[Part, list[float]] = defaultdict(list)
    for _ in range(REPETITIONS):
        marks: list[Any] = []

        def launch(marks: list[Any] = marks) -> None:
            marks.append(mark())
            for _, step in steps:
                step()
                marks.append(mark())

        repeat(launch)
        spent: dict[Part, float] = defaultdict(float)
        for (part, _), (before, after) in zip(steps, pairwise(marks), strict=True):
            spent[part] += elapsed(before, after)
        for part, milliseconds in spent.items():
            seen[part].append(milliseconds)
    parts = [part for part, _ in steps]
    return tuple(
        PartTime(name=part[0], kernel=part[1], times=parts.count(part), ms=median(each))
        for part, each in seen.items()
    )
