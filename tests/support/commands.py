"""The command line in processes of its own, and the machine's processes."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import pytest

from grader.base.native import cache_folder
from grader.build.toolchain import find_toolchain
from grader.record.recording import recorder_program
from grader.results import store
from grader.run.simulator.device import engine_library
from ptxsim import load_engine
from tests.support.places import ROOT

Done = subprocess.CompletedProcess[str]
STARTER = (ROOT / "starter" / "sgemm.cu").read_text()
QUICK = """\
id: quick
correctness: [[1, 1, 1]]
performance: [{mnk: [64, 64, 64]}]
cpu: [[1, 1, 1], [2, 3, 5], [33, 17, 20]]
"""


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160", **more}


def grade(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "grader.cli", *map(str, arguments)]


ALICE = grade("submissions/alice", "--lab", "lab.yaml", "--device", "cpu")


def run(command: Sequence[str | Path], place: Path, timeout: float = 120, **more: str) -> Done:
    return subprocess.run(
        command,
        cwd=place,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
    )


def script(path: Path, text: str) -> Path:
    """A program of these lines of shell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def assert_clean_shell(*arguments: str | Path, script: str | None = None) -> None:
    """shellcheck, which the extra ``test`` brings, finds nothing in these files or ``script``."""
    beside = Path(sys.executable).parent
    program = shutil.which("shellcheck", path=f"{beside}:{os.environ['PATH']}")
    if program is None:
        assert "CI" not in os.environ, "shellcheck is missing: pip install -e '.[test]'"
        pytest.skip("no shell script is checked: shellcheck is missing (pip install -e '.[test]')")
    done = subprocess.run(
        [program, "-x", *map(str, arguments), *(["-"] if script else [])],
        input=script,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout


def hand_in(folder: Path, text: str = STARTER) -> Path:
    """A submission of this source."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sgemm.cu").write_text(text)
    return folder


def one_line(done: Done, status: int, words: str) -> None:
    """It ended with this status, and said this in one line and without a traceback."""
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    said = done.stdout + done.stderr
    assert any(words in line for line in said.splitlines()), said


def nothing_half_written(out: Path) -> None:
    for path in store.stored(out):
        store.load(path)
    for page in out.rglob("*.html"):
        assert page.read_text().rstrip().endswith("</html>")
    assert not list(out.rglob("*.tmp"))


class Processes:
    """The processes that work in a folder of their own, by what they do."""

    ROLES: ClassVar = {
        "grader.run.simulator.simulation_worker": "simulator",
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
    recorder_program(find_toolchain()).compiled()
    load_engine(engine_library().compiled())


def warm_cache(place: Path) -> Path:
    """A cache of its own, which holds the grader's own programs and no build."""
    compile_our_own()
    cache = place / "cache"
    shutil.copytree(cache_folder() / "native", cache / "native")
    return cache


def statuses() -> dict[int, list[str]]:
    """Of every process the words of its ``stat`` behind its name: state, parent, …"""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # ended meanwhile
            found[int(stat.parent.name)] = (
                stat.read_text(errors="replace").rpartition(")")[2].split()
            )
    return found


def below(found: Mapping[int, Sequence[str]], besides: Collection[int] = ()) -> set[int]:
    """The processes of ``statuses`` below this one, but ``besides`` and what those start."""
    ours: set[int] = set()
    new = {os.getpid()}
    while new:
        new = {pid for pid, words in found.items() if int(words[1]) in new} - ours - set(besides)
        ours |= new
    return ours


def living(program: str, argument: str) -> list[int]:
    """The processes whose command line begins with these two words."""
    command = f"{program}\0{argument}".encode()
    found = []
    for pid in statuses():
        with suppress(OSError):  # ended meanwhile
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(command):
                found.append(pid)
    return found
