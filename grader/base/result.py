"""The result document and its parts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from grader.base.explanation import Explanation, Score, SizeGroup
from grader.base.finding import Finding
from grader.base.records import Dims, KernelInfo, SourceFile, Verdict
from ptxsim.findings import LineCount
from ptxsim.plan import Dim3, Record
from ptxsim.text import NOTHING, Message

SCHEMA = "sgemm-grader/result"
SCHEMA_VERSION = 10


class Mismatch(Record):
    index: tuple[int, ...]  # of the element, from 0: (row, column) of a matrix
    element: str  # by name: "C[row 3, column 5]"
    got: float | None  # null stands for NaN or infinity, which JSON cannot hold; see got_text
    want: float
    got_text: str  # as printed: "nan", "inf", "1.25"


class ErrorStats(Record):
    max: float | None  # largest |got - want| / scale; null when not finite
    rms: float | None
    tolerance: float
    wrong: int  # elements outside the tolerance
    first_mismatch: Mismatch | None
    # Rows of '.', '+', '#': right, some wrong, all wrong; of a matrix by tiles, of a vector line by
    # line; () when right, and for a scalar.
    tile_map: tuple[str, ...]
    # Elements along each edge of one sign of tile_map; of a vector, how many a sign stands for.
    tile_edge: int
    operand: str  # the output: "C"
    shape: tuple[int, ...]  # of that output


class Run(Record):
    """The best repetition of one run, in the problem's unit."""

    speed: float
    baseline_speed: float
    repetitions: tuple[tuple[float, float], ...] = ()  # always (): to go with the next version


class Watched(Record):
    """NVML's readings between the repetitions of one case."""

    sm_clock_mhz: tuple[int, int] | None  # lowest and highest; null: NVML did not tell
    slowed: tuple[Message, ...]  # reasons the GPU gave for a lower clock, such as "power cap"
    unseen: tuple[Message, ...] = ()  # what NVML did not tell


class Mode(Record):
    """One of two speeds that the repetitions of a size fall into; medians."""

    speed: float
    ratio: float  # submission's speed / baseline's, in these repetitions
    share: float  # of the repetitions; every run has the same weight


class Modes(Record):
    """Two speeds, further apart than noise or the clock explains."""

    fast: Mode
    slow: Mode


class PartTime(Record):
    """One kernel of a call, or its memsets or copies, measured apart from the scored runs."""

    name: str  # a kernel's, mangled; "memset", "copy" or "host calls"
    kernel: bool
    times: int  # in one call
    ms: float  # all of them together, with the gap before each; median


class RunnerUp(Record):
    """The second best variant of the baseline, which was timed beside the submission, too."""

    name: str
    ratio: float  # its speed / that of the variant that counts; median over repetitions


class Timing(Record):
    runs: Annotated[tuple[Run, ...], Meta(min_length=1)]
    ratio: float  # median over repetitions: submission's speed / baseline's
    ratio_ci: tuple[float, float]  # 95 %
    noise: float  # relative spread of one repetition's ratio
    samples: int  # repetitions
    baseline: str | None = None  # the variant that counts: "cublasSgemm" or "cublasLt 2"
    stopped: str | None = None  # why measuring ended: "certain" (interval) or "budget" (time)
    disturbed: int = 0  # repetitions dropped because others used the GPU, or it was slowed
    watched: Watched | None = None  # null: NVML is missing, so nothing was watched
    modes: Modes | None = None  # null: one speed
    # Of a call that allocates, frees or waits: what the device's part takes, and what comes on top.
    device_ms: float | None = None
    host_ms: float | None = None
    parts: tuple[PartTime, ...] = ()  # of a call of several operations
    runner_up: RunnerUp | None = None  # null: no other variant came near the baseline

    @property
    def scored_speed(self) -> float:
        """The best run's, as the published rule has it; the slower mode's where there are two."""
        best = max(run.speed for run in self.runs)
        return min(best, self.modes.slow.speed) if self.modes else best

    @property
    def baseline_speed(self) -> float:
        """The baseline's best run."""
        return max(run.baseline_speed for run in self.runs)

    @property
    def scored_ratio(self) -> float:
        """The median of all repetitions; of the slower mode where there are two."""
        return min(self.ratio, self.modes.slow.ratio) if self.modes else self.ratio


class ThreadTile(Record):
    """The part of a matrix that one block of the last launch computes: where its first threads
    wrote."""

    operand: str  # the output: "C"
    rows: int  # from the first to the last that the block wrote
    columns: int
    threads: tuple[tuple[int, ...], ...]  # by thread, elements in the part: row · columns + column

    def __post_init__(self) -> None:
        """Refuse what no worker of ours says: a submission may speak for one."""
        count = self.rows * self.columns
        sound = min(self.rows, self.columns) > 0 and count <= 1 << 16 and len(self.threads) <= 4
        for each in self.threads:
            sound = sound and len(each) <= 256 and all(0 <= element < count for element in each)
        if not sound:
            raise ValueError("not a block's part of a matrix")


