"""Finds Nsight Compute, runs plans once under it, and reads its table."""

import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from grader.base import MachineError, decode
from grader.results import Profile
from grader.run import CODE, Watching, chosen_by, for_a_gpu
from grader.study.comparison import OPERATIONS
from ptxsim import answer_of
from ptxsim.plan import Launch, Record
from ptxsim.text import Message, phrase


def _sums(stem: str, ends: str) -> list[str]:
    return [f"{stem}{end}.sum" for end in ends.split()]


_EXECUTED = "smsp__sass_inst_executed_op_"
_WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_"
METRICS = (
    "gpu__time_duration.sum",
    "smsp__inst_executed.sum",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    *_sums(_EXECUTED, "shared_ld shared_st global_ld global_st ldgsts"),
    *_sums("l1tex__t_requests_pipe_lsu_mem_global_op_", "ld st"),
    *_sums("l1tex__t_sectors_pipe_lsu_mem_global_op_", "ld st"),
    *_sums("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_", "ld st"),
    *_sums("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_", "ld st"),
    *_sums(_WAVEFRONTS, "ld st ldgsts"),
    *_sums(_EXECUTED, "ldsm stsm"),
    *_sums(_WAVEFRONTS, "ldsm stsm"),
    "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm.sum",
    # Tensor cores: instructions, and the operations of HMMA and of HGMMA by types.
    *_sums("sm__inst_executed_pipe_tensor_op_", "hmma gmma"),
    f"{_EXECUTED}shared_gmma.sum",
    *(f"{name}.sum" for name in dict.fromkeys(OPERATIONS.values())),
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    # TMA
    *_sums(_EXECUTED, "tma_ld tma_st"),
    "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum",
    "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_tma_ld.sum",
    "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st.sum",
    "lts__t_sectors_op_read.sum",
    "dram__bytes_read.sum",
    "sm__warps_active.avg.per_cycle_active",
    "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "smsp__inst_executed_pipe_fma.sum",
    "smsp__cycles_elapsed.max",
    "smsp__cycles_elapsed.avg.per_second",
)
_TABLE = ("--csv", "--page", "raw", "--print-units", "base", "--print-kernel-base", "mangled")
_JOB = "job.json"
_PLACES = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_FORBIDDEN = "ERR_NVGPUCTRPERM"


class ProfiledJob(Record):
    """Outcome of one job."""

    own: tuple[Profile, ...]  # of the plan's launches, in their order
    baseline: tuple[Profile, ...]  # () unless the job asked for it
    variant: str  # the baseline's name; "" likewise


def find_ncu() -> Path:
    """Raises MachineError naming the package when there is no Nsight Compute."""
    if found := shutil.which("ncu"):
        return Path(found).absolute()
    for place in _PLACES:
        candidates = sorted(p for p in Path(place).glob("**/ncu") if os.access(p, os.X_OK))
        if candidates:
            return candidates[-1]
    raise MachineError.saying(
        "no ncu on PATH: install Nsight Compute (package nsight-compute of the CUDA toolkit)"
    )


def profile(
    jobs: Sequence[Watching], kernels: Iterable[str], *, seconds: float
) -> tuple[Profile, ...]:
    """Run every plan once under Nsight Compute; one entry per launch of one of ``kernels``.

    kernels: mangled names. Raises MachineError when there is no profiler, when this user may not
    read the counters, or when it fails.
    """
    ncu = find_ncu()
    only = ("--kernel-name", f"regex:^({'|'.join(sorted(set(kernels)))})$")
    with tempfile.TemporaryDirectory(prefix="sgemm-profile-") as folder:
        options = (*_TABLE, *only, "--metrics", ",".join(_available(ncu)))
        done = _run(ncu, options, jobs, Path(folder), seconds)
    return read(done.stdout, done.stderr)


def profile_into(
    report: Path, jobs: Sequence[Watching], sources: Path, *, seconds: float
) -> tuple[ProfiledJob, ...]:
    """The same, with all sections, kept in ``report`` for Nsight Compute's window; and with the
    baselines that jobs ask for. One entry for each job.

    sources: the folder of the submission, whose text goes into the report.
    """
    ncu = find_ncu()
    with tempfile.TemporaryDirectory(prefix="sgemm-profile-") as name:
        folder = Path(name)
        kept = folder / "kept.ncu-rep"
        options = ["--export", str(kept), "--force-overwrite", "--set", "full"]
        options += ["--metrics", ",".join(_available(ncu)), *_with_sources(ncu, sources)]
        done = _run(ncu, options, jobs, folder, seconds)
        if not kept.exists() or not chosen_by(folder / _JOB).exists():
            raise MachineError(_why(done.stdout + done.stderr))
        table = answer_of([str(ncu), "--import", str(kept), *_TABLE], timeout=seconds)
        chosen = decode(chosen_by(folder / _JOB).read_bytes(), list[str])
        seen = dealt_out(jobs, read(table.stdout, table.stderr), chosen)
        report.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(kept, report)
    return seen


