"""Worker processes with the sanitisers, what they find, and the clock."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

from grader.base.native import find_host_compiler
from grader.run.simulator.device import engine_library
from ptxsim import load_engine
from tests.fuzz.cases import make_case, run_case
from tests.fuzz.worker import SANITISED

_ROOT = Path(__file__).parents[2]
_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "OPENBLAS_NUM_THREADS": "1",
}


@dataclass
class Campaign:
    """How many cases ended in which way, and the failures: case number → what was seen."""

    cases: int = 0
    seconds: float = 0.0
    ends: Counter[str] = field(default_factory=Counter)
    failures: dict[int, str] = field(default_factory=dict)

    def summary(self) -> str:
        ends = "\n".join(f"  {count:8} {end}" for end, count in self.ends.most_common())
        return f"{self.cases} cases in {self.seconds:.0f} s, {len(self.failures)} failures\n{ends}"


def run_campaign(seed: int, minutes: float, processes: int = 2) -> Campaign:
    """Fuzz for so long. Raises ToolchainError when the engine cannot be built for it."""
    engine_library(SANITISED).compiled()
    campaign, started = Campaign(), time.monotonic()
    threads = [
        Thread(target=_keep_at_it, args=(campaign, seed, first, processes, started + 60 * minutes))
        for first in range(processes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    campaign.seconds = time.monotonic() - started
    return campaign


def repeat(seed: int, number: int) -> str:
    """One case, with the engine that grades; for a debugger."""
    return run_case(make_case(seed, number), load_engine(engine_library().compiled()))


def _keep_at_it(campaign: Campaign, seed: int, first: int, step: int, until: float) -> None:
    while time.monotonic() < until:
        first = _work(campaign, seed, first, step, until)


def _work(campaign: Campaign, seed: int, first: int, step: int, until: float) -> int:
    """One worker until the time is up or a case ends it. Returns the number to go on with."""
    command = [sys.executable, "-m", "tests.fuzz.worker", str(seed), str(first), str(step)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    number, busy = first, False
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(
            command, cwd=_ROOT, env=sanitised_environment(), stderr=errors, **pipes
        ) as worker:
            for line in worker.stdout:
                if line.startswith("case "):
                    number, busy = int(line.split()[1]), True
                    continue
                busy = False
                campaign.cases += 1
                if line.startswith("failure"):
                    campaign.failures[number] = line.rstrip()
                else:
                    campaign.ends[line.rstrip()] += 1
                if time.monotonic() > until:
                    return number + step
        errors.seek(0)
        said = errors.read()[-4000:]
    if not busy:
        raise RuntimeError(f"the fuzzing worker does not start: {said}")
    campaign.cases += 1
    campaign.failures[number] = f"failure: the worker ended\n{said}"
    return number + step


def sanitised_environment() -> dict[str, str]:
    """This process's, for a Python that loads a sanitised library."""
    return {**os.environ, **_OPTIONS, "LD_PRELOAD": _sanitisers()}


def _sanitisers() -> str:
    """The runtimes, which have to be in the process before Python is."""
    compiler = str(find_host_compiler())
    names = ("libasan.so", "libubsan.so", "libstdc++.so")
    commands = [[compiler, f"-print-file-name={name}"] for name in names]
    return ":".join(subprocess.check_output(each, text=True).strip() for each in commands)


def main() -> int:
    """The command line of the package."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run this one only, without sanitisers")
    parser.add_argument("--keep", type=Path, help="folder for the PTX and plans of failures")
    wanted = parser.parse_args()
    if wanted.case is not None:
        print(repeat(wanted.seed, wanted.case))
        return 0
    campaign = run_campaign(wanted.seed, wanted.minutes)
    print(campaign.summary())
    folder = wanted.keep or Path(tempfile.gettempdir()) / "sgemm-grader-fuzz"
    for number, seen in sorted(campaign.failures.items()):
        case = make_case(wanted.seed, number)
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / f"{wanted.seed}-{number}"
        place.with_suffix(".ptx").write_text(case.ptx)
        place.with_suffix(".json").write_text(json.dumps(case.plan))
        print(
            f"\n--seed {wanted.seed} --case {number} (of {case.name}, kept at {place}.ptx): {seen}"
        )
    return 1 if campaign.failures else 0
