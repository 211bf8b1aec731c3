"""What a program can do to its user's other processes and files where no namespace hides them.

Every version of Landlock that this kernel can serve is tried: the launcher asks for no more than a
kernel of that version has, and the filter of system calls must make up for the rest.
"""

import os
import platform
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from grader.sandbox import landlock
from grader.sandbox.running import Completed, ProcessLimits, Sandbox
from tests.support.bench import needs_landlock
from tests.support.commands import living, until
from tests.support.files import attempts, beside
from tests.support.places import ROOT

pytestmark = needs_landlock
LIMITS = ProcessLimits(cpu_s=10)
VERSIONS = tuple(range(1, landlock.version() + 1))
PYTHON = Path(sys.executable).resolve()

ATTACKS = attempts(__file__, "attacks.txt") + beside(__file__, "attack.py.in")


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """A process of this user, its servers on every kind of address, and the port of one."""
    for folder in ("mine", "other"):
        (tmp_path / folder).mkdir()
    (tmp_path / "other" / "secret").write_text("SECRET")
    (tmp_path / "shown").write_text("shown to all")
    with ExitStack() as stack:
        tcp, unix, abstract = (
            stack.enter_context(socket.socket(family, kind))
            for family, kind in (
                (socket.AF_INET, socket.SOCK_STREAM),
                (socket.AF_UNIX, socket.SOCK_STREAM),
                (socket.AF_UNIX, socket.SOCK_STREAM),
            )
        )
        tcp.bind(("127.0.0.1", 0))
        unix.bind(str(tmp_path / "server"))
        abstract.bind(f"\0{tmp_path}")
        for server in (tcp, unix, abstract):
            server.listen()
        victim = subprocess.Popen(["/bin/sleep", "600"], start_new_session=True)
        stack.callback(victim.wait)
        stack.callback(victim.kill)
        yield victim.pid, tcp.getsockname()[1]
        assert victim.poll() is None


def attacked(abi: int, place: Path, *arguments: object, program: str = ATTACKS) -> Completed:
    sandbox = msgspec.structs.replace(Sandbox.open("landlock"), abi=abi)
    return sandbox.run(
        [str(PYTHON), "-I", "-c", program, *map(str, arguments)],
        cwd=place / "mine",
        limits=LIMITS,
        readable=[place / "shown", Path(sys.base_prefix)],
        writable=[place / "mine"],
    )


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86-64")
@pytest.mark.parametrize("abi", VERSIONS)
def test_nothing_of_others_is_in_reach(abi: int, outside: tuple[int, int], tmp_path: Path) -> None:
    victim, port = outside
    before = [state(path) for path in (tmp_path / "other" / "secret", tmp_path / "shown")]
    done = attacked(abi, tmp_path, victim, tmp_path, port)
    *lines, last = done.stdout.splitlines()
    assert (last, done.stderr) == ("done", "")
    assert len(lines) > 60
    # A call that nobody knows does not exist; a link or a rename across folders says so too.
    refusals = ("EPERM", "EACCES", "EXDEV", "ENOSYS")
    assert [line for line in lines if not line.endswith(refusals)] == []
    assert [state(path) for path in (tmp_path / "other" / "secret", tmp_path / "shown")] == before


def state(path: Path) -> tuple[object, ...]:
    seen = path.stat()
    return path.read_text(), stat.S_IMODE(seen.st_mode), seen.st_uid, seen.st_mtime_ns


@pytest.mark.parametrize("mode", ["landlock", "off"])
def test_who_flees_the_session_dies_too(mode: str, tmp_path: Path) -> None:
    mark = f"67.{os.getpid()}"
    sandbox = Sandbox.open(mode)
    command = [str(PYTHON), "-I", "-c", beside(__file__, "flees.py.in", mark=mark)]
    done = sandbox.run(
        command, cwd=tmp_path, limits=LIMITS, readable=[Path(sys.base_prefix)], writable=[tmp_path]
    )
    assert done.ok, done
    assert not living("/bin/sleep", mark)


@pytest.mark.parametrize("mode", ["landlock", "off"])
def test_nobody_outlives_a_grader_that_is_killed(mode: str) -> None:
    mark = f"68.{os.getpid()}"
    program = (
        "import os\nif os.fork() == 0:\n    os.setsid()\n"
        f"os.execv('/bin/sleep', ['/bin/sleep', '{mark}'])\n"
    )
    given = {"mode": mode, "python": str(PYTHON), "program": program, "prefix": sys.base_prefix}
    script = beside(__file__, "grader.py.in", **{hole: repr(each) for hole, each in given.items()})
    grader = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    until(lambda: len(living("/bin/sleep", mark)) == 2)
    grader.send_signal(signal.SIGKILL)
    grader.communicate()
    until(lambda: not living("/bin/sleep", mark))


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    done = Sandbox.open("landlock").run(
        ["/bin/true"], cwd=tmp_path, limits=LIMITS, readable=[tmp_path / "gone"]
    )
    assert done.returncode == 127
    assert f"{tmp_path}/gone: No such file or directory" in done.stderr
