"""Measured reference ladders: one ``Ladder`` document of rungs and their results.

There is one document per GPU model. It holds everything that the table, the page and a student's
standing need, so it can be shipped, stored and rendered without the rungs' sources.
"""

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from grader import base
from grader.results import store
from grader.results.case import CaseResult, Timing
from grader.results.result import LabRef, Result, RungFacts, Standing, StandingRung
from grader.results.rungs import Rung
from grader.results.store import StoreError
from ptxsim.plan import Record, Size
from ptxsim.text import Message

SCHEMA = "sgemm-grader/ladder"
SCHEMA_VERSION = 3
FOLDER = "ladder"  # below the results


class Speed(Record):
    """One rung at one size."""

    size: base.Dims
    amount: int  # operations or bytes: what orders the sizes
    rate: float  # the scored speed: of the best run, or the slower of two speeds
    baseline: float  # of the best run
    ratio: float  # median of rung / baseline
    samples: int  # repetitions


class Ceiling(Record):
    """The most that a rung's counts allow on a GPU that nobody timed it on; machine code for it."""

    gpu: str
    arch: str  # "sm_80"
    size: base.Dims
    speed: float  # in the problem's unit


class LadderStep(Record):
    rung: Rung
    sha256: str | None  # of its source; null when it has not been graded
    verdict: base.Verdict | None  # null: not graded
    message: str  # why it is not AC; "" when it is
    speeds: tuple[Speed, ...]  # by growing size; () in the simulator
    kernels: int | None = None  # most that one call launches, of all sizes; null: not known
    ceilings: tuple[Ceiling, ...] = ()  # one for each GPU; () where nobody asked for them

    @property
    def one_kernel(self) -> bool:
        """Whether a lab with ``rules.kernels: one`` accepts it."""
        return self.kernels == 1

    def at(self, size: base.Dims) -> Speed | None:
        return next((speed for speed in self.speeds if speed.size == size), None)

    def ceiling(self, gpu: str) -> Ceiling | None:
        return next((ceiling for ceiling in self.ceilings if ceiling.gpu == gpu), None)


class HostLoop(Record):
    """One version of the three loops for the CPU."""

    name: str
    gflops: float


class HostRun(Record):
    """The output of the program reference/sgemm/00_host."""

    cpu: str
    n: int  # edge of the square product
    loops: tuple[HostLoop, ...]


class Ladder(Record):
    """The document that ``grade ladder`` writes, one per GPU model."""

    schema: str
    version: int
    created: str  # of its newest result, ISO 8601, UTC; "" when there is none
    grader: str
    lab: LabRef
    problem: base.ProblemInfo
    gpu: base.GpuInfo | None  # null: the simulator
    cuda: str | None
    host: HostRun | None
    steps: tuple[LadderStep, ...]

    @property
    def groups(self) -> tuple[tuple[LadderStep, ...], ...]:
        """The lesson's rungs, then the others; no group is empty."""
        lesson = tuple(step for step in self.steps if step.rung.lesson)
        others = tuple(step for step in self.steps if not step.rung.lesson)
        return tuple(filter(None, (lesson, others)))

    @property
    def sizes(self) -> tuple[base.Dims, ...]:
        """Every size at which any rung was timed, in increasing order."""
        found = {
            Size(dims=speed.size): speed.amount for step in self.steps for speed in step.speeds
        }
        return tuple(size.dims for size in sorted(found, key=lambda at: (found[at], at.extents)))

    @property
    def untimed(self) -> tuple[str, ...]:
        """GPUs for which there are ceilings only."""
        return tuple(dict.fromkeys(each.gpu for step in self.steps for each in step.ceilings))

    def timed_on(self, gpu: str | None) -> bool:
        """Whether it was measured on this GPU model."""
        return self.gpu is not None and self.gpu.name == gpu

    def baseline(self, size: base.Dims) -> float | None:
        """The baseline's speed at a size: the median over the rungs timed with it."""
        speeds = (speed for step in self.steps if (speed := step.at(size)))
        rates = [speed.baseline for speed in speeds]
        return statistics.median_high(rates) if rates else None


def make_ladder(
    rungs: Sequence[Rung],
    results: Mapping[str, Result],
    lab: LabRef,
    problem: base.ProblemInfo,
    *,
    grader: str,
    host: HostRun | None,
    ceilings: Mapping[str, tuple[Ceiling, ...]] | None = None,
) -> Ladder:
    """The document of one GPU model, or of the simulator. results, ceilings: by the rung's name."""
    known = ceilings or {}
    gpus = [result.environment.gpu for result in results.values() if result.environment.gpu]
    newest = max(results.values(), key=lambda result: result.created, default=None)
    return Ladder(
        schema=SCHEMA,
        version=SCHEMA_VERSION,
        created=newest.created if newest else "",
        grader=grader,
        lab=lab,
        problem=problem,
        gpu=gpus[0] if gpus else None,
        cuda=newest.environment.cuda if newest else None,
        host=host,
        steps=tuple(
            _step(rung, results.get(rung.name), known.get(rung.name, ())) for rung in rungs
        ),
    )


