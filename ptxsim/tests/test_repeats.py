"""Launches of whole programs: those that repeat are skipped, and those that last are seen, and end
when somebody wants it."""

import os
import pty
import select
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from ptxsim.execution import progress
from ptxsim.execution.building import compile_program
from ptxsim.execution.device import Settings
from ptxsim.execution.messages import LaunchKernel
from ptxsim.execution.running import execute
from ptxsim.findings.writes import WatchedElement
from ptxsim.launching import default_engine

HERE = Path(__file__).parent
_TRIES = 5
ROWS = [
    [cell.strip() for cell in line.split("|")]
    for line in (HERE / "tables" / "repeats.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    default_engine()
    folder = tmp_path_factory.mktemp("repeats")
    source = shutil.copy(HERE / "programs" / "repeats.cu", folder)
    compile_program([str(source), "-o", str(folder / "repeats")], "sm_80")
    return folder / "repeats"


@pytest.fixture(scope="module")
def blocks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("blocks")
    source = shutil.copy(HERE / "programs" / "blocks.cu", folder)
    compile_program([str(source), "-o", str(folder / "blocks")], "sm_80")
    return folder / "blocks"


@pytest.mark.parametrize(("what", "launches", "skipped"), ROWS)
def test_a_skip_changes_nothing(
    program: Path, what: str, launches: str, skipped: str, capfd: pytest.CaptureFixture[str]
) -> None:
    ended = execute(program, [what], Settings(seconds=60))
    printed = capfd.readouterr().out
    without = execute(program, [what], Settings(seconds=60, skips=False))
    assert (ended.launches, ended.skipped) == (int(launches), int(skipped))
    assert (without.launches, without.skipped) == (int(launches), 0)
    assert printed == capfd.readouterr().out
    assert (ended.status, ended.remarks) == (without.status, without.remarks)


def test_writes_that_are_not_kept_are_counted(program: Path) -> None:
    settings = Settings(watch=(WatchedElement.named("b[0]:i32"),))
    ended = execute(program, ["accumulated"], settings, captured=True)
    assert (len(ended.writes), ended.writes_left_out) == (1000, 1 + 10 * 256 - 1000)


@pytest.mark.parametrize(
    ("what", "parts"),
    [
        ("apart", True),
        ("in place", True),
        ("across", True),
        ("chained", False),  # something is found before the others begin
        ("counted", False),
        ("overrun", True),
        ("said", True),
    ],
)
def test_parts_of_a_launch_do_what_it_does(
    blocks: Path, what: str, parts: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    many = False
    for _ in range(_TRIES):  # threads that live shortly may not be seen
        (alone, few), (together, most) = (watched(blocks, what, jobs, capfd) for jobs in (1, 4))
        assert alone == together
        many = many or most > few + 1
        if many or not parts:
            break
    assert many == parts


def watched(
    blocks: Path, what: str, jobs: int, capfd: pytest.CaptureFixture[str]
) -> tuple[tuple[object, ...], int]:
    """Return what a run comes to, and the most threads that were seen meanwhile."""
    with ThreadPoolExecutor(1) as beside:
        running = beside.submit(execute, blocks, [what], Settings(seconds=60, jobs=jobs))
        threads = 0
        while not wait([running], 0.002).done:
            threads = max(threads, len([*Path("/proc/self/task").iterdir()]))
    ended = running.result()
    return (ended.status, ended.remarks, capfd.readouterr().out), threads


class Terminal:
    """``ptxsim exec program what`` on a terminal of its own."""

    def __init__(self, program: Path, what: str) -> None:
        self.seen = ""
        command = [sys.executable, "-m", "ptxsim", "exec", str(program), "--", what]
        self._process, self._end = pty.fork()
        if not self._process:
            os.execv(command[0], command)

    def read_until(self, text: str) -> None:
        """Read on to ``text``; to the end if it does not come."""
        ends = time.monotonic() + 60
        while text not in self.seen and select.select([self._end], [], [], 60)[0]:
            try:
                self.seen += os.read(self._end, 1 << 16).decode()
            except OSError:  # nobody has the other end any more
                break
            assert time.monotonic() < ends, self.seen

    def interrupt(self) -> None:
        os.write(self._end, b"\x03")

    def end(self) -> int:
        self.read_until("there is no such text")
        os.close(self._end)
        return os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])


def test_a_long_launch_is_seen_and_ends_with_what_was_found(program: Path) -> None:
    terminal = Terminal(program, "long")
    terminal.read_until("compute_for_long, launch 2, 2 s")
    interrupted = time.monotonic()
    terminal.interrupt()
    assert terminal.end() == 1
    assert time.monotonic() - interrupted < 5
    printed, line, rest = terminal.seen.partition("\x1bD")
    assert printed == "waits"
    assert line and rest.count("\x1b[2K") >= 2  # the line is written, and erased
    assert "error: out-of-bounds" in rest
    assert "error: stopped" not in rest and "endless-loop" not in rest


def test_a_second_interrupt_ends_a_program_that_ignores_the_first(program: Path) -> None:
    terminal = Terminal(program, "stubborn")
    terminal.read_until("waits")
    terminal.interrupt()
    terminal.read_until("^C")
    time.sleep(0.5)
    terminal.interrupt()
    assert terminal.end() == 130


def test_without_a_terminal_there_is_no_line(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_SILENT", -1.0)
    line = progress.Progress()
    shape = {"grid": (1, 1, 1), "block": (1, 1, 1), "cluster": (1, 1, 1)}
    others = dict.fromkeys(LaunchKernel.__struct_fields__, 0) | {"kernel": "add"}
    with line.during(LaunchKernel(**others | shape)):
        line.update()
    assert capfd.readouterr().err == ""


def test_a_program_that_has_ended_leaves_nothing_open(program: Path) -> None:
    opened = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(3):
        execute(program, ["same"], captured=True)
    assert len([*Path("/proc/self/fd").iterdir()]) == opened
