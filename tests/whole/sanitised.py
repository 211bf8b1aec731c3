"""``python -m tests.whole.sanitised FOLDER``: runs the plans there on the engine with sanitisers.

Beside NAME.json, a list of plans, lies NAME.ptx. The name is printed before its plans run, so that
the last line names the one at which a sanitiser ended the process.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import msgspec
import numpy as np

from grader.backends.simulator.engine_library import engine_library
from grader.model import Plan
from ptxsim.engine import load_engine
from ptxsim.errors import RefusedProgram
from ptxsim.simulator import SimLimits, Simulator
from tests.fuzz.worker import SANITISED

_LIMITS = SimLimits(seconds=1.0, steps=200_000, bytes=1 << 30)


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


if __name__ == "__main__":
    main()
