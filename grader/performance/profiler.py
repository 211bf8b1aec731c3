"""Finds Nsight Compute, runs plans once under it, and reads its table."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from grader.backends.gpu.gpu_messages import Watching
from grader.backends.process import for_a_gpu
from grader.errors import MachineError
from grader.model import Record

METRICS = (
    "gpu__time_duration.sum",
    "smsp__inst_executed.sum",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "smsp__sass_inst_executed_op_shared_ld.sum",
    "smsp__sass_inst_executed_op_shared_st.sum",
    "smsp__sass_inst_executed_op_global_ld.sum",
    "smsp__sass_inst_executed_op_global_st.sum",
    "smsp__sass_inst_executed_op_ldgsts.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
    "smsp__sass_inst_executed_op_ldsm.sum",
    "smsp__sass_inst_executed_op_stsm.sum",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum",
    "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_stsm.sum",
    "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm.sum",
    # Tensor cores: instructions, and the operations of HMMA and of HGMMA by types.
    "sm__inst_executed_pipe_tensor_op_hmma.sum",
    "sm__inst_executed_pipe_tensor_op_gmma.sum",
    "smsp__sass_inst_executed_op_shared_gmma.sum",
    "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16_sparsity_off.sum",
    "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum",
    "sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum",
    "sm__ops_path_tensor_op_hmma_src_tf32_dst_fp32_sparsity_off.sum",
    "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum",
    "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum",
    "sm__ops_path_tensor_op_hgmma_src_tf32_dst_fp32_sparsity_off.sum",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    # TMA
    "smsp__sass_inst_executed_op_tma_ld.sum",
    "smsp__sass_inst_executed_op_tma_st.sum",
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
_PLACES = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute")
_REMEDY = "install Nsight Compute (package nsight-compute of the CUDA toolkit)"
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_FORBIDDEN = "ERR_NVGPUCTRPERM"


class Profile(Record):
    """What the profiler measured of one launch."""

    kernel: str  # mangled
    metrics: dict[str, float]  # by the names of ``METRICS`` that this GPU knows


def find_ncu() -> Path:
    """Raises MachineError naming the package when there is no Nsight Compute."""
    found = shutil.which("ncu")
    if found:
        return Path(found)
    for place in _PLACES:
        candidates = sorted(p for p in Path(place).glob("**/ncu") if os.access(p, os.X_OK))
        if candidates:
            return candidates[-1]
    raise MachineError(f"no ncu on PATH: {_REMEDY}")


def profile(
    jobs: Sequence[Watching], kernels: Iterable[str], *, seconds: float
) -> tuple[Profile, ...]:
    """Run every plan once under Nsight Compute; one entry per launch of one of ``kernels``.

    kernels: mangled names. Raises MachineError when there is no profiler, when this user may not
    read the counters, or when it fails.
    """
    ncu = find_ncu()
    with tempfile.TemporaryDirectory(prefix="sgemm-profile-") as folder:
        job = Path(folder) / "job.json"
        job.write_bytes(msgspec.json.encode(list(jobs)))
        command = [
            str(ncu),
            *("--csv", "--page", "raw", "--print-units", "base"),
            *("--print-kernel-base", "mangled", "--kernel-name-base", "mangled"),
            *("--kernel-name", f"regex:^({'|'.join(sorted(set(kernels)))})$"),
            *("--profile-from-start", "no"),
            *("--clock-control", "none", "--target-processes", "all"),
            *("--metrics", ",".join(_available(ncu))),
            *(sys.executable, "-m", "grader.backends.gpu.once", str(job)),
        ]
        environment = for_a_gpu(os.environ) | {"TMPDIR": folder}
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=seconds,
                env=environment,
            )
        except subprocess.TimeoutExpired:
            raise MachineError(f"ncu took more than {seconds:.0f} s") from None
    return read(done.stdout, done.stderr)


def read(output: str, errors: str = "") -> tuple[Profile, ...]:
    """ncu's CSV (``--csv --page raw``) → profiles. Raises MachineError when there is none."""
    lines = output.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise MachineError(_why(output + errors))
    rows = csv.DictReader(lines[start:])
    return tuple(
        Profile(kernel=row["Kernel Name"], metrics=_numbers(row))
        for row in rows
        if row.get("ID")  # the row below the header holds units
    )


def _numbers(row: Mapping[str, str]) -> dict[str, float]:
    """The metrics that this GPU and this version of ncu know."""
    texts = {name: row.get(name, "").replace(",", "") for name in METRICS}
    return {name: float(text) for name, text in texts.items() if _NUMBER.fullmatch(text)}


def _why(output: str) -> str:
    if _FORBIDDEN in output:
        return (
            "this user may not read the GPU's counters (ERR_NVGPUCTRPERM): ask the administrator "
            "for NVreg_RestrictProfilingToAdminUsers=0, or profile as root"
        )
    complaint = [line for line in output.splitlines() if line.startswith("==ERROR==")]
    last = complaint[-1:] or output.strip().splitlines()[-1:] or ["no output"]
    return f"ncu profiled nothing: {last[0]}"


def _available(ncu: Path) -> list[str]:
    """The ``METRICS`` that this ncu knows for this GPU; an unknown name would end the run."""
    done = subprocess.run(
        [str(ncu), "--query-metrics"],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=60,
    )
    known = {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
    kept = [name for name in METRICS if name.split(".")[0] in known]
    return kept or list(METRICS)
