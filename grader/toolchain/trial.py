"""Tries an nvcc: what it compiles for, and whether it works with the host's C++ compiler.

Every nvcc refuses a g++ newer than it knows, or stumbles over its headers. Only compiling shows it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import textwrap
from pathlib import Path

from grader.toolchain.native import cache_folder

_PROGRAM = """\
#include <cstddef>
#include <vector>
#include <cuda_runtime.h>
__global__ void kernel(float* x) { *x = 1; }
void launch(const std::vector<float*>& x) { kernel<<<1, 1>>>(x[0]); }
"""
_TIME_S = 120.0  # wall; it takes a second or two
_WORDS = 110  # characters of its complaint
_WORKS = "works"


def architectures(nvcc: Path) -> tuple[str, ...]:
    """``sm_80`` and its like, oldest first."""
    listed = _run([str(nvcc), "--list-gpu-arch"])
    if listed is None:
        return ()
    names = {line.strip() for line in listed.stdout.split() if line.startswith("compute_")}
    numbers = sorted(int(name.removeprefix("compute_")) for name in names)
    return tuple(f"sm_{number}" for number in numbers)


def to_ptx(arch: str) -> str:
    """The option that makes PTX, and no machine code, of ``arch``.

    For compute_90a ``-arch`` does the same for compute_90 as well.
    """
    virtual = arch.replace("sm_", "compute_")
    return f"-gencode=arch={virtual},code={virtual}"


def refusal(nvcc: Path, host_compiler: Path, arch: str) -> str:
    """Why the two do not compile a small program together; "" if they do.

    The answer is kept in the cache folder until one of them changes.
    """
    state = [
        (path.resolve(), path.stat().st_size, path.stat().st_mtime_ns)
        for path in (nvcc, host_compiler)
    ]
    key = hashlib.sha256(f"{state} {_PROGRAM}".encode()).hexdigest()[:16]
    known = cache_folder() / "toolkits" / key
    if known.exists():
        return known.read_text().removeprefix(_WORKS)
    why = _compile(nvcc, host_compiler, arch)
    known.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=known.parent, delete=False) as file:
        file.write(why or _WORKS)
    Path(file.name).replace(known)
    return why


def _compile(nvcc: Path, host_compiler: Path, arch: str) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "trial.cu"
        source.write_text(_PROGRAM)
        output = f"-o={source.with_suffix('.o')}"
        command = [str(nvcc), f"-ccbin={host_compiler}", to_ptx(arch), "-std=c++17", "-c", output]
        done = _run([*command, str(source)])
    if done is None:
        return "it does not end"
    if done.returncode == 0:
        return ""
    said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    error = next((line for line in said if "error" in line), said[0] if said else "")
    _, _, words = error.rpartition("error")
    words = words.strip(" :-#") or f"status {done.returncode}"
    return textwrap.shorten(words, _WORDS, placeholder=" …")


def _run(command: list[str]) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            command,
            env={name: value for name, value in os.environ.items() if not name.startswith("NVCC_")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_TIME_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
