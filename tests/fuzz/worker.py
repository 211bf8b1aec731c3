"""``python -m tests.fuzz.worker SEED FIRST STEP``: cases FIRST, FIRST + STEP, … until stdin closes.

Writes a line before every case and one behind it.
"""

import faulthandler
import resource
import select
import sys
import time
import traceback

from grader.run.simulator.device import engine_library
from ptxsim import load_engine
from tests.fuzz.cases import make_case, run_case

SANITISED = (  # reports name functions and lines; -O1 and -g would compile nearly twice as long
    *("-std=c++20", "-Og", "-g1", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden"),
    *("-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)
_MOST_CPU_SECONDS = 8.0  # of one case, whose launches have half a second each
_MOST_SECONDS = 120.0  # by the clock, on a machine that others use too


def main() -> None:
    seed, number, step = map(int, sys.argv[1:])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    engine = load_engine(engine_library(SANITISED).compiled())
    while not select.select([sys.stdin], [], [], 0)[0]:
        print(f"case {number}", flush=True)
        faulthandler.dump_traceback_later(_MOST_SECONDS, exit=True)
        started = time.process_time()
        try:
            end = run_case(make_case(seed, number), engine)
        except Exception:
            end = "failure: " + traceback.format_exc().strip().replace("\n", " | ")
        if not (time.process_time() - started <= _MOST_CPU_SECONDS):
            end = f"failure: {time.process_time() - started:.1f} s of CPU time, then {end}"
        faulthandler.cancel_dump_traceback_later()
        print(end, flush=True)
        number += step


if __name__ == "__main__":
    main()
