"""Counts of real builds, for the tests of what explains them."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from grader.base import gpus
from grader.build.building import Build
from grader.build.sass import SassFunction, disassemble
from grader.judge.program import GradingContext, Program, compile_for, prepare
from grader.labs.shape import Limits
from grader.labs.submission import load_submission
from grader.model.join import count, factors
from grader.model.loop_steps import MainLoop, main_loop_steps
from grader.model.records import Explanation, KernelCounts
from grader.study import explain_program
from ptxsim import Sampler
from ptxsim.findings import LaunchSample
from ptxsim.plan import Size
from ptxsim.sampling import SOME
from tests.support.bench import bench, engine, of_lab
from tests.support.places import ROOT
from tests.support.product import MAIN, work

LARGE = Size.of(m=8192, n=8192, k=8192)


def rung(idea: str, ladder: str = "sgemm") -> Path:
    """Rungs are found by their idea: their numbers may move."""
    return next(ROOT.glob(f"reference/{ladder}/*_{idea}"))


@cache
def roomy() -> GradingContext:
    """For large kernels and sizes."""
    return of_lab(bench(), limits=Limits(compile_s=120, record_s=20))


@cache
def built(folder: Path, arch: str) -> Build:
    return compile_for(load_submission(folder, MAIN), roomy(), arch)


def at(folder: Path, arch: str, size: Size) -> Program:
    return prepare(load_submission(folder, MAIN), [size], roomy(), arch)


@cache
def functions(folder: Path, arch: str) -> tuple[SassFunction, ...]:
    shared = bench()
    return disassemble(built(folder, arch).cubin, shared.toolchain, shared.sandbox)


@cache
def samples(
    folder: Path, arch: str, n: int, seconds: float = 20.0, blocks: int = SOME
) -> tuple[LaunchSample, ...]:
    """Of every kind of launch of an n³ product."""
    ready = at(folder, arch, Size.of(m=n, n=n, k=n))
    sampler = Sampler(ready.built.ptx.read_text(), ready.submission.folder, engine())
    return sampler.sample(ready.plans[0], seconds, blocks)


@cache
def counts(
    folder: Path, arch: str, n: int, seconds: float = 20.0, blocks: int = SOME
) -> tuple[KernelCounts, ...]:
    """What they do."""
    return tuple(count(*each) for each in _launches(folder, arch, n, seconds, blocks))


def loops(
    folder: Path, arch: str, n: int, seconds: float = 20.0, blocks: int = SOME
) -> tuple[MainLoop | None, ...]:
    """How they go round their main loops."""
    return tuple(main_loop_steps(*each) for each in _launches(folder, arch, n, seconds, blocks))


def _launches(
    folder: Path, arch: str, n: int, seconds: float, blocks: int
) -> Iterator[tuple[SassFunction, LaunchSample, float]]:
    by_name = {function.name: function for function in functions(folder, arch)}
    found = samples(folder, arch, n, seconds, blocks)
    for sample, by in zip(found, factors(found, work(Size.of(m=n, n=n, k=n))), strict=True):
        yield by_name[sample.kernel], sample, by


@cache
def explained(folder: Path, arch: str = "sm_90") -> Explanation:
    card = gpus.find("H200" if arch == "sm_90" else "A100")
    found = explain_program(at(folder, arch, LARGE), card)
    assert found.missing is None, found.missing
    return found
