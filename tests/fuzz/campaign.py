"""Worker processes with the sanitisers, what they find, and the clock."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

from grader.backends.simulator.engine_library import engine_library
from grader.toolchain.host_compiler import find_host_compiler
from ptxsim.engine import load_engine
from tests.fuzz.cases import make_case, run_case
from tests.fuzz.worker import SANITISED

_ROOT = Path(__file__).parents[2]
_SILENCE_SECONDS = 120.0  # of a worker, on a machine that others use too
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
    with tempfile.TemporaryFile("w+") as errors:
        worker = subprocess.Popen(
            command,
            cwd=_ROOT,
            env=sanitised_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        assert worker.stdin is not None
        lines: Queue[str | None] = Queue()
        Thread(target=_listen, args=(worker, lines), daemon=True).start()
        number, busy = first, False
        try:
            while True:
                line = lines.get(timeout=_SILENCE_SECONDS)
                if line is None:
                    break
                if line.startswith("case "):
                    number, busy = int(line.split()[1]), True
                    continue
                busy = False
                campaign.cases += 1
                if line.startswith("failure"):
                    campaign.failures[number] = line
                else:
                    campaign.ends[line] += 1
                if time.monotonic() > until:
                    worker.stdin.close()
                    worker.wait()
                    return number + step
            seen = "the worker ended"
        except Empty:
            seen = f"no end within {_SILENCE_SECONDS:.0f} s"
        worker.kill()
        worker.wait()
        errors.seek(0)
        if not busy:
            raise RuntimeError(f"the fuzzing worker does not start: {errors.read()[-4000:]}")
        campaign.cases += 1
        campaign.failures[number] = f"failure: {seen}\n{errors.read()[-4000:]}"
        return number + step


def _listen(worker: subprocess.Popen[str], lines: Queue[str | None]) -> None:
    assert worker.stdout is not None
    for line in worker.stdout:
        lines.put(line.rstrip("\n"))
    lines.put(None)


def sanitised_environment() -> dict[str, str]:
    """This process's, for a Python that loads a sanitised library."""
    return {**os.environ, **_OPTIONS, "LD_PRELOAD": _sanitisers()}


def _sanitisers() -> str:
    """The runtimes, which have to be in the process before Python is."""
    compiler = str(find_host_compiler())
    names = ("libasan.so", "libubsan.so", "libstdc++.so")
    paths = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in names
    ]
    return ":".join(paths)
