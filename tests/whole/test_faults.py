"""Machines fail: processes are killed, disks fill up, tools are missing. Nothing may be lost or
half-written, nobody gets a wrong verdict, and the user reads one clear line.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from grader.base.records import Verdict
from grader.results import store
from tests.support.commands import STARTER, Processes, environment, grade, run, until, warm_cache

WRONG = STARTER.replace("C[", "C[1 + ", 1)
SLOW = "#include <unistd.h>\n" + STARTER.replace(
    "  const dim3 block", "  usleep(50000);\n  const dim3 block"
)
BROKEN = STARTER.replace("float sum = 0.0f;", "float sum = 0.0f")
# What must have been hit in the end; tests/course/test_class.py kills in every run.
HIT = {"parent", "pool", "simulator", "recorder", "compiler"}
# At every look. Some live for moments only, and it takes a second to start others again.
CHANCE = {"recorder": 1.0, "compiler": 0.3, "simulator": 0.8, "pool": 0.02, "parent": 0.01}
SEED = 20241121


@pytest.mark.slow
@pytest.mark.parametrize("often", [20, pytest.param(200, marks=pytest.mark.nightly)])
def test_kills_lose_nothing_and_wrong_nobody(often: int, place: Path) -> None:
    """SIGKILL to whatever is at work, the command itself included, until it was sent so often.

    What does not compile is not cached, so there is a compiler to kill in every round.
    """
    texts = {f"s{i:02d}": (STARTER, WRONG, BROKEN, SLOW)[i % 4] + f"\n// {i}" for i in range(12)}
    truth = dict(zip(texts, (Verdict.AC, Verdict.RE, Verdict.CE, Verdict.AC) * 3, strict=True))
    for student, text in texts.items():
        (place / "class" / student).mkdir(parents=True)
        (place / "class" / student / "sgemm.cu").write_text(text)
    (place / "tmp").mkdir()
    cache = warm_cache(place)
    variables = {"SGEMM_GRADER_CACHE": str(cache), "TMPDIR": str(place / "tmp")}
    command = grade("class", "class", "--lab", "lab.yaml", "--device", "cpu", "--jobs", "2")
    rng = random.Random(SEED)
    processes = Processes(place)
    kills: Counter[str] = Counter()
    assert run(command, place, **variables).returncode == 0

    def enough() -> bool:
        return kills.total() >= (often if set(kills) >= HIT else 2 * often)

    while not enough():
        with subprocess.Popen(
            [*command, "--force"],
            cwd=place,
            env=environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            while process.poll() is None:
                time.sleep(rng.uniform(0.0, 0.05))
                found = processes.look()
                roles = sorted(set(found.values()) - {"other"})
                if not roles or (enough() and "parent" in roles):
                    continue
                role = rng.choice(roles)
                if rng.random() > CHANCE[role]:
                    continue
                victim = rng.choice([pid for pid, its in found.items() if its == role])
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    kills[role] += 1
            assert process.stderr is not None
            words = process.stderr.read()
            if process.returncode != -signal.SIGKILL:  # else Python itself may be cut off
                assert "Traceback" not in words, words[words.index("Traceback") :]
            assert process.returncode in (0, 3, -signal.SIGKILL)
        until(lambda: not processes.look())
        for path in store.stored(place / "results"):
            result = store.load(path)
            assert result.verdict is truth[result.submission.student], (path, result.error)

    assert set(kills) >= HIT or often < 100, kills  # some live for moments only
    done = run(command, place, **variables)
    assert done.returncode == 0, done.stderr
    graded = map(store.load, store.stored(place / "results"))
    assert {result.submission.student: result.verdict for result in graded} == truth
