"""Stored results for boards, and the command that reads them."""

from __future__ import annotations

import csv
import hashlib
import io
from pathlib import Path

import msgspec

from grader.base.result import GpuInfo, Result
from grader.results import store
from tests.support import commands
from tests.support.pages import H200, gpu_result


def keep(
    out: Path,
    student: str,
    total: float | None,
    *,
    attempt: int = 0,
    gpu: GpuInfo = H200,
    **changes: object,
) -> Result:
    created = f"2026-01-{attempt + 1:02d}T12:00:00+00:00"
    result = gpu_result(student, total, gpu=gpu, created=created, **changes)
    sha = hashlib.sha256(f"{student} {attempt} {gpu.name}".encode()).hexdigest()
    result = msgspec.structs.replace(
        result, submission=msgspec.structs.replace(result.submission, sha256=sha)
    )
    store.save(out, result)
    return result


def grade(*arguments: str | Path, cwd: Path) -> commands.Done:
    return commands.run(commands.grade(*arguments), cwd)


def rows_of(table: str) -> list[dict[str, str]]:
    """The rows of a CSV table, by column."""
    return list(csv.DictReader(io.StringIO(table, newline="")))
