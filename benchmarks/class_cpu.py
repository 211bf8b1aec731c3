"""A class of 200 without a GPU: ``python -m benchmarks.class_cpu``.

Graded once undisturbed, then again from nothing with the whole process group killed (-9) at five
random moments and the same command given again. Both must come to the same results.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.measure import GRADE, ROOT, Figure, run
from grader.results import store
from grader.results.result import Result

STUDENTS, KILLS, MOST_MINUTES = 200, 5, 6
_BROKEN = ("missing_second_sync", "edge_not_written", "compile_error")  # one in ten each


def make_class(folder: Path) -> None:
    """The sample under 200 names, no two files alike; some with a mistake in them."""
    sample = (ROOT / "submissions" / "alice" / "sgemm.cu").read_text()
    broken = [
        (ROOT / "tests" / "fixtures" / "broken" / name / "sgemm.cu").read_text() for name in _BROKEN
    ]
    for index in range(STUDENTS):
        kind = index % 10
        text = broken[kind] if kind < len(broken) else sample
        student = folder / f"student{index:03}"
        student.mkdir(parents=True)
        (student / "sgemm.cu").write_text(f"{text}\n// handed in by student {index}\n")


def start(place: Path, out: str) -> subprocess.Popen[bytes]:
    """``grade class`` in a session of its own, with a build cache for this ``out`` only."""
    words = ("class", "class", "--device", "cpu", "--out", out)
    return subprocess.Popen(
        [*GRADE, *words],
        cwd=place,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "SGEMM_GRADER_CACHE": str(place / f"{out}-cache"),
        },
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[bytes]) -> None:
    if process.wait() != 0:
        raise SystemExit(f"grade class ended with {process.returncode}")


def results(place: Path, out: str) -> Mapping[str, object]:
    """What must be the same however often the run was killed, by student."""
    return {
        result.submission.student: _essence(result)
        for result in map(store.load, store.stored(place / out))
    }


def _essence(result: Result) -> object:
    cases = [(case.id, case.verdict) for case in result.cases]
    kinds = sorted({finding.kind.value for finding in result.findings})
    return result.verdict, result.submission.sha256, cases, kinds


def measured() -> list[Figure]:
    seed = random.SystemRandom().randrange(10**6)
    moments = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        make_class(place / "class")
        started = time.monotonic()
        finish(start(place, "whole"))
        seconds = time.monotonic() - started
        started = time.monotonic()
        for _ in range(KILLS):
            process = start(place, "killed")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(moments.uniform(2, seconds / KILLS))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        finish(start(place, "killed"))
        disturbed = time.monotonic() - started
        whole, killed = results(place, "whole"), results(place, "killed")
    if whole != killed or len(whole) != STUDENTS:
        raise SystemExit(f"the results differ (seed {seed})")
    minutes = {"undisturbed": seconds / 60, f"killed {KILLS} times": disturbed / 60}
    return [
        Figure(what=what, values={"minutes": took}, most=most)
        for (what, took), most in zip(minutes.items(), ({"minutes": MOST_MINUTES}, {}), strict=True)
    ]


if __name__ == "__main__":
    run(f"class of {STUDENTS}", measured)