def dealt_out(
    jobs: Sequence[Watching], launches: Sequence[Profile], chosen: Sequence[str]
) -> tuple[ProfiledJob, ...]:
    """Launches, in their order → by job: first the plan's, then those of the baseline.

    chosen: the baselines' names. Raises MachineError if the launches are not those of the jobs.
    """
    left, names = list(launches), list(chosen)
    found: list[ProfiledJob] = []
    plans = [[o.kernel for o in job.plan.operations if isinstance(o, Launch)] for job in jobs]
    for i, (job, kernels) in enumerate(zip(jobs, plans, strict=True)):
        own = tuple(left[: len(kernels)])
        del left[: len(kernels)]
        if [each.kernel for each in own] != kernels:
            raise MachineError(
                phrase("ncu did not profile the launches of {size}", size=str(job.plan.size))
            )
        ahead = {kernel for later in plans[i + 1 :] for kernel in later}
        baseline: list[Profile] = []
        while job.baseline and left and (i + 1 == len(jobs) or left[0].kernel not in ahead):
            baseline.append(left.pop(0))
        if job.baseline and (not baseline or not names):
            raise MachineError(
                phrase("ncu did not profile the baseline at {size}", size=str(job.plan.size))
            )
        variant = names.pop(0) if job.baseline else ""
        found.append(ProfiledJob(own=own, baseline=tuple(baseline), variant=variant))
    if left:
        raise MachineError(
            phrase("ncu profiled {launches} launches that nobody made", launches=len(left))
        )
    return tuple(found)


def _run(
    ncu: Path, options: Sequence[str], jobs: Sequence[Watching], folder: Path, seconds: float
) -> subprocess.CompletedProcess[str]:
    job = folder / _JOB
    job.write_bytes(msgspec.json.encode(list(jobs)))
    command = [
        str(ncu),
        *options,
        *("--kernel-name-base", "mangled", "--profile-from-start", "no"),
        *("--clock-control", "none", "--target-processes", "all"),
        *(sys.executable, "-m", "grader.run.gpu.plan_replay", str(job)),
    ]
    environment = for_a_gpu(os.environ) | {"TMPDIR": str(folder)}
    try:
        return answer_of(command, timeout=seconds, cwd=CODE, env=environment)
    except subprocess.TimeoutExpired:
        raise MachineError(phrase("ncu took more than {seconds:.0f} s", seconds=seconds)) from None


def _with_sources(ncu: Path, sources: Path) -> list[str]:
    """Options of newer versions that put the source's text into the report."""
    known = answer_of([str(ncu), "--help"]).stdout
    if "--import-source" not in known or "--source-folders" not in known:
        return []
    return ["--import-source", "yes", "--source-folders", str(sources.resolve())]


def read(output: str, errors: str = "") -> tuple[Profile, ...]:
    """ncu's CSV (``--csv --page raw``) → profiles. Raises MachineError when there is none."""
    lines = output.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise MachineError(_why(output + errors))
    rows = csv.DictReader(lines[start:])
    found = []
    for row in rows:
        # The metrics that this GPU and this version of ncu know.
        texts = {name: row.get(name, "").replace(",", "") for name in METRICS}
        numbers = {name: float(text) for name, text in texts.items() if _NUMBER.fullmatch(text)}
        if row.get("ID"):  # the row below the header holds units
            found.append(Profile(kernel=row["Kernel Name"], metrics=numbers))
    return tuple(found)


def _why(output: str) -> Message:
    if _FORBIDDEN in output:
        return phrase(
            "this user may not read the GPU's counters (ERR_NVGPUCTRPERM): ask the administrator "
            "for NVreg_RestrictProfilingToAdminUsers=0, or profile as root"
        )
    complaint = [line for line in output.splitlines() if line.startswith("==ERROR==")]
    last = complaint[-1:] or output.strip().splitlines()[-1:] or ["no output"]
    return phrase("ncu profiled nothing: {why}", why=last[0])


def _available(ncu: Path) -> list[str]:
    """The ``METRICS`` that this ncu knows for this GPU; an unknown name would end the run."""
    done = answer_of([str(ncu), "--query-metrics"], timeout=60)
    known = {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
    kept = [name for name in METRICS if name.split(".")[0] in known]
    return kept or list(METRICS)
