"""CUDA sources of ours, compiled once for each architecture and kept in the cache."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from grader.errors import ToolchainError
from grader.toolchain.discovery import find_toolchain
from grader.toolchain.native import cache_folder, locked


def own_cuda(source: Path, arch: str, flags: Sequence[str], suffix: str) -> Path:
    """What nvcc makes of ``source`` for ``arch`` ("sm_90"). Raises ToolchainError with the
    compiler's first error.

    The result does not depend on the driver, so source, architecture, compiler and flags name it.
    It appears by rename.
    """
    toolchain = find_toolchain()
    named = "\0".join([toolchain.cuda_version, *flags]).encode()
    key = hashlib.sha256(named + b"\0" + source.read_bytes()).hexdigest()[:16]
    folder = cache_folder() / "native"
    target = folder / f"{source.stem}-{arch}-{key}{suffix}"
    if target.exists():
        return target
    folder.mkdir(exist_ok=True)
    with locked(folder / f"{source.stem}.lock"), tempfile.TemporaryDirectory(dir=folder) as scratch:
        if not target.exists():
            output = Path(scratch) / target.name
            options = (f"-ccbin={toolchain.host_compiler}", f"-arch={arch}", "-std=c++17", *flags)
            _run([str(toolchain.nvcc), *options, str(source), "-o", str(output)])
            output.replace(target)
    return target


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        error = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr)
        raise ToolchainError(f"nvcc cannot compile the grader's own code: {error.strip()}")
