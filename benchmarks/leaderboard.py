"""Ten thousand stored results to a leaderboard: ``python -m benchmarks.leaderboard``.

The limits are for wall time on a machine that does nothing else; the time of the processor beside
it says whether that was so.

The documents are copies of a real one, the sample graded in the simulator, under other names.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import ALICE, GRADE, Figure, run, spent
from grader.results import store

STUDENTS, ATTEMPTS = 2500, 4
_WAYS = {
    "terminal": (),
    "HTML": ("--html", "board.html"),
    "HTML, pseudonyms": ("--html", "board.html", "--pseudonyms"),
    "CSV": ("--csv", "board.csv"),
}


def make_results(place: Path) -> int:
    """Fill ``place``/results; bytes of one document. Raises CalledProcessError."""
    spent(*GRADE, ALICE, "--device", "cpu", "--no-report", "--out", place / "one")
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


def measured() -> Iterator[Figure]:
    most = {"seconds": 3, "MiB": 300}
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        size = make_results(place)
        print(f"{STUDENTS * ATTEMPTS:,} documents of {size / 1000:.0f} kB\n")
        for name, options in _WAYS.items():
            took = spent(*GRADE, "leaderboard", *options, cwd=place)
            values = {"seconds": took.seconds, "CPU seconds": took.cpu_s, "MiB": took.mib}
            yield Figure(what=name, values=values, most=most)


if __name__ == "__main__":
    run("board", lambda: tuple(measured()))
