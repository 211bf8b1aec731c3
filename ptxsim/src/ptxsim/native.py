"""The engine's C++, and how C++ beside this package is compiled; the levels of the CPU that wheels
are built for."""

import ctypes
import fcntl
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from ptxsim.outcome import EngineError

ENGINE = Path(__file__).parent / "engine"  # its C++
FLAGS = (
    "-std=c++20",
    "-O2",
    "-ftree-vectorize",
    "-march=native",
    "-ffp-contract=off",  # only fma may fuse
    "-fno-math-errno",
    "-fvisibility=hidden",
    "-pthread",
)

_LIBC = ctypes.CDLL(None)
_SET_DEATH_SIGNAL = 1  # of prctl
_V2 = {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}
_NEEDED: dict[str, set[str]] = {"x86-64-v3": _V3, "x86-64-v2": _V2}
if platform.machine() == "aarch64":
    _NEEDED = {"armv8-a": set()}
LEVELS = tuple(_NEEDED)  # of the architecture, highest first, as -march names them


@cache
def cpu_levels() -> tuple[str, ...]:
    """Levels that this CPU has, the highest first."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    flags = next((set(line.split()) for line in lines if line.startswith("flags")), set())
    return tuple(level for level, needed in _NEEDED.items() if needed <= flags)


def engine_sources() -> tuple[Path, ...]:
    """The translation units, each of which includes the sources of some folders."""
    return tuple(sorted(ENGINE.glob("*.cpp")))


@cache
def engine_digest() -> str:
    """Return the digest of the interpreter's sources: results of the same one are comparable."""
    digest = hashlib.sha256()
    for source in sorted(ENGINE.rglob("*.?pp")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


def shipped_engine() -> Path | None:
    """The interpreter that the wheel brought, for the highest level that this CPU has, or None."""
    folder = Path(__file__).parent / "built"
    files = (folder / f"engine-{level}.so" for level in cpu_levels())
    return next(filter(Path.exists, files), None)


def answer_of(command: Sequence[str | Path], **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a trusted program, of ours or of the system, to its end."""
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        **more,
    )


def user_cache(name: str) -> Path:
    """The folder of this name among the user's caches. Raises RuntimeError without a home."""
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / name


def build_native(
    compiler: str, sources: Sequence[Path], flags: Sequence[str], target: Path, *, shared: bool
) -> None:
    """Compile ``sources`` beside each other and link them to ``target``, named NAME-DIGEST, unless
    another process does so first. It appears by rename; the compiler's warnings lie beside it.
    Raises EngineError, or OSError where the folder cannot be written.

    Each name has a lock; its holder removes what a killed build left behind.
    """
    name = target.name.rpartition("-")[0]
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return
        for stale in target.parent.glob(f"{name}-*.scratch"):
            shutil.rmtree(stale, ignore_errors=True)
        with tempfile.TemporaryDirectory(".scratch", f"{name}-", target.parent) as scratch:
            made = Path(scratch) / target.name
            warnings = _compile(compiler, sources, flags, made, shared=shared)
            target.with_name(f"{target.name}.warnings").write_text(warnings)
            made.replace(target)


def _compile(
    compiler: str, sources: Sequence[Path], flags: Sequence[str], output: Path, *, shared: bool
) -> str:
    scratch = output.parent
    objects = [scratch / f"{index}.o" for index in range(len(sources))]
    command = [compiler, *flags]
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        jobs = [
            pool.submit(_run, [*command, "-c", str(source), "-o", str(object_file)], scratch)
            for source, object_file in zip(sources, objects, strict=True)
        ]
        said = [job.result() for job in jobs]
    mode = ["-shared"] if shared else []
    said.append(_run([compiler, *mode, *map(str, objects), *flags, "-o", str(output)], scratch))
    return "".join(said)


def _run(command: list[str], scratch: Path) -> str:
    """Run a compiler that keeps its own files in ``scratch`` and ends with this process."""
    try:
        done = answer_of(
            command,
            env={**os.environ, "TMPDIR": str(scratch)},
            preexec_fn=lambda: _LIBC.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL),
        )
    except OSError as error:
        raise EngineError(f"no C++ compiler: {command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        lines = done.stderr.splitlines()
        raise EngineError(next((line for line in lines if "error:" in line), done.stderr).strip())
    return done.stderr
