"""The result document and its parts."""

from __future__ import annotations

from grader.base import BuildInfo, Dims, Finding, GpuInfo, ProblemInfo, Verdict
from grader.labs import SourceFile
from grader.model import Explanation
from grader.results.case import CaseResult
from grader.results.score import ByModel, Score, SizeGroup
from ptxsim.findings import LineCount
from ptxsim.plan import Dim3, Record
from ptxsim.text import Message

SCHEMA = "sgemm-grader/result"
SCHEMA_VERSION = 10


class LaunchKind(Record):
    """One way in which a kernel was launched at one size."""

    kernel: str  # mangled
    grid: Dim3
    block: Dim3
    shared_bytes: int  # dynamic
    times: int


class LabRef(Record):
    id: str
    sha256: str


class SubmissionRef(Record):
    student: str
    sha256: str
    files: tuple[SourceFile, ...]
    submitted: tuple[str, ...] = ()  # each time it was handed in, ISO 8601 with a zone; () unknown


class Environment(Record):
    grader: str  # version
    device: str  # "cpu" or "gpu"
    gpu: GpuInfo | None
    cuda: str | None  # toolkit version
    host: str
    slurm: SlurmInfo | None
    sandbox: str  # "bubblewrap", "landlock" or "rlimits"
    exposed: tuple[str, ...]  # what the sandbox leaves open
    engine: str  # digest of the simulator's C++


class SlurmInfo(Record):
    job: str
    node: str
    partition: str
    task: str | None = None  # index within an array of jobs
    restarts: int = 0  # how often Slurm had put the job back into its queue before


class RungFacts(Record):
    """A rung of the reference ladder, by its header. Texts are "" where that has none."""

    number: int
    name: str  # of its folder
    title: str
    trap: bool  # teaches what not to do; may be slower than the rung before
    changed: str  # against the rung before


class StandingRung(RungFacts):
    speed: float | None  # at the size compared; null where it was not timed
    ratio: float | None  # to the baseline, measured when the ladder was


class Standing(Record):
    """Where a submission stands on the reference ladder of the same GPU model, by its ratio."""

    size: Dims  # the size compared: the largest that both were timed at
    ratio: float  # of the submission
    rungs: int  # on the ladder that were timed at this size
    below: StandingRung | None  # the fastest rung before ``ahead``; null: slower than the first
    ahead: tuple[StandingRung, ...]  # from there to the first faster rung; () when none is faster
    measured: str  # when the ladder was, ISO 8601, UTC


class Judgement(Record, kw_only=True):
    """A grading's part of a result: the judge's, but for the explanation."""

    build: BuildInfo | None = None
    cases: tuple[CaseResult, ...] = ()
    findings: tuple[Finding, ...] = ()
    lines: tuple[LineCount, ...] = ()  # of the largest simulated case; () when none was
    verdict: Verdict
    score: Score | None = None
    error: Message | None = None  # why, when the verdict is not the cases' own
    standing: Standing | None = None  # null without a ladder of this GPU model, or without times
    launches: tuple[LaunchKind, ...] = ()  # at the largest size that was run
    explanation: Explanation | None = None  # of what is right; null where not wanted
    groups: tuple[SizeGroup, ...] = ()  # public and hidden sizes, of a lab that has both
    by_model: ByModel | None = None  # where the score is the model's; null: of what was measured


class Result(Judgement):
    """The result document: written once, never changed."""

    schema: str
    version: int
    created: str  # ISO 8601, UTC
    lab: LabRef
    problem: ProblemInfo
    submission: SubmissionRef
    environment: Environment
