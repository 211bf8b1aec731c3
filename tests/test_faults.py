"""Machines fail: processes are killed, disks fill up, tools are missing. Nothing may be lost or
half-written, nobody gets a wrong verdict, and the user reads one clear line.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import pytest

from grader.backends.simulator.engine_library import engine_library
from grader.model import Verdict
from grader.record.recording import prepare_recorder
from grader.results import store
from grader.toolchain.discovery import find_toolchain
from grader.toolchain.native import cache_folder
from ptxsim.engine import load_engine

ROOT = Path(__file__).parents[1]
STARTER = (ROOT / "starter" / "sgemm.cu").read_text()
WRONG = STARTER.replace("C[", "C[1 + ", 1)
SLOW = "#include <unistd.h>\n" + STARTER.replace(
    "  const dim3 block", "  usleep(50000);\n  const dim3 block"
)
BROKEN = STARTER.replace("float sum = 0.0f;", "float sum = 0.0f")
LAB = """\
id: quick
correctness: [[1, 1, 1]]
performance: [{mnk: [64, 64, 64]}]
cpu: [[1, 1, 1], [2, 3, 5]]
"""
KILLS = 200
# At every look. Some live for moments only, and it takes a second to start others again.
CHANCE = {"recorder": 1.0, "compiler": 0.3, "simulator": 0.8, "pool": 0.04, "parent": 0.02}
SEED = 20241121


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "lab.yaml").write_text(LAB)
    folder = tmp_path / "submissions" / "alice"
    folder.mkdir(parents=True)
    (folder / "sgemm.cu").write_text(STARTER)
    return tmp_path


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160", **more}


def grade(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "grader.cli", *map(str, arguments)]


ALICE = grade("submissions/alice", "--lab", "lab.yaml", "--device", "cpu")


def run(command: Sequence[str], place: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=place,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def one_line(done: subprocess.CompletedProcess[str], status: int, words: str) -> None:
    """It ended with this status, and said this in one line and without a traceback."""
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    assert any(words in line for line in done.stderr.splitlines()), done.stderr


def nothing_half_written(out: Path) -> None:
    for path in store.stored(out):
        store.load(path)
    for page in out.rglob("*.html"):
        assert page.read_text().rstrip().endswith("</html>")
    assert not list(out.rglob("*.tmp"))


# --- processes are killed ----------------------------------------------------------------------


class Processes:
    """The processes that work in a folder of their own, by what they do."""

    ROLES: ClassVar = {
        "grader.backends.simulator.simulation_worker": "simulator",
        "recorder-": "recorder",
        "nvcc": "compiler",
        "cicc": "compiler",
        "ptxas": "compiler",
        "cc1plus": "compiler",
        "multiprocessing.spawn": "pool",
        "grader.cli": "parent",
    }

    def __init__(self, place: Path) -> None:
        self._needle = str(place).encode()

    def look(self) -> dict[int, str]:
        found = {}
        for folder in Path("/proc").iterdir():
            with suppress(OSError):  # ended meanwhile
                if not folder.name.isdigit() or int(folder.name) == os.getpid():
                    continue
                command = (folder / "cmdline").read_bytes()
                if self._needle in command + (folder / "environ").read_bytes():
                    text = command.decode(errors="replace")
                    roles = [role for word, role in self.ROLES.items() if word in text]
                    found[int(folder.name)] = roles[0] if roles else "other"
        return found


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def warm_cache(place: Path) -> Path:
    """A cache of its own, which holds the grader's own programs and no build."""
    prepare_recorder(find_toolchain())
    load_engine(engine_library().compiled())
    cache = place / "cache"
    shutil.copytree(cache_folder() / "native", cache / "native")
    return cache


def test_hundreds_of_kills_lose_nothing_and_wrong_nobody(place: Path) -> None:
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
    while kills.total() < KILLS:
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
                if not roles or (kills.total() >= KILLS and "parent" in roles):
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
            if (
                process.returncode != -signal.SIGKILL
            ):  # else Python itself may be cut off in a start
                assert "Traceback" not in words, words[words.index("Traceback") :]
            assert process.returncode in (0, 3, -signal.SIGKILL)
        until(lambda: not processes.look())
        for path in store.stored(place / "results"):
            result = store.load(path)
            assert result.verdict is truth[result.submission.student], (path, result.error)

    assert set(kills) >= {"parent", "pool", "simulator", "recorder", "compiler"}, kills
    done = run(command, place, **variables)
    assert done.returncode == 0, done.stderr
    graded = {
        store.load(p).submission.student: store.load(p) for p in store.stored(place / "results")
    }
    assert {student: result.verdict for student, result in graded.items()} == truth
