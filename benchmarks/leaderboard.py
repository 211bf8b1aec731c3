"""Ten thousand stored results to a leaderboard: ``python -m benchmarks.leaderboard``.

The documents are copies of a real one, the sample graded in the simulator, under other names.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.machine import machine, table
from grader.results import store

ROOT = Path(__file__).parents[1]
STUDENTS, ATTEMPTS = 2500, 4
MOST_SECONDS, MOST_MIB = 3, 300
_GRADE = (sys.executable, "-m", "grader.cli")
_WAYS = {
    "terminal": (),
    "HTML": ("--html", "board.html"),
    "HTML, pseudonyms": ("--html", "board.html", "--pseudonyms"),
    "CSV": ("--csv", "board.csv"),
}


def make_results(place: Path) -> int:
    """Fill ``place``/results; bytes of one document. Raises CalledProcessError."""
    alice = str(ROOT / "submissions" / "alice")
    words = [*_GRADE, alice, "--device", "cpu", "--no-report", "--out", str(place / "one")]
    subprocess.run(words, cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
    (path,) = store.stored(place / "one")
    document = path.read_text()
    for number in range(STUDENTS):
        student = f"student{number:04}"
        folder = place / "results" / path.parent.parent.name / student
        folder.mkdir(parents=True)
        text = document.replace('"student": "alice"', f'"student": "{student}"')
        for attempt in range(ATTEMPTS):
            (folder / f"{attempt:012x}-cpu.json").write_text(text)
    return len(document)


def measure(place: Path, options: tuple[str, ...]) -> tuple[float, float]:
    """Seconds and MiB of one command. Raises CalledProcessError when it failed."""
    command = [*_GRADE, "leaderboard", *options]
    started = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return time.monotonic() - started, usage.ru_maxrss / 1024


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        size = make_results(place)
        measured = {name: measure(place, options) for name, options in _WAYS.items()}
    rows = [
        [name, f"{seconds:.1f}", str(MOST_SECONDS), f"{mib:.0f}", str(MOST_MIB)]
        for name, (seconds, mib) in measured.items()
    ]
    print(machine(), end="\n\n")
    count = f"{STUDENTS * ATTEMPTS:,} documents of {size / 1000:.0f} kB"
    print(table([count, "seconds", "at most", "MiB", "at most"], rows))
    if any(seconds > MOST_SECONDS or mib > MOST_MIB for seconds, mib in measured.values()):
        raise SystemExit("a limit is passed")


if __name__ == "__main__":
    main()
