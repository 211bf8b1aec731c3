"""Messages between the grader and its GPU worker, one line of JSON each."""

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

from grader.base import Finding, GpuInfo, ToolchainError, cache_folder, prepared
from grader.build import find_toolchain
from grader.problems import ProblemRef
from grader.run.gpu.locks import locked
from grader.run.protocol import CaseOutcome, Done, Failed, PlannedCase
from ptxsim import answer_of
from ptxsim.plan import Plan, Record


class Prepare(Record, tag="prepare"):
    """The first request: load and compile whatever needs no CUDA context."""

    problem: ProblemRef


class Warm(Record, tag="warm"):
    """Make the CUDA context and what all jobs need: nothing is being measured. A job follows."""


class GpuJob(Record, tag="job"):
    """Cases of one submission. Another job may follow when ``Done`` has answered this one."""

    cubin: str  # path
    cases: tuple[PlannedCase, ...]
    runs: int  # of every timed case
    run_seconds: float  # measuring time of one run; one repetition is always made
    # Ids of the cases that are measured against the baseline as well as verified.
    timed: frozenset[str] = frozenset()
    host_calls: str = "charged"  # or "free": allocating, freeing and waiting take no time


class Ready(Record, tag="ready"):
    gpu: GpuInfo


class Beat(Record, tag="beat"):
    """A launch has finished; the next answer is due within the launch limit."""

    case: str


class Elements(Record):
    places: bytes  # int64: where in the output's memory they were
    got: bytes  # as stored there


class Taken(Record):
    """Elements and keys of one run, from which the host computes a few elements again."""

    keys: tuple[bytes, ...]  # of the inputs
    outputs: tuple[Elements, ...]


class Measured(Record, tag="measured"):
    """The GPU's report on one case, with samples of its runs for the host to check."""

    outcome: CaseOutcome
    first: tuple[Taken, ...] = ()  # of a program's first call, if that is apart
    later: tuple[Taken, ...] = ()
    notes: tuple[Finding, ...] = ()  # of where it ran; they say nothing against the submission


class Broken(Record, tag="broken"):
    """The submission's kernel destroyed the context; the worker ends."""

    case: str
    message: str  # "cudaErrorIllegalAddress: …"
    findings: tuple[Finding, ...] = ()


Reply = Ready | Beat | Measured | Broken | Failed | Done


class Watching(Record):
    """One plan to run once under a profiler."""

    problem: ProblemRef
    cubin: str  # path
    plan: Plan
    baseline: bool = False  # run the fastest baseline too, on the same inputs


def chosen_by(job: Path) -> Path:
    """Where a profiled process leaves the names of the baselines that it chose: a JSON list."""
    return job.with_suffix(".chosen")


# --- checks ------------------------------------------------------------------------------------

_LIBRARY = ("-O3", "-shared", "-Xcompiler=-fPIC", "-cudart=static")


def checks_cubin(arch: str, source: Path) -> Path:
    """The cubin for ``arch`` ("sm_90"). Raises ToolchainError with the compiler's first error. A
    cubin does not depend on the driver, so only the source and the architecture name it."""
    return _kept(arch, source, ("-cubin",), ".cubin")


def host_library(arch: str, source: Path) -> Path:
    """A shared library of host functions that launch kernels for ``arch``. Raises ToolchainError.
    It has the CUDA runtime linked in. Runtimes in one process share the GPU's primary context, so
    it takes CuPy's pointers and streams."""
    return _kept(arch, source, _LIBRARY, f"-cuda-{find_toolchain(arch).cuda_version}.so")


def _kept(arch: str, source: Path, flags: Sequence[str], suffix: str) -> Path:
    """From the cache, or compiled. It appears by rename."""
    key = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    name = f"{source.stem}-{arch}-{key}{suffix}"
    folder = cache_folder() / "native"
    target = prepared(name) or folder / name
    if target.exists():
        return target
    folder.mkdir(exist_ok=True)
    with locked(folder / "checks.lock"), tempfile.TemporaryDirectory(dir=folder) as scratch:
        if target.exists():
            return target
        output, tools = Path(scratch) / target.name, find_toolchain(arch)
        command = [str(tools.nvcc), f"-ccbin={tools.host_compiler}", f"-arch={arch}", "-std=c++17"]
        done = answer_of([*command, *flags, source, "-o", output])
        if done.returncode != 0:
            said = done.stderr
            error = next((line for line in said.splitlines() if "error" in line), said)
            raise ToolchainError.saying(
                "nvcc cannot compile the grader's own checks: {why}", why=error.strip()
            )
        output.replace(target)
    return target
