"""One kernel over many sizes and many values of its macros: each built, checked and timed.

Every point is a document of its own, ``<out>/<lab>/<student>/.sweeps/<key>.json``, whose key is of
everything that decides its figures. So a sweep that was interrupted resumes, and a wider one
repeats nothing.
"""

import hashlib
import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import msgspec

import grader
from grader import base
from grader.judge import GradingContext, compile_for, grade
from grader.labs import Case, Lab, Scoring, Submission
from grader.model import Explanation
from grader.report import formatting as text
from grader.results import Result, StoreError, store
from grader.run import Progress
from grader.study.explaining import explain_sizes, grade_and_explain
from grader.study.versions import MainKernel, main_kernel
from ptxsim.plan import Record, Size
from ptxsim.text import NOTHING, Message, counted, phrase

SCHEMA = "sgemm-grader/sweep-point"
SCHEMA_VERSION = 2
_FOLDER = ".sweeps"  # hidden: it holds no results
_AT_ONCE = 4  # variants; a build and a simulation each keep one or two cores busy
_SHARED = re.compile(r"uses too much shared data \(0x([0-9a-f]+) bytes, 0x([0-9a-f]+) max\)")


class Estimate(Record):
    """Speed that the counts allow on a GPU; nothing was timed."""

    gpu: str
    speed: float  # expected, with waiting
    most: float  # what no kernel with these counts exceeds
    resource: str  # that limits it


class MeasuredPoint(Record):
    speed: float  # the scored one, in the problem's unit
    baseline: float
    ratio: float
    ratio_ci: tuple[float, float]


class Point(Record):
    """One variant at one size."""

    schema: str
    version: int
    defines: tuple[str, ...]  # "BM=64"
    size: base.Dims
    verdict: base.Verdict
    dropped: Message  # why there is no speed; empty where there is one
    gpu: base.GpuInfo | None
    kernel: MainKernel | None
    measured: MeasuredPoint | None  # null in the simulator
    estimates: tuple[Estimate, ...]  # () on a GPU


class Sweep(Record):
    """Request of one sweep."""

    submission: Submission
    variants: tuple[tuple[str, ...], ...]  # the defines of each
    sizes: tuple[Size, ...]

    @property
    def name(self) -> str:
        """The macros, and a digest that tells it from other sweeps of the same source."""
        macros = "-".join(each.partition("=")[0] for each in self.variants[0])[:60]
        digest = hashlib.sha256(msgspec.json.encode((self.variants, self.sizes))).hexdigest()
        return "-".join(filter(None, (macros, digest[:6])))


