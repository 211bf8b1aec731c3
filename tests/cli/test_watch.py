"""``grade watch``: a result at once, and after every change."""

import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import environment, grade, one_line, run, until
from tests.support.places import ALICE

_PATIENCE_S = 60.0


class Watching:
    """The command, and what it has printed that nobody has read yet."""

    def __init__(self, place: Path) -> None:
        self._log = place / "said"
        command = grade("watch", "alice", "--device", "cpu")
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command, cwd=place, env=environment(), stdout=log, stderr=log
            )
        self._read = 0

    def until(self, words: str) -> str:
        """What it prints up to these words."""
        until(lambda: words in self._log.read_text()[self._read :], _PATIENCE_S)
        said = self._log.read_text()
        begin, self._read = self._read, said.index(words, self._read) + len(words)
        return said[begin : self._read]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    shutil.copytree(ALICE, tmp_path / "alice")
    return tmp_path


def test_it_grades_again_when_something_changed(place: Path) -> None:
    source = place / "alice" / "sgemm.cu"
    right = source.read_text()
    watching = Watching(place)
    assert "alice: AC accepted" in watching.until("to be saved")
    source.touch()
    assert watching.until("nothing changed: AC").count("\n") <= 1
    source.write_text(right.replace("__global__", "__globl__", 1))
    assert "alice: CE compile error" in watching.until("to be saved")
    other = place / "alice" / "sgemm.cu~"  # as editors save: a new file takes the old one's name
    other.write_text(right)
    other.replace(source)
    said = watching.until("to be saved")
    assert "alice: AC accepted" in said
    watching.process.send_signal(signal.SIGINT)
    assert watching.process.wait(_PATIENCE_S) == 130
    assert not (place / "results").exists()


@pytest.mark.sampled
def test_the_first_result_takes_two_seconds(place: Path) -> None:
    """Of a build that exists: what a busy machine adds does not count, so it is CPU time."""
    command = grade("watch", "alice", "--device", "cpu", "--once")
    assert run(command, place).returncode == 0
    done = run(["bash", "-c", 'TIMEFORMAT="cpu %U %S"; time "$@"', "bash", *command], place)
    assert done.returncode == 0
    found = re.search(r"cpu ([0-9.]+) ([0-9.]+)", done.stderr)
    assert found is not None
    assert float(found[1]) + float(found[2]) < 2


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    one_line(run(grade("watch", "nobody"), tmp_path), 2, "nobody: no such folder")
