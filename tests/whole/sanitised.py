"""``python -m tests.whole.sanitised FOLDER``: our C++ with sanitisers, on the plans that lie there.

Beside NAME.json, a list of plans, lies NAME.ptx. The name is printed before its plans run, so that
the last line names the one at which a sanitiser ended the process. Then the issue model runs loops
that no compiler would write.
"""

import random
import resource
import sys
from pathlib import Path

import msgspec
import numpy as np

from grader.base import gpus
from grader.base.native import Native
from grader.model import issue_model
from grader.model.issue_model import model_library
from grader.model.loop_steps import LoopStep, Pipe
from grader.run.simulator.device import engine_library
from ptxsim import RefusedProgram, SimLimits, Simulator, load_engine
from ptxsim.plan import Plan
from tests.fuzz.worker import SANITISED

_LIMITS = SimLimits(seconds=0.5, steps=20_000, bytes=1 << 28)
_LOOPS = 40


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    engine = load_engine(engine_library(SANITISED).compiled())
    for file in sorted(Path(sys.argv[1]).glob("*.json")):
        plans = msgspec.json.decode(file.read_bytes(), type=list[Plan])
        print(file.stem, flush=True)
        try:
            simulator = Simulator(file.with_suffix(".ptx").read_text(), file.parent, engine)
            for plan in plans:
                sizes = [allocation.size for allocation in plan.allocations[:3]]
                zeros = {at: np.zeros(size, np.uint8) for at, size in enumerate(sizes)}
                simulator.run(plan, zeros, _LIMITS)
        except (RefusedProgram, MemoryError):
            continue
    sanitised = sanitised_model()
    issue_model.model_library = lambda: sanitised
    for seed in range(_LOOPS):
        print(f"loop {seed}", flush=True)
        run_loop(random.Random(seed))


def sanitised_model() -> Native:
    return model_library((*SANITISED, "-fvisibility=default"))


def run_loop(chance: random.Random) -> None:
    """Registers, scoreboards and stall counts are anything that machine code can name."""
    steps = tuple(_step(chance) for _ in range(chance.randint(1, 20)))
    sm = chance.choice(list(gpus.MULTIPROCESSORS.values()))
    warps, blocks = chance.randint(1, 16), chance.randint(1, 4)
    shape = warps, blocks, sm
    latency, sector = chance.randint(0, 900), chance.uniform(0.1, 4)
    issue_model.run_loop(steps, *shape, latency=latency, sector_cycles=sector)


def _step(chance: random.Random) -> LoopStep:
    board = (None, *range(6))
    return LoopStep(
        unit=chance.choice(list(Pipe)),
        stall=chance.randint(0, 15),
        waits=tuple(chance.sample(range(6), chance.randint(0, 6))),
        sets=chance.choice(board),
        frees=chance.choice(board),
        work=chance.choice((0.0, 1.0, 32.0)),
        sectors=chance.choice((0.0, 4.0)),
        latency=chance.randint(0, 40),
        reads=(chance.randint(0, 3), chance.randint(0, 3)),
        copies=chance.random() < 0.2,
        fence=chance.random() < 0.2,
        drains=chance.choice((None, (chance.randint(0, 5), chance.randint(0, 63)))),
    )


if __name__ == "__main__":
    main()
