"""The command line in processes of its own, and the processes that it starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from grader.backends.simulator.engine_library import engine_library
from grader.record.recorder_process import prepare_recorder
from grader.results import store
from grader.toolchain.discovery import find_toolchain
from grader.toolchain.native import cache_folder
from ptxsim.engine import load_engine
from tests.support.places import ROOT

STARTER = (ROOT / "starter" / "sgemm.cu").read_text()


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


class Processes:
    """The processes that work in a folder of their own, by what they do."""

    ROLES: ClassVar = {
        "grader.backends.simulator.simulation_worker": "simulator",
        "recorder-": "recorder",
        "nvcc": "compiler",
        "cicc": "compiler",
        "ptxas": "compiler",
        "cc1plus": "compiler",
        "multiprocessing.forkserver": "pool",
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


def compile_our_own() -> None:
    """The grader's own programs, so that no command says that it compiles them."""
    prepare_recorder(find_toolchain())
    load_engine(engine_library().compiled())


def warm_cache(place: Path) -> Path:
    """A cache of its own, which holds the grader's own programs and no build."""
    compile_our_own()
    cache = place / "cache"
    shutil.copytree(cache_folder() / "native", cache / "native")
    return cache
