"""What Slurm adds to a class of 500: `python -m benchmarks.slurm` (needs Debian's Slurm, as root).

A cluster of five nodes on this machine grades 500 copies of starter/ with slurm/class.sh; the
simulator stands in for GPUs. Two tasks run at a time, as `grade class --jobs 2` does on the same
copies. The difference, by submission, is what chunks, queue and job start-up cost.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.measure import GRADE, ROOT, Figure, run, spent
from grader.base.native import cache_folder
from tests.support.cluster import Cluster

COUNT, CHUNK, AT_ONCE = 500, 25, 2
LAB = """\
id: quick
correctness: [[1, 1, 1]]
performance: [{mnk: [64, 64, 64]}]
cpu: [[2, 3, 5], [33, 17, 20]]
"""


def measured() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp") as scratch:
        place = Path(scratch)
        (place / "lab.yaml").write_text(LAB)
        for i in range(COUNT):
            shutil.copytree(ROOT / "starter", place / "class" / f"s{i:03}")
        (place / "grade").write_text(
            f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec {" ".join(GRADE)} "$@"\n'
        )
        (place / "grade").chmod(0o755)
        options = ["--lab", str(place / "lab.yaml"), "--device", "cpu"]
        words: list[str | Path] = [*GRADE, "class", place / "class", *options]
        spent(*words, "--only", "s000", "--out", place / "warm")
        plain = spent(*words, "--jobs", "2", "--out", place / "plain").seconds
        with Cluster(place / "c") as cluster:
            started = time.monotonic()
            subprocess.run(
                [ROOT / "slurm" / "class.sh", place / "class"],
                cwd=place,
                env={
                    **os.environ, "PYTHONPATH": str(ROOT), **cluster.environment,
                    "GRADE_BIN": str(place / "grade"), "GRADE_OUT": str(place / "out"),
                    "GRADE_LAB": str(place / "lab.yaml"), "GRADE_DEVICE": "cpu",
                    "GRADE_CACHE": str(cache_folder()), "GRADE_CHUNK": str(CHUNK),
                    "GRADE_PARALLEL": str(AT_ONCE), "SBATCH_CPUS_PER_TASK": "1",
                },
                check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
            while cluster.run("squeue", "-h"):
                time.sleep(0.2)
            queued = time.monotonic() - started
        results = len(list((place / "out").rglob("*-cpu.json")))
    print(f"{COUNT} submissions, {CHUNK} per task, {AT_ONCE} tasks at a time; {results} results\n")
    seconds = {
        "grade class --jobs 2": plain,
        "slurm/class.sh, leaderboard too": queued,
        "Slurm's share, per submission": (queued - plain) / COUNT,
    }
    return [Figure(what=what, values={"seconds": took}) for what, took in seconds.items()]


if __name__ == "__main__":
    run(f"class of {COUNT}", measured)
