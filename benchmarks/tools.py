"""What benchmarks compile and record with."""

from __future__ import annotations

from pathlib import Path

import msgspec

from grader.backends.probe import first_gpu_arch
from grader.grading.preparing import Bench, Prepared, prepared
from grader.labs.lab import DEFAULT_LAB, find_lab, load_lab
from grader.model import Size
from grader.problems.gemm.gemm import Gemm
from grader.sandbox.running import Sandbox
from grader.submission.folder import load_submission
from grader.toolchain.discovery import find_toolchain

MAIN = Gemm().interface.main


def on_gpu() -> Bench:
    """The default lab on the GPU at hand. Ends the program where there is none."""
    arch = first_gpu_arch()
    if arch is None:
        raise SystemExit("no NVIDIA GPU here")
    return Bench(
        lab=load_lab(), toolchain=find_toolchain(), sandbox=Sandbox.open("auto"), gpu_arch=arch
    )


def tools(name: str = DEFAULT_LAB.stem) -> Bench:
    """A lab's, with limits for large kernels; its grades explain nothing."""
    lab = load_lab(find_lab(name))
    limits = msgspec.structs.replace(lab.limits, compile_s=120, record_s=20, memory_mb=16384)
    return Bench(
        lab=msgspec.structs.replace(lab, limits=limits),
        toolchain=find_toolchain(),
        sandbox=Sandbox.open("auto"),
        explain=False,
    )


def cubes(folder: Path, extents: tuple[int, ...], bench: Bench, arch: str) -> Prepared:
    """A submission at sizes n³. Raises Rejected."""
    sizes = [Size.of(m=n, n=n, k=n) for n in extents]
    submission = load_submission(folder, bench.lab.problem.interface.main)
    return prepared(submission, sizes, bench, arch)