def variants_of(values: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Every combination; a single one without macros."""
    named = [[f"{name}={value}" for value in each] for name, each in values.items()]
    return tuple(itertools.product(*named))


def run_sweep(
    sweep: Sweep,
    context: GradingContext,
    out: Path,
    gpu: str | None,
    progress: Progress,
    *,
    force: bool = False,
    found: Callable[[Point, bool], None] = lambda _point, _stored: None,
) -> tuple[Point, ...]:
    """All points, by variants, then sizes. gpu: the UUID of the one that times.

    found: hears of every point, and whether it was stored before.
    """
    variants = [msgspec.structs.replace(sweep.submission, defines=each) for each in sweep.variants]
    paths = [{size: _path(v, size, context, out, gpu) for size in sweep.sizes} for v in variants]
    known = [{} if force else _stored(each) for each in paths]
    missing = [[size for size in sweep.sizes if size not in each] for each in known]
    points: list[Point] = []
    with ExitStack() as ending:
        pool = ThreadPoolExecutor(max_workers=min(_AT_ONCE, os.cpu_count() or 1))
        ending.callback(pool.shutdown, cancel_futures=True)
        # A GPU takes one variant after the other; meanwhile the others are compiled.
        if context.gpu_arch:
            for variant, sizes in zip(variants, missing, strict=True):
                if sizes:
                    arch = context.lab.arch_on(context.gpu_arch)
                    pool.submit(compile_for, variant, context, arch)
        run = map if context.gpu_arch else pool.map
        work = partial(_points, context=context, progress=progress)
        for stored, made, files in zip(known, run(work, variants, missing), paths, strict=True):
            for size, file in files.items():
                point = stored.get(size) or made[size]
                if size in made and point.verdict is not base.Verdict.IE:  # which may pass
                    store.write_document(file, point)
                found(point, size not in made)
                points.append(point)
    return tuple(points)


def _path(
    submission: Submission, size: Size, context: GradingContext, out: Path, gpu: str | None
) -> Path:
    about = [
        *(submission.sha256, submission.defines, size, context.lab.sha256, context.gpu_arch, gpu),
        *(context.toolchain.cuda_version, grader.__version__, SCHEMA_VERSION, context.card),
    ]
    key = hashlib.sha256(msgspec.json.encode(about)).hexdigest()[:24]
    folder = store.document_path(out, context.lab.id, submission.student, submission.sha256, "")
    return folder.parent / _FOLDER / f"{key}.json"


def _stored(paths: Mapping[Size, Path]) -> dict[Size, Point]:
    """The points that are stored and not damaged; the others are made again."""
    found = {}
    for size, path in paths.items():
        with suppress(StoreError):
            found[size] = store.load_document(path, Point, SCHEMA, SCHEMA_VERSION)
    return found


def sweepable(lab: Lab) -> Lab:
    """The lab without rules for points: they may know neither the GPU nor the sizes of a sweep."""
    return msgspec.structs.replace(lab, scoring=Scoring(runs=lab.scoring.runs))


# --- one variant ------------------------------------------------------------------------------


def _points(
    submission: Submission, sizes: Sequence[Size], context: GradingContext, progress: Progress
) -> dict[Size, Point]:
    if not sizes:
        return {}
    cases = tuple(Case(id=f"sweep-{i}", size=size) for i, size in enumerate(sizes))
    # Hidden sizes stay out: each variant would be another question about them.
    lab = msgspec.structs.replace(context.lab, performance=cases, hidden=None)
    own, explained = msgspec.structs.replace(context, lab=lab), context.gpu_arch is None
    graded = (grade_and_explain if explained else grade)(submission, own, progress)
    result = graded.result
    fates = {case: _fate(result, case) for case in cases}
    right = [case.size for case, (_, dropped) in fates.items() if not dropped]
    estimated = _estimates(submission, right, own, result, progress) if explained else {}
    points = {}
    for case, (verdict, dropped) in fates.items():
        timing = next((each.timing for each in result.cases if each.id == case.id), None)
        measured: MeasuredPoint | None = None
        estimates: tuple[Estimate, ...] = ()
        if not dropped and timing is not None:
            measured = MeasuredPoint(
                speed=timing.scored_speed,
                baseline=timing.baseline_speed,
                ratio=timing.scored_ratio,
                ratio_ci=timing.ratio_ci,
            )
        if not dropped and explained:
            estimates, dropped = estimated[case.size]
        elif not dropped and measured is None:
            dropped = phrase("not timed")
        points[case.size] = Point(
            schema=SCHEMA,
            version=SCHEMA_VERSION,
            defines=submission.defines,
            size=case.size.dims,
            verdict=verdict,
            dropped=dropped,
            gpu=result.environment.gpu,
            kernel=main_kernel(result),
            measured=measured,
            estimates=estimates,
        )
    return points


def _fate(result: Result, case: Case) -> tuple[base.Verdict, Message]:
    """The verdict at this size, and why there is no speed; empty where all is well.

    What is wrong at a size that every variant must get right concerns all sizes of the sweep.
    """
    failed = [each for each in result.cases if each.verdict not in (None, base.Verdict.AC)]
    own = next((each for each in result.cases if each.id == case.id), None)
    common = [each for each in failed if not each.id.startswith("sweep-")]
    if own is not None and own in failed and own.verdict:
        return own.verdict, _reason(own.verdict, own.message)
    if result.verdict is base.Verdict.AC or (failed and not common and own is not None):
        return base.Verdict.AC, NOTHING if own is None or own.verdict else own.message
    first = common[0] if common else None
    if first is not None and first.verdict is not None:
        there = phrase("{size}: {what}", size=base.size_text(first.size), what=first.message)
        return first.verdict, _reason(first.verdict, there)
    return result.verdict, _reason(result.verdict, result.error or NOTHING)


def _reason(verdict: base.Verdict, message: Message) -> Message:
    if shared := _SHARED.search(" ".join(str(message).split())):
        asked, most = (int(each, 16) for each in shared.groups())
        needs = phrase("it needs {asked:,} bytes of shared memory; a block can declare {most:,}")
        return needs.given(asked=asked, most=most)
    words = text.VERDICT_WORDS[verdict]
    return phrase("{what}: {reason}", what=words, reason=message) if message else words


def _estimates(
    submission: Submission,
    sizes: Sequence[Size],
    context: GradingContext,
    result: Result,
    progress: Progress,
) -> dict[Size, tuple[tuple[Estimate, ...], Message]]:
    """For a few known GPUs, or why there are none. The largest size is explained already."""
    why = result.explanation
    found = {Size(dims=why.size): _bounds(why)} if why else {}
    if left := [size for size in sizes if size not in found]:
        progress(
            phrase("explaining"),
            counted("explaining {count} size", "explaining {count} sizes", len(left)),
        )
        try:
            each = explain_sizes(submission, left, context, context.lab.architectures[0])
            found |= zip(left, map(_bounds, each), strict=False)
        except base.Rejected as refusal:
            found |= dict.fromkeys(left, _bounds(refusal))
    late = phrase("no bound: {reason}", reason=phrase("the counts are incomplete"))
    return {size: found.get(size, ((), late)) for size in sizes}


def _bounds(why: Explanation | base.Rejected) -> tuple[tuple[Estimate, ...], Message]:
    if isinstance(why, base.Rejected):
        return (), _reason(why.verdict, why.message)
    if why.bounds:
        return tuple(
            Estimate(gpu=each.gpu, speed=each.speed, most=each.ceiling, resource=each.resource)
            for each in why.bounds
        ), NOTHING
    missing = why.missing or phrase("the counts are incomplete")
    return (), phrase("no bound: {reason}", reason=missing)