def _step(rung: Rung, result: Result | None, ceilings: tuple[Ceiling, ...]) -> LadderStep:
    if result is None:
        return LadderStep(
            rung=rung, sha256=None, verdict=None, message="", speeds=(), ceilings=ceilings
        )
    speeds = [speed for speed in map(_speed, result.cases) if speed]
    counts = [case.kernels for case in result.cases]
    return LadderStep(
        rung=rung,
        sha256=result.submission.sha256,
        verdict=result.verdict,
        message=_why(result),
        speeds=tuple(sorted(speeds, key=lambda speed: (speed.amount, *speed.size.values()))),
        # Known only if every size was recorded.
        kernels=None if None in counts else max((count or 0 for count in counts), default=None),
        ceilings=ceilings,
    )


def _speed(case: CaseResult) -> Speed | None:
    timing = case.timing
    if timing is None or case.verdict is not base.Verdict.AC:
        return None
    return Speed(
        size=case.size,
        amount=case.amount,
        rate=timing.scored_speed,
        baseline=timing.baseline_speed,
        ratio=timing.scored_ratio,
        samples=timing.samples,
    )


def _why(result: Result) -> str:
    """The first size that was not accepted, in one line."""
    if result.verdict is base.Verdict.AC:
        return ""
    for case in result.cases:
        if case.verdict is result.verdict:
            return f"{base.size_text(case.size)}: {case.message}".rstrip(": ")
    return str(result.error or "").split("\n")[0]


# --- on disk ----------------------------------------------------------------------------------


def folder(out: Path, gpu: str | None) -> Path:
    """The folder of the rungs' results on one GPU model; other models cannot replace them."""
    return out / FOLDER / store.folder_name(gpu or "simulator")


def document_path(out: Path, gpu: str | None, lab: str = "") -> Path:
    """The ladder's document. lab: its id, unless it asks for the default problem."""
    place = folder(out, gpu)
    return place.with_name(f"{place.name}{f'-{lab}' if lab else ''}.json")


def load_ladder(path: Path) -> Ladder:
    """Raises StoreError that names the file and what is wrong with it."""
    return store.load_document(path, Ladder, SCHEMA, SCHEMA_VERSION)


def stored_ladders(out: Path) -> tuple[list[Ladder], list[Message]]:
    """The ladders below ``out``, and one line for each file there that is not a ladder."""
    ladders, complaints = [], []
    for path in sorted((out / FOLDER).glob("*.json")):
        try:
            ladders.append(load_ladder(path))
        except StoreError as error:  # noqa: PERF203 - a handful of files
            complaints.append(error.message)
    return ladders, complaints


def shipped_ladders() -> list[Ladder]:
    """The ladders measured on the authors' GPUs, shipped with the package; may be empty."""
    measured = Path(__file__).parent / "ladders"
    return [load_ladder(path) for path in sorted(measured.glob("*.json"))]


def standing(
    cases: Sequence[CaseResult], gpu: base.GpuInfo | None, ladders: Iterable[Ladder]
) -> Standing | None:
    """Use the first of ``ladders`` for this GPU model that has a size in common with the cases.

    Compare ratios to the baseline, not speeds: a GPU that runs slower today slows both. The next
    rung is the first faster one of the lesson, else of all. Traps are slower than earlier rungs, so
    the rung below is the fastest before the next one that is no faster, not its neighbour.
    """
    if gpu is None:
        return None
    right = [case for case in cases if case.verdict is base.Verdict.AC]
    right.sort(key=lambda case: -case.amount)
    alike = (each for each in ladders if each.timed_on(gpu.name))
    for ladder, case in itertools.product(alike, right):
        if case.timing and case.size in ladder.sizes:
            return _place(ladder, case.size, case.timing)
    return None


def _place(ladder: Ladder, size: base.Dims, timing: Timing) -> Standing:
    steps = ladder.steps
    speeds = [step.at(size) for step in steps]
    faster = [i for i, speed in enumerate(speeds) if speed and speed.ratio > timing.scored_ratio]
    faster.sort(key=lambda i: not steps[i].rung.lesson)
    end = faster[0] if faster else len(steps)
    slower = [
        (speed.ratio, i)
        for i, speed in enumerate(speeds[:end])
        if speed and speed.ratio <= timing.scored_ratio
    ]
    below = max(slower)[1] if slower else None
    first = 0 if below is None else below + 1
    ahead = range(first, end + 1) if faster else range(0)
    return Standing(
        size=size,
        ratio=timing.scored_ratio,
        rungs=sum(speed is not None for speed in speeds),
        below=None if below is None else _standing_rung(steps[below], speeds[below]),
        ahead=tuple(
            _standing_rung(steps[i], speeds[i])
            for i in ahead
            if steps[i].rung.lesson or not steps[end].rung.lesson
        ),
        measured=ladder.created,
    )


def _standing_rung(step: LadderStep, speed: Speed | None) -> StandingRung:
    return StandingRung(
        **{name: getattr(step.rung, name) for name in RungFacts.__struct_fields__},
        speed=speed.rate if speed else None,
        ratio=speed.ratio if speed else None,
    )
