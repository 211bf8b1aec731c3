"""Ten thousand stored results to a leaderboard: ``python -m benchmarks.leaderboard``.

Each way twice: from nothing, and after one result changed. The limits are for wall time on a
machine that does nothing else; the time of the processor beside it says whether that was so.

The documents are copies of a real one, the sample graded in the simulator, under other names.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.machine import machine, table
from grader.results import store

ROOT = Path(__file__).parents[1]
STUDENTS, ATTEMPTS = 2500, 4
FROM_NOTHING_S, AFTER_A_CHANGE_S, MOST_MIB = 3, 1, 300
_YOUNG_S = 2.5  # until the index remembers a document
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


class Taken(NamedTuple):
    """What one command took."""

    seconds: float
    cpu: float  # seconds
    mib: float


def measure(place: Path, options: tuple[str, ...]) -> Taken:
    """Raises CalledProcessError when the command failed."""
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
    seconds = time.monotonic() - started
    return Taken(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def from_nothing(place: Path, options: tuple[str, ...]) -> Taken:
    for index in (place / "results").glob(".index-*"):
        index.unlink()
    return measure(place, options)


def after_a_change(place: Path, options: tuple[str, ...]) -> Taken:
    measure(place, options)
    path = next(store.stored(place / "results"))
    store.write(path, path.read_bytes())
    return measure(place, options)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        size = make_results(place)
        time.sleep(_YOUNG_S)
        measured = [
            (f"{name}, {state}", most, take(place, options))
            for state, most, take in (
                ("from nothing", FROM_NOTHING_S, from_nothing),
                ("after one changed", AFTER_A_CHANGE_S, after_a_change),
            )
            for name, options in _WAYS.items()
        ]
    rows = [
        [name, *(f"{value:.2f}" for value in taken[:2]), str(most), f"{taken.mib:.0f}"]
        for name, most, taken in measured
    ]
    print(machine(), end="\n\n")
    count = f"{STUDENTS * ATTEMPTS:,} documents of {size / 1000:.0f} kB"
    print(table([count, "seconds", "CPU seconds", "at most", f"MiB (of {MOST_MIB})"], rows))
    passed = [
        name for name, most, taken in measured if taken.seconds > most or taken.mib > MOST_MIB
    ]
    if passed:
        raise SystemExit(f"a limit is passed: {'; '.join(passed)}")


if __name__ == "__main__":
    main()
