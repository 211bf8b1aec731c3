"""A class on GPUs: `python -m benchmarks.class_h200 [--students 20] [--gpus all]` on a GPU machine.

How much of `grade class`'s wall time the GPU worker spends measuring: timing submission and cuBLAS
on fresh inputs with every output compared. The goal is 80 %; the rest is starting, compiling the
first submission, and verifying the other sizes, beside which one CUDA context ends and the next is
made. It also looks whether anything else happens on the GPU while a submission is timed. With
--gpus the class is graded twice, on the first GPU and on those; on four GPUs it may take a third of
the time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks import timeline
from benchmarks.measure import ALICE, GRADE, ROOT, gpus_here, machine, on_the_gpu, spent, table
from grader.results import store
from ptxsim.plan import Record

GOAL = 0.80
GOAL_OF_SEVERAL = 1 / 3  # of the time that one GPU takes, on four


def make_class(folder: Path, students: int) -> None:
    """Sources, all different: the faster rungs of the ladder, the rest like alice's."""
    rungs = [
        rung for rung in sorted(ROOT.glob("reference/sgemm/[0-9]*/sgemm.cu")) if _number(rung) >= 10
    ]
    for index in range(students):
        own = rungs[index].parent if index < min(len(rungs), students // 2) else None
        student = folder / f"student{index:02}"
        shutil.copytree(own or ALICE, student)
        with (student / "sgemm.cu").open("a") as source:
            source.write(f"\n// handed in by student {index}\n")


def _number(source: Path) -> int:
    return int(source.parent.name.split("_")[0])


class Run(Record):
    """One run of the command; seconds of the monotonic clock."""

    began: float
    ended: float
    turns: tuple[timeline.Turn, ...]

    @property
    def wall(self) -> float:
        return self.ended - self.began


def grade_class(folder: Path, out: Path, *more: str) -> Run:
    """Run the whole command, which compiles everything anew. Raises CalledProcessError when it
    failed."""
    for student in folder.iterdir():
        with (student / "sgemm.cu").open("a") as source:
            source.write(f"// for {out.name}\n")
    words = ("class", folder, "--device", "gpu", "--out", out, "--no-report", *more)
    with tempfile.TemporaryDirectory() as name:
        moments = Path(name)
        environment = timeline.environment(moments)
        began = time.monotonic()
        subprocess.run([*GRADE, *map(str, words)], cwd=ROOT, env=environment, check=True)
        ended = time.monotonic()
        turns = timeline.turns(timeline.happened(moments))
    return Run(began=began, ended=ended, turns=tuple(turns))


def between(run: Run) -> str:
    """When each submission's worker got where, and what lay between its measurement and that of
    the one before, on one GPU."""
    rows = []
    before: timeline.Turn | None = None
    for turn in run.turns:
        since = before.cases[1] if before else run.began
        first, last = turn.cases
        own = (turn.process, turn.loaded, turn.asked, *turn.context)
        moments = (*own, first, *turn.timing, last, turn.gone)
        rows.append(
            [
                turn.student,
                *(f"{moment - run.began:.2f}" for moment in moments),
                f"{turn.timed:.2f}",
                f"{last - first - turn.timed:.2f}",
                f"{first - since:.2f}",
            ]
        )
        before = turn
    gaps = [float(row[-1]) for row in rows[1:]]
    head = ["student", "worker", "loaded", "asked", "context", "ready", "first", "timing", "to"]
    told = table([*head, "last", "gone", "timed", "other", "idle before"], rows)
    end = run.ended - run.turns[-1].cases[1]
    return f"{told}\n\nidle between two: median {statistics.median(gaps):.2f} s; end: {end:.2f} s"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--students", type=int, default=20)
    parser.add_argument("--gpus", help="grade the class again on these, as grade class --gpus does")
    chosen = parser.parse_args()
    names = gpus_here()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # with it every process compiles its modules
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        # The grader's own programs are compiled once on a machine; that is not the class's time.
        spent(*GRADE, ALICE, "--out", place / "warm", "--no-report")
        make_class(place / "class", chosen.students)
        run = grade_class(place / "class", place / "out")
        results = [store.load(path) for path in store.stored(place / "out")]
        several = None
        if chosen.gpus:
            several = grade_class(place / "class", place / "several", "--gpus", chosen.gpus).wall
    wall = run.wall
    seconds = [on_the_gpu(result) for result in results]
    timed, verified = sum(s for s, _ in seconds), sum(s for _, s in seconds)
    verdicts = Counter(result.verdict.value for result in results)
    print(f"\n{names[0]}; {machine()}\n")
    rows = [
        ["wall time of grade class", f"{wall:.1f} s", "100 %", ""],
        [
            "timing on the GPU",
            f"{timed:.1f} s",
            f"{100 * timed / wall:.0f} %",
            f"{100 * GOAL:.0f} %",
        ],
        ["verifying on the GPU", f"{verified:.1f} s", f"{100 * verified / wall:.0f} %", ""],
    ]
    print(table([f"class of {len(results)}", "time", "share", "at least"], rows))
    print(f"\n{between(run)}")
    print("\nverdicts:", ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    disturbing = timeline.beside_timing(run.turns)
    print("beside a timing on the same GPU:", "; ".join(disturbing) or "nothing")
    missed = bool(disturbing) or len(results) < chosen.students or timed < GOAL * wall
    if several is not None:
        print(f"on --gpus {chosen.gpus}: {several:.1f} s, {several / wall:.2f} of one GPU's time")
        missed = missed or (len(names) >= 4 and several > GOAL_OF_SEVERAL * wall)
    if missed:
        raise SystemExit("the goal is missed")


if __name__ == "__main__":
    main()
