"""Stored results for boards, and the command that reads them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import msgspec

from grader.model import GpuInfo, Result
from grader.results import store
from tests.support.pages import H200, gpu_result
from tests.support.places import ROOT


def keep(
    out: Path,
    student: str,
    total: float | None,
    *,
    attempt: int = 0,
    gpu: GpuInfo = H200,
    **changes: object,
) -> Result:
    result = gpu_result(
        student, total, gpu=gpu, created=f"2026-01-{attempt + 1:02d}T12:00:00+00:00", **changes
    )
    sha = hashlib.sha256(f"{student} {attempt} {gpu.name}".encode()).hexdigest()
    result = msgspec.structs.replace(
        result, submission=msgspec.structs.replace(result.submission, sha256=sha)
    )
    store.save(out, result)
    return result


def grade(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "grader.cli", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
