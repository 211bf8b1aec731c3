"""Messages between the grader and its GPU worker, one line of JSON each."""

from __future__ import annotations

from grader.backends.protocol import Done, Failed, Finished, PlannedCase
from grader.model import Finding, GpuInfo, Plan, Record


class TimedCase(Record):
    """A case for the GPU; ``timed`` ones are measured against cuBLAS as well as verified."""

    case: PlannedCase
    timed: bool


class GpuJob(Record):
    cubin: str  # path
    cases: tuple[TimedCase, ...]
    runs: int  # of every timed case
    run_seconds: float  # measuring time of one run; one repetition is always made
    baseline: str  # "best", "cublas" or "cublaslt"
    host_calls: str = "charged"  # or "free": allocating, freeing and waiting take no time


class Ready(Record, tag="ready"):
    gpu: GpuInfo


class Beat(Record, tag="beat"):
    """A launch has finished; the next answer is due within the launch limit."""

    case: str


class Broken(Record, tag="broken"):
    """The submission's kernel destroyed the context; the worker ends."""

    case: str
    message: str  # "cudaErrorIllegalAddress: …"
    findings: tuple[Finding, ...] = ()


Reply = Ready | Beat | Finished | Broken | Failed | Done


class Watching(Record):
    """One plan to run once under a profiler."""

    cubin: str  # path
    plan: Plan
