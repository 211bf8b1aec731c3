"""CPU seconds that the simulator alone takes, every watch on: ``python -m benchmarks.simulator``.

With ``--levels``: as compiled for this CPU, and for each level that wheels are built for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.measure import ALICE, ROOT, Figure, cubes, run, tools
from grader.build.toolchain import find_toolchain
from grader.judge.pipeline import grade
from grader.judge.program import GradingContext
from grader.labs.lab import load_lab
from grader.problems.comparison import poisoned
from grader.problems.inputs import make_inputs
from grader.run.protocol import quietly
from grader.run.simulator.device import engine_library
from grader.sandbox.running import Sandbox
from ptxsim import FLAGS, Engine, SimLimits, Simulator, cpu_levels, load_engine
from ptxsim.plan import Size

CORRECT = ROOT / "tests" / "fixtures" / "correct"
REPEATS = 5
GOALS = [  # name, folder, extent of the cube, seconds that must not be passed
    ("8×8 per thread, float4", ALICE, 512, 0.25),
    ("8×8 per thread, float4", ALICE, 1024, 5.0),
    ("32×32 tile", CORRECT / "tiled_template", 256, 0.5),
    ("naive", CORRECT / "naive", 128, 0.1),
]
FIXTURE_GOAL = 5.0


def seconds(
    folder: Path, extent: int, bench: GradingContext, engines: Sequence[Engine]
) -> list[float]:
    """For each engine the best of some runs of one plan, by turns. Raises ValueError when the
    product is wrong."""
    size = Size.of(m=extent, n=extent, k=extent)
    ready = cubes(folder, (extent,), bench, bench.lab.architectures[0])
    ptx = ready.built.ptx.read_text()
    operands = bench.lab.problem.operands(size)
    a, b = make_inputs(operands)
    best = [float("inf")] * len(engines)
    for _ in range(REPEATS):
        for place, engine in enumerate(engines):
            simulator = Simulator(ptx, ready.submission.folder, engine)
            arrays = {0: a, 1: b, 2: poisoned(operands[2])}
            buffers = {i: array.reshape(-1).view(np.uint8) for i, array in arrays.items()}
            begin = time.process_time()
            outcome = simulator.run(ready.plans[0], buffers, SimLimits(seconds=600))
            best[place] = min(best[place], time.process_time() - begin)
            if outcome.findings or outcome.stopped:
                raise ValueError(f"{folder}: {outcome.findings} {outcome.stopped}")
    return best


def by_level() -> Iterator[Figure]:
    bench = tools()
    levels = ("native", *cpu_levels())
    engines = [
        load_engine(engine_library((*FLAGS, f"-march={level}")).compiled()) for level in levels
    ]
    for name, folder, extent, _ in GOALS:
        took = seconds(folder, extent, bench, engines)
        yield Figure(what=f"{name}, {extent}³", values=dict(zip(levels, took, strict=True)))


def slowest_fixture(bench: GradingContext) -> tuple[str, float]:
    """The correct fixture with the longest case at the lab's own sizes."""
    longest = ("", 0.0)
    for folder in sorted(CORRECT.iterdir()):
        result = grade(folder, bench, quietly).result
        worst = max((case.seconds or 0.0 for case in result.cases), default=0.0)
        longest = max(longest, (folder.name, worst), key=lambda pair: pair[1])
    return longest


def measured() -> list[Figure]:
    bench = GradingContext(lab=load_lab(), toolchain=find_toolchain(), sandbox=Sandbox.open("auto"))
    engine = load_engine(engine_library().compiled())
    taken = [
        (f"{name}, {extent}³", min(seconds(folder, extent, bench, [engine])), goal)
        for name, folder, extent, goal in GOALS
    ]
    name, worst = slowest_fixture(bench)
    taken.append((f"slowest fixture ({name}), lab sizes", worst, FIXTURE_GOAL))
    return [
        Figure(what=what, values={"seconds": took}, most={"seconds": goal})
        for what, took, goal in taken
    ]


if __name__ == "__main__":
    run("kernel", measured, levels=by_level)
