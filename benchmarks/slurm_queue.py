"""How long 200 students wait for 4 GPUs: `python -m benchmarks.slurm_queue` (needs Slurm, as root).

On the tests' cluster, two nodes with two A100 each, everybody submits slurm/run.sh within seconds.
No GPU works: a sleep stands for a grade, so that the queue, the start of jobs and the scripts alone
are measured. The same work again as one array of four tasks, as slurm/class.sh submits it.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import tempfile
import time
from datetime import datetime
from pathlib import Path

from benchmarks.measure import ROOT, Figure, run
from tests.support.cluster import Cluster

STUDENTS, GPUS, GRADE = 200, 4, 5.0
STARTED = re.compile(r"started on \S+ at (\S+),")


def measured() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp") as scratch:
        place = Path(scratch)
        (place / "work").mkdir()
        # `class` grades a quarter of the students, everything else one.
        grade = f'[ "$1" = class ] && n={STUDENTS // GPUS} || n=1\nsleep $((n * {GRADE:.0f}))'
        (place / "grade").write_text(f"#!/bin/sh\n{grade}\n")
        (place / "grade").chmod(0o755)
        with Cluster(place / "c") as cluster:
            settings = {**os.environ, **cluster.environment, "GRADE_BIN": str(place / "grade")}
            alone = submitted(place / "alone", settings, cluster, "")
            array = submitted(place / "array", settings, cluster, f"--array=0-{GPUS - 1}")
    return [
        Figure(what=f"{STUDENTS} jobs of {GRADE:.0f} s on {GPUS} GPUs", values=alone),
        Figure(what=f"one array of {GPUS} tasks", values=array),
    ]


def submitted(
    out: Path, settings: dict[str, str], cluster: Cluster, array: str
) -> dict[str, float]:
    """Seconds until all has ended, and the waits of the jobs."""
    command = ["sbatch", "--parsable", "--gres=gpu:a100:1", ROOT / "slurm" / "run.sh"]
    if array:
        command[1:1] = [array]
        command += ["--class", ".", "manifest", str(GPUS)]
    begun, asked = time.time(), {}
    for _ in range(1 if array else STUDENTS):
        done = subprocess.run(
            command if array else [*command, "work"],
            cwd=out.parent, env={**settings, "GRADE_OUT": str(out)},
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        asked[done.stdout.strip()] = time.time()
    submitting, queries = time.time() - begun, []
    while True:
        started = time.time()
        left = cluster.run("squeue", "-h")
        queries.append(time.time() - started)
        if not left:
            break
        time.sleep(1)
    took = time.time() - begun
    waits = []
    for log in (out / "logs").glob("*.log"):
        at = STARTED.search(log.read_text())
        assert at, log
        waits.append(datetime.fromisoformat(at[1]).timestamp() - asked[log.stem.partition("_")[0]])
    return {
        "seconds": took,
        "submitting": submitting,
        "median wait": statistics.median(waits),
        "longest wait": max(waits),
        "slowest squeue": max(queries),
    }


if __name__ == "__main__":
    run(f"{STUDENTS} students on {GPUS} GPUs", measured)
