"""Seconds that the simulator alone takes, every watch on: ``python -m benchmarks.simulator``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.machine import machine, table
from benchmarks.tools import cubes
from grader.backends.simulator.engine_library import engine_library
from grader.grading.pipeline import Bench, grade
from grader.labs.lab import load_lab
from grader.model import Size
from grader.problems.comparison import poisoned
from grader.problems.inputs import make_inputs
from grader.sandbox.running import Sandbox
from grader.toolchain.discovery import find_toolchain
from ptxsim.engine import load_engine
from ptxsim.outcome import SimLimits
from ptxsim.simulator import Simulator

ROOT = Path(__file__).parents[1]
CORRECT = ROOT / "tests" / "fixtures" / "correct"
REPEATS = 5
GOALS = [  # name, folder, extent of the cube, seconds that must not be passed
    ("8×8 per thread, float4", ROOT / "submissions" / "alice", 512, 0.25),
    ("8×8 per thread, float4", ROOT / "submissions" / "alice", 1024, 5.0),
    ("32×32 tile", CORRECT / "tiled_template", 256, 0.5),
    ("naive", CORRECT / "naive", 128, 0.1),
]
FIXTURE_GOAL = 5.0


def seconds(folder: Path, extent: int, bench: Bench) -> float:
    """The best of some runs of one plan. Raises ValueError when the product is wrong."""
    size = Size.of(m=extent, n=extent, k=extent)
    ready = cubes(folder, (extent,), bench, bench.lab.architectures[0])
    simulator = Simulator(
        ready.built.ptx.read_text(),
        ready.submission.folder,
        load_engine(engine_library().compiled()),
    )
    operands = bench.lab.problem.operands(size)
    a, b = make_inputs(operands)
    taken = []
    for _ in range(REPEATS):
        c = poisoned(operands[2])
        arrays = {0: a, 1: b, 2: c}
        buffers = {i: array.reshape(-1).view(np.uint8) for i, array in arrays.items()}
        outcome = simulator.run(ready.plans[0], buffers, SimLimits(seconds=600))
        if outcome.findings or outcome.stopped:
            raise ValueError(f"{folder}: {outcome.findings} {outcome.stopped}")
        taken.append(outcome.seconds)
    return min(taken)


def slowest_fixture(bench: Bench) -> tuple[str, float]:
    """The correct fixture with the longest case at the lab's own sizes."""
    longest = ("", 0.0)
    for folder in sorted(CORRECT.iterdir()):
        result = grade(folder, bench, lambda _stage, _detail: None).result
        worst = max((case.seconds or 0.0 for case in result.cases), default=0.0)
        longest = max(longest, (folder.name, worst), key=lambda pair: pair[1])
    return longest


def main() -> None:
    bench = Bench(
        lab=load_lab(), toolchain=find_toolchain(), sandbox=Sandbox.open("auto"), explain=False
    )
    rows = [
        [name, f"{extent}³", f"{seconds(folder, extent, bench):.2f}", f"{goal:g}"]
        for name, folder, extent, goal in GOALS
    ]
    name, worst = slowest_fixture(bench)
    rows.append([f"slowest fixture ({name})", "lab sizes", f"{worst:.2f}", f"{FIXTURE_GOAL:g}"])
    print(machine(), end="\n\n")
    print(table(["kernel", "size", "seconds", "at most"], rows))


if __name__ == "__main__":
    main()
