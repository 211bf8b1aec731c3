"""Counts of real builds, for the tests of what explains them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from grader.grading import preparing
from grader.grading.pipeline import Bench
from grader.hardware import gpus
from grader.labs.lab import Limits
from grader.model import Build, Explanation, KernelCounts, Size
from grader.performance.join import count
from grader.performance.loop_steps import MainLoop, main_loop_steps
from grader.performance.sass import Function, disassemble
from grader.submission.folder import load_submission
from ptxsim.sampling import SOME, LaunchSample, Sampler
from tests.support.bench import bench
from tests.support.kernels import engine
from tests.support.places import ROOT
from tests.support.product import MAIN, work

LARGE = Size.of(m=8192, n=8192, k=8192)


def rung(idea: str, ladder: str = "sgemm") -> Path:
    """Rungs are found by their idea: their numbers may move."""
    return next(ROOT.glob(f"reference/{ladder}/*_{idea}"))


@cache
def roomy() -> Bench:
    """For large kernels and sizes."""
    limits = Limits(compile_s=120, record_s=20)
    return msgspec.structs.replace(bench(), lab=msgspec.structs.replace(bench().lab, limits=limits))


@cache
def built(folder: Path, arch: str) -> Build:
    return preparing.compiled(load_submission(folder, MAIN), roomy(), arch)


def at(folder: Path, arch: str, size: Size) -> preparing.Prepared:
    return preparing.prepared(load_submission(folder, MAIN), [size], roomy(), arch)


@cache
def functions(folder: Path, arch: str) -> tuple[Function, ...]:
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
    by_name = {function.name: function for function in functions(folder, arch)}
    size = Size.of(m=n, n=n, k=n)
    found = samples(folder, arch, n, seconds, blocks)
    return tuple(count(by_name[sample.kernel], sample, work(size)) for sample in found)


def loops(
    folder: Path, arch: str, n: int, seconds: float = 20.0, blocks: int = SOME
) -> tuple[MainLoop | None, ...]:
    """How they go round their main loops."""
    by_name = {function.name: function for function in functions(folder, arch)}
    size = Size.of(m=n, n=n, k=n)
    found = samples(folder, arch, n, seconds, blocks)
    return tuple(main_loop_steps(by_name[sample.kernel], sample, work(size)) for sample in found)


@cache
def explained(folder: Path, arch: str = "sm_90") -> Explanation:
    card = gpus.find("H200" if arch == "sm_90" else "A100")
    found = preparing.explained(at(folder, arch, LARGE), roomy(), card)
    assert found.missing is None
    return found
