"""The result of one size: right or wrong, and its times."""

from typing import Annotated

from msgspec import Meta

from grader.base import Dims, ErrorStats, Verdict
from ptxsim.plan import Record
from ptxsim.text import NOTHING, Message

TARGET_HALF_WIDTH = 0.0025  # measuring stops when the ratio is known this well (relative)
_MIN_PAIRS = 5  # fewer have no useful confidence interval


def few(samples: int) -> bool:
    """Whether an interval of the median from so many repetitions covers less than 95 %."""
    return samples <= _MIN_PAIRS


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
