"""Nsight Compute's counts of a kernel and of the baseline beside it."""

from typing import Literal

from grader.base import Dims, ProblemInfo
from grader.results.result import LabRef
from grader.results.score import weighted_mean
from ptxsim.plan import Record

PROFILE_SCHEMA = "sgemm-grader/profile"
PROFILE_VERSION = 1
_SECTOR = 32  # bytes
_LANES = 32  # of a warp


class Profile(Record):
    """Counts of one launch, as the profiler measured them."""

    kernel: str  # mangled
    metrics: dict[str, float]  # by ncu's names, those that this GPU knows


class ProfiledSide(Record):
    """All launches of one call. Figures are None where this GPU or ncu does not count them."""

    role: Literal["own", "baseline", "first"]  # first: the reference ladder's first rung
    name: str  # of the student, the baseline's variant or the rung
    launches: tuple[Profile, ...]

    def total(self, metric: str) -> float | None:
        """The sum over the launches of a metric that adds up."""
        found = [each.metrics.get(metric) for each in self.launches]
        known = [value for value in found if value is not None]
        return sum(known) if known and len(known) == len(found) else None

    def mean(self, metric: str) -> float | None:
        """Weighted by the launches' times."""
        pairs = [
            (each.metrics.get("gpu__time_duration.sum", 0.0), each.metrics.get(metric))
            for each in self.launches
        ]
        if not any(time for time, _ in pairs) or any(value is None for _, value in pairs):
            return None
        return weighted_mean((time, value or 0.0) for time, value in pairs)

    def _bytes(self, sectors: str) -> float | None:
        found = self.total(sectors)
        return None if found is None else _SECTOR * found

    @property
    def milliseconds(self) -> float | None:
        """Under the profiler."""
        time = self.total("gpu__time_duration.sum")
        return time / 1e6 if time else None

    @property
    def asked(self) -> float | None:
        """Bytes that loads from global memory ask of the L1; cp.async included."""
        return self._bytes("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum")

    @property
    def from_l2(self) -> float | None:
        return self._bytes("lts__t_sectors_op_read.sum")

    @property
    def from_dram(self) -> float | None:
        return self.total("dram__bytes_read.sum")

    @property
    def ffma_share(self) -> float | None:
        threads = self.total("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum")
        issued = self.total("smsp__inst_executed.sum")
        return threads / _LANES / issued if threads is not None and issued else None

    @property
    def issue_active(self) -> float | None:
        """Percent of the schedulers' cycles."""
        return self.mean("smsp__issue_active.avg.pct_of_peak_sustained_active")

    @property
    def warps(self) -> float | None:
        """Resident on a multiprocessor, on average."""
        return self.mean("sm__warps_active.avg.per_cycle_active")

    @property
    def conflicts(self) -> float | None:
        """Extra wavefronts of shared loads that bank conflicts cause."""
        conflicts = self.total("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum")
        needed = self.total("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum")
        every = self.total("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum")
        if conflicts is None or needed is None or every is None:
            return None
        # The L1 counts each wavefront that it repeats for another reason as a conflict, too.
        return max(0.0, conflicts + needed - every)

    @property
    def wavefronts(self) -> float | None:
        return self.total("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum")


class ProfiledSize(Record):
    size: Dims
    amount: int  # what the problem's unit counts
    inputs: int  # bytes of the inputs, each once
    sides: tuple[ProfiledSide, ...]

    def side(self, role: str) -> ProfiledSide | None:
        return next((side for side in self.sides if side.role == role), None)


class ProfileDocument(Record):
    """Document that ``grade profile`` stores beside the results."""

    schema: str
    version: int
    created: str  # ISO 8601, UTC
    student: str
    sha256: str  # of the submission
    lab: LabRef
    problem: ProblemInfo
    gpu: str  # model
    report: str  # the file for Nsight Compute, beside this document
    sizes: tuple[ProfiledSize, ...]
