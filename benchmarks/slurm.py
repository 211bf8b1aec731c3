"""What Slurm adds to a class of 500: `python -m benchmarks.slurm` (needs Debian's Slurm, as root).

A cluster of five nodes on this machine grades 500 copies of starter/ with slurm/class.sh; the
simulator stands in for GPUs. Two tasks run at a time, as `grade class --jobs 2` does on the same
copies. The difference, by submission, is what chunks, queue and job start-up cost.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.machine import machine
from grader.toolchain.native import cache_folder
from tests.support.cluster import Cluster

ROOT = Path(__file__).parents[1]
COUNT, CHUNK, AT_ONCE = 500, 25, 2
LAB = """\
id: quick
correctness: [[1, 1, 1]]
performance: [{mnk: [64, 64, 64]}]
cpu: [[2, 3, 5], [33, 17, 20]]
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp") as scratch:
        place = Path(scratch)
        (place / "lab.yaml").write_text(LAB)
        for i in range(COUNT):
            shutil.copytree(ROOT / "starter", place / "class" / f"s{i:03}")
        own = [sys.executable, "-m", "grader.cli"]
        (place / "grade").write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec {" ".join(own)} "$@"\n')
        (place / "grade").chmod(0o755)
        options = ["--lab", str(place / "lab.yaml"), "--device", "cpu"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run(
            [*own, "class", place / "class", *options, "--only", "s000", "--out", place / "warm"],
            env=environment, check=True, capture_output=True,
        )  # fmt: skip
        started = time.monotonic()
        subprocess.run(
            [*own, "class", place / "class", *options, "--jobs", "2", "--out", place / "plain"],
            env=environment, check=True, capture_output=True,
        )  # fmt: skip
        plain = time.monotonic() - started
        with Cluster(place / "c") as cluster:
            started = time.monotonic()
            subprocess.run(
                [ROOT / "slurm" / "class.sh", place / "class"],
                env={
                    **environment, **cluster.environment,
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
    print(machine())
    print(f"{COUNT} submissions, {CHUNK} per task, {AT_ONCE} tasks at a time; {results} results")
    print(f"grade class --jobs 2: {plain:.1f} s; slurm/class.sh: {queued:.1f} s, leaderboard too")
    print(f"Slurm's share: {(queued - plain) / COUNT:.3f} s per submission")


if __name__ == "__main__":
    main()
