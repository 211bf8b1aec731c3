"""Compiles C++ beside this package, and tells the levels of the CPU that wheels are built for."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from ptxsim.outcome import EngineError

_V2 = {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}


_NEEDED: dict[str, set[str]] = {"x86-64-v3": _V3, "x86-64-v2": _V2}
if platform.machine() == "aarch64":
    _NEEDED = {"armv8-a": set()}
LEVELS = tuple(_NEEDED)  # of the architecture, highest first, as -march names them


@cache
def cpu_levels() -> tuple[str, ...]:
    """Those that this CPU has."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    flags = next((set(line.split()) for line in lines if line.startswith("flags")), set())
    return tuple(level for level, needed in _NEEDED.items() if needed <= flags)


def build_native(
    compiler: str, sources: Sequence[Path], flags: Sequence[str], output: Path, *, shared: bool
) -> str:
    """Compile ``sources`` beside each other and link them to ``output``, in whose folder the object
    files stay. Returns the compiler's warnings. Raises EngineError."""
    objects = [output.parent / f"{index}.o" for index in range(len(sources))]
    command = [compiler, *flags]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        jobs = [
            pool.submit(_run, [*command, "-c", str(source), "-o", str(object_file)])
            for source, object_file in zip(sources, objects, strict=True)
        ]
        said = [job.result() for job in jobs]
    mode = ["-shared"] if shared else []
    said.append(_run([compiler, *mode, *map(str, objects), *flags, "-o", str(output)]))
    return "".join(said)


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise EngineError(f"no C++ compiler: {command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        lines = done.stderr.splitlines()
        raise EngineError(next((line for line in lines if "error:" in line), done.stderr).strip())
    return done.stderr
