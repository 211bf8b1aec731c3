"""Finds the host's C++ compiler."""

from __future__ import annotations

import functools
import os
import shutil
from pathlib import Path

from grader.errors import ToolchainError
from grader.model import phrase


@functools.cache
def find_host_compiler() -> Path:
    """The C++ compiler that nvcc uses: NVCC_CCBIN, else g++ on PATH. Raises ToolchainError."""
    named = os.environ.get("NVCC_CCBIN")
    if named:
        path = Path(named)
        found = shutil.which(str(path / "g++" if path.is_dir() else path))
        if found is None:
            raise ToolchainError(
                phrase("NVCC_CCBIN={named} is no C++ compiler: unset it or correct it", named=named)
            )
        return Path(found).absolute()
    found = shutil.which("g++")
    if found is None:
        raise ToolchainError(
            phrase("no C++ compiler: install g++ (Debian, Ubuntu: apt-get install g++)")
        )
    return Path(found).absolute()
