"""The reference ladder: its rungs on disk, their results, and one ``Ladder`` document of both.

A rung is a folder ``NN_name``, whose .cu file begins with a header that explains it::

    // Rung 6: the same tiles without bank conflicts.
    //
    // Changed:  each row of a tile is one float longer …
    // Why:      …

A rung that teaches what not to do says ``Rung 5 (a trap):``. ladder.toml beside the rungs has the
numbers of those that are the lesson; without it all are. There is one document per GPU model.
It holds everything that the table, the page and a student's standing need, so it can be shipped,
stored and rendered without the rungs' sources.
"""

import difflib
import heapq
import itertools
import re
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from grader import base
from grader.labs import DEFAULT_LAB, REFERENCE, Lab, load_lab, provided, shipped_labs
from grader.results import store
from grader.results.case import CaseResult, Timing
from grader.results.result import LabRef, Result, RungFacts, Standing, StandingRung
from grader.results.store import StoreError
from ptxsim.plan import Record, Size
from ptxsim.text import phrase

SCHEMA = "sgemm-grader/ladder"
SCHEMA_VERSION = 3
FOLDER = "ladder"  # below the results
_LESSON = "ladder.toml"
_SUGGESTED = 3  # rungs, where there is none of a name
_NUMBERED = re.compile(r"(\d+)_\w+")
_TITLE = re.compile(r"Rung \d+(?P<trap> \(a trap\))?: (?P<title>.+)")
_LABEL = re.compile(r"(?P<label>[A-Z][a-z]+): +(?P<text>.+)")


class Rung(RungFacts):
    why: str
    lesson: bool = True  # one of those to read first; the others are detours and research


class _Lesson(Record):
    """ladder.toml."""

    lesson: tuple[int, ...]  # numbers of rungs


def find_rung(named: str) -> tuple[Path, ...]:
    """The .cu files of the rung ``06_tile32`` or ``6``, or with its lab ``hgemm/04_swizzled``: of
    the first lab, here or in the package, that has it. Raises UsageError."""
    known: defaultdict[str, list[Path]] = defaultdict(list)
    for place in provided(REFERENCE):
        for lab in sorted(place.iterdir(), key=lambda each: each.name != DEFAULT_LAB.stem):
            for rung in find_rungs(lab):
                files = sorted((lab / rung.name).glob("*.cu"))
                for name in (rung.name, rung.name.partition("_")[0], str(rung.number)):
                    for key in (name, f"{lab.name}/{name}"):
                        known[key] = known[key] or files
    if named not in known:
        names = [each for each in known if "/" in each and "_" in each]
        near = heapq.nlargest(_SUGGESTED, names, key=partial(_likeness, named))
        unknown = phrase(
            "{name}: no such rung; did you mean {near}? grade rung lists the lesson, and with a "
            "lab's name that lab's",
            name=base.one_line(named),
            near=", ".join(near),
        )
        raise base.UsageError(unknown)
    return tuple(known[named])


def _likeness(named: str, rung: str) -> float:
    """How much what was named is like a rung's name with its lab, without it, or a word of it."""
    alone = rung.partition("/")[2]
    return max(
        difflib.SequenceMatcher(None, named, each).ratio()
        for each in (rung, alone, *alone.split("_"))
    )


def find_reference(named: Path | None, lab: str, *alike: str) -> Path:
    """The folder of a lab's rungs: the one named, else ``reference/<id of the lab>``, else that of
    a lab that is ``alike``: it asks the same of its kernels.

    ``reference/`` is looked for here and in the package. Raises UsageError when there is none.
    """
    if named:
        if not find_rungs(named):
            empty = phrase(
                "{named}: no rungs here; expected folders such as 01_naive, with a .cu file"
            )
            raise base.UsageError(empty.given(named=str(named)))
        return named
    places = provided(REFERENCE)
    for each in (lab, *alike):
        for place in places:
            if find_rungs(place / each):
                return place / each
    if places:
        none = phrase(
            "{place}/{lab}: no rungs of the lab {lab}; name their folder: grade ladder DIR"
        )
        raise base.UsageError(none.given(place=str(places[0]), lab=lab))
    raise base.UsageError.saying(
        "no {folder}/ here or in the grader's package: install the grader again, or name the "
        "folder: grade ladder DIR",
        folder=REFERENCE,
    )


def alike(lab: Lab) -> Iterator[str]:
    """The shipped labs that ask the same: a course's own lab file may have any id."""
    asked = lab.problem.info()
    for path in shipped_labs().values():
        shipped = load_lab(path)
        if shipped.problem.info().like(asked):
            yield shipped.id


def find_rungs(reference: Path) -> tuple[Rung, ...]:
    """Return the rungs by number; () when there is none. Raises UsageError for a ladder.toml that
    says something else than which rungs are the lesson."""
    files = {
        file: int(match[1])
        for file in reference.glob("*/*.cu")
        if (match := _NUMBERED.fullmatch(file.parent.name))
    }
    lesson = _lesson(reference / _LESSON, files.values())
    found = [_rung(number, file, lesson=number in lesson) for file, number in files.items()]
    return tuple(sorted(found, key=lambda rung: (rung.number, rung.name)))


def _lesson(path: Path, numbers: Collection[int]) -> Collection[int]:
    if not path.exists():
        return numbers
    try:
        lesson = base.convert(msgspec.toml.decode(path.read_bytes()), _Lesson).lesson
    except msgspec.DecodeError as error:
        raise base.UsageError.saying("{path}: {error}", path=str(path), error=str(error)) from error
    if unknown := set(lesson) - set(numbers):
        raise base.UsageError.saying(
            "{path}: no rung {number}", path=str(path), number=min(unknown)
        )
    return lesson


def find_ladder(lab: str) -> tuple[Rung, ...]:
    """The rungs of the ladder of this name, here or in the package; () when there is none."""
    ladders = (find_rungs(place / lab) for place in provided(REFERENCE))
    return next(filter(None, ladders), ())


def _rung(number: int, file: Path, *, lesson: bool) -> Rung:
    trap = False
    parts: defaultdict[str, list[str]] = defaultdict(list)
    label = ""
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in itertools.takewhile(lambda line: line.startswith("//"), lines):
        text = line[2:].strip()
        if match := _TITLE.fullmatch(text):
            trap, label, text = bool(match["trap"]), "title", match["title"]
        elif match := _LABEL.fullmatch(text):
            label, text = match["label"], match["text"]
        if text:
            parts[label].append(text)
    return Rung(
        number=number,
        name=file.parent.name,
        title=" ".join(parts["title"]).rstrip("."),
        trap=trap,
        changed=" ".join(parts["Changed"]),
        why=" ".join(parts["Why"]),
        lesson=lesson,
    )


# --- the measured ladder -----------------------------------------------------------------------


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


def stored_ladders(out: Path) -> tuple[list[Ladder], list[str]]:
    """The ladders below ``out``, and one line for each file there that is not a ladder."""
    ladders, complaints = [], []
    for path in sorted((out / FOLDER).glob("*.json")):
        try:
            ladders.append(load_ladder(path))
        except StoreError as error:  # noqa: PERF203 - a handful of files
            complaints.append(str(error))
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
