"""Wall time and memory of the whole command on the sample: ``python -m benchmarks.grade``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.machine import machine, table

ROOT = Path(__file__).parents[1]
INTERVAL_SECONDS = 0.02


def resident_bytes(process: int) -> int:
    """Memory of a process and all below it; what ends meanwhile counts as nothing."""
    base = Path("/proc") / str(process)
    try:
        pages = int((base / "statm").read_text().split()[1])
        lists = [path.read_text() for path in base.glob("task/*/children")]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    children = " ".join(lists).split()
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(resident_bytes(int(c)) for c in children)


def measure(folder: Path, out: Path, cache: Path) -> tuple[float, float]:
    """Seconds and the peak of GiB in use together. Raises CalledProcessError unless accepted."""
    command = [
        sys.executable,
        "-m",
        "grader.cli",
        str(folder),
        "--device",
        "cpu",
        "--out",
        str(out),
    ]
    started = time.perf_counter()
    peak = 0
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "SGEMM_GRADER_CACHE": str(cache)},
        stderr=subprocess.DEVNULL,
    ) as process:
        while process.poll() is None:
            peak = max(peak, resident_bytes(process.pid))
            time.sleep(INTERVAL_SECONDS)
    taken = time.perf_counter() - started
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return taken, peak / 2**30


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        folder = Path(shutil.copytree(ROOT / "submissions" / "alice", place / "alice"))
        out, cache = place / "results", place / "cache"
        very_first = measure(folder, out, cache)
        with (folder / "sgemm.cu").open("a") as file:
            file.write("// edited\n")
        runs = [
            ("first on a machine (compiles the grader's own C++)", very_first, "", ""),
            ("first of a file", measure(folder, out, cache), "3", "1.5"),
            ("the same file again", measure(folder, out, cache), "1.2", "1.5"),
        ]
    rows = [
        [what, f"{seconds:.1f}", limit, f"{gib:.2f}", most]
        for what, (seconds, gib), limit, most in runs
    ]
    print(machine(), end="\n\n")
    print(table(["grade submissions/alice", "seconds", "at most", "GiB", "at most"], rows))


if __name__ == "__main__":
    main()