class CaseResult(Record):
    id: str  # e.g. "correctness-3", "performance-0", "cpu-2"
    size: Dims
    amount: int  # operations or bytes of the problem: what its unit counts
    verdict: Verdict | None = None  # null: not run, message says why
    message: Message = NOTHING
    seconds: float | None = None  # wall
    error: ErrorStats | None = None  # null when refused or stopped
    timing: Timing | None = None  # of the cases that are timed
    kernels: int | None = None  # launches of one call; null: refused
    tile: ThreadTile | None = None  # of the last size that the simulator ran


class LaunchKind(Record):
    """One way in which a kernel was launched at one size."""

    kernel: str  # mangled
    grid: Dim3
    block: Dim3
    shared_bytes: int  # dynamic
    times: int


class BuildInfo(Record):
    ok: bool
    command: str  # the command lines of the compilers
    log: str  # what the compilers printed, cut to a readable length
    seconds: float  # wall
    kernels: tuple[KernelInfo, ...]
    arch: str | None = None  # what the kernels' figures are for, e.g. "sm_90"


class Build(Record):
    """Output of nvcc for one submission, which no document has."""

    arch: str  # e.g. "sm_80"
    ptx: Path  # with line info
    second_ptx: Path  # of the same device code by nvcc -G, unoptimised; empty if there is none
    cubin: Path
    host_library: Path  # the host function, linked against no CUDA runtime
    info: BuildInfo


class LabRef(Record):
    id: str
    sha256: str


class ProblemInfo(Record):
    """Facts about the problem that a report needs."""

    name: str  # "gemm"
    title: str  # "C = A·B in FP32, …"
    unit: str  # of speeds: "TFLOPS"
    scale: float  # so many operations or bytes a second are 1 of it
    counts: Literal["operations", "bytes"]
    baseline: str  # what speeds are compared with: "cuBLAS"
    main: str  # the file to hand in: "sgemm.cu"
    dims: tuple[str, ...]  # of a size: ("m", "n", "k")
    output: str  # the operand that a report is about: "C"
    formula: str  # of the operations: "2·M·N·K"; "" where they do not count
    questions: tuple[str, ...]  # that the report answers, by name
    # What may do the operations: "f32", or tensor cores by types of inputs and sums: "f16.f32";
    # "f16.f32/3" where each takes three products.
    arithmetic: str = "f32"

    def like(self, other: ProblemInfo) -> bool:
        """Whether speeds compare: the same task, in the same layout, beside the same baseline."""
        return (self.name, self.title, self.baseline) == (other.name, other.title, other.baseline)

    def speed(self, amount: int, milliseconds: float) -> float:
        return amount / (milliseconds * 1e-3) / self.scale

    def peak(self, gpu: GpuInfo) -> float | None:
        """Return the GPU's peak in ``unit``; null where it is not known."""
        if self.counts == "bytes":
            return gpu.dram_gb_s * 1e9 / self.scale if gpu.dram_gb_s else None
        tflops = gpu.peak_tflops(self.arithmetic)
        return tflops * 1e12 / self.scale if tflops else None


def split_arithmetic(name: str) -> tuple[str, int]:
    """Return the types, and how many products on tensor cores stand for one: "f16.f32/3"."""
    types, _, products = name.partition("/")
    return types, int(products or 1)


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


class TensorPeak(Record):
    """Peak of a GPU's tensor cores with one pair of types."""

    arithmetic: str  # types of the inputs and of the sums: "f16.f32"
    tflops: float


class GpuInfo(Record):
    name: str
    uuid: str
    driver: str
    sm_clock_mhz: int  # the highest it may boost to
    memory_bytes: int
    compute_capability: str
    multiprocessors: int | None = None
    fp32_peak_tflops: float | None = None  # at sm_clock_mhz, without tensor cores
    dram_gb_s: float | None = None  # peak of the memory: clock × bus width
    tensor_peaks: tuple[TensorPeak, ...] = ()  # at sm_clock_mhz

    def peak_tflops(self, arithmetic: str) -> float | None:
        """Return the peak of an arithmetic as problems name it; None if not known."""
        if arithmetic == "f32":
            return self.fp32_peak_tflops
        types, products = split_arithmetic(arithmetic)
        found = (each.tflops for each in self.tensor_peaks if each.arithmetic == types)
        return next((tflops / products for tflops in found), None)


class SlurmInfo(Record):
    job: str
    node: str
    partition: str
    task: str | None = None  # index within an array of jobs
    restarts: int = 0  # how often Slurm had put the job back into its queue before


class StandingRung(Record):
    """A rung of the reference ladder, with the facts that a standing needs."""

    number: int
    name: str  # of its folder
    title: str
    trap: bool  # teaches what not to do
    changed: str  # against the rung before
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


class Result(Judgement):
    """The result document: written once, never changed."""

    schema: str
    version: int
    created: str  # ISO 8601, UTC
    lab: LabRef
    problem: ProblemInfo
    submission: SubmissionRef
    environment: Environment
