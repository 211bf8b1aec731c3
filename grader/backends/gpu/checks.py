"""CUDA sources of ours as machine code: compiled once for each architecture, kept in the cache."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from grader.errors import ToolchainError
from grader.model import phrase
from grader.toolchain.discovery import find_toolchain
from grader.toolchain.native import cache_folder, locked

_LIBRARY = ("-O3", "-shared", "-Xcompiler=-fPIC", "-cudart=static")


def checks_cubin(arch: str, source: Path) -> Path:
    """The cubin for ``arch`` ("sm_90"). Raises ToolchainError with the compiler's first error.

    A cubin does not depend on the driver, so only the source and the architecture name it.
    """
    return _kept(arch, source, ("-cubin",), ".cubin")


def host_library(arch: str, source: Path) -> Path:
    """A shared library of host functions that launch kernels for ``arch``. Raises ToolchainError.

    It has the CUDA runtime linked in. Runtimes in one process share the GPU's primary context, so
    it takes CuPy's pointers and streams.
    """
    return _kept(arch, source, _LIBRARY, f"-cuda-{find_toolchain(arch).cuda_version}.so")


def _kept(arch: str, source: Path, flags: Sequence[str], suffix: str) -> Path:
    """From the cache, or compiled. It appears by rename."""
    key = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    folder = cache_folder() / "native"
    target = folder / f"{source.stem}-{arch}-{key}{suffix}"
    if target.exists():
        return target
    folder.mkdir(exist_ok=True)
    with locked(folder / "checks.lock"), tempfile.TemporaryDirectory(dir=folder) as scratch:
        if not target.exists():
            output = Path(scratch) / target.name
            _compile(source, arch, flags, output)
            output.replace(target)
    return target


def _compile(source: Path, arch: str, flags: Sequence[str], output: Path) -> None:
    toolchain = find_toolchain(arch)
    done = subprocess.run(
        [
            toolchain.nvcc,
            f"-ccbin={toolchain.host_compiler}",
            f"-arch={arch}",
            "-std=c++17",
            *flags,
            source,
            "-o",
            output,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        error = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr)
        raise ToolchainError(
            phrase("nvcc cannot compile the grader's own checks: {why}", why=error.strip())
        )
