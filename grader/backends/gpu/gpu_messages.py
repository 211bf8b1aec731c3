"""Messages between the grader and its GPU worker, one line of JSON each."""

from __future__ import annotations

from pathlib import Path

from grader.backends.protocol import CaseOutcome, Done, Failed, PlannedCase
from grader.model import Finding, GpuInfo, Plan, Record
from grader.problems.catalogue import ProblemRef


class TimedCase(Record):
    """A case for the GPU; ``timed`` ones are measured against the baseline as well as verified."""

    case: PlannedCase
    timed: bool


class Prepare(Record, tag="prepare"):
    """The first request: load and compile whatever needs no CUDA context."""

    problem: ProblemRef


class Warm(Record, tag="warm"):
    """Make the CUDA context and what all jobs need: nothing is being measured. A job follows."""


class GpuJob(Record, tag="job"):
    """Cases of one submission. Another job may follow when ``Done`` has answered this one."""

    cubin: str  # path
    cases: tuple[TimedCase, ...]
    runs: int  # of every timed case
    run_seconds: float  # measuring time of one run; one repetition is always made
    host_calls: str = "charged"  # or "free": allocating, freeing and waiting take no time


class Ready(Record, tag="ready"):
    gpu: GpuInfo


class Beat(Record, tag="beat"):
    """A launch has finished; the next answer is due within the launch limit."""

    case: str


class Elements(Record):
    """Some elements of one output, as bytes."""

    places: bytes  # int64: where in the output's memory they were
    got: bytes  # as stored there


class Taken(Record):
    """What the host needs to compute a few elements of one run again."""

    keys: tuple[bytes, ...]  # of the inputs
    outputs: tuple[Elements, ...]


class Measured(Record, tag="measured"):
    """What the GPU says of one case, and what was taken of its runs for the host to check."""

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
