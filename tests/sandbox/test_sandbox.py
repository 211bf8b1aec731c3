"""Limits and isolation in every sandbox that works here."""

import errno
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grader.sandbox import bubblewrap, landlock
from grader.sandbox import meter as causes
from grader.sandbox.meter import PATIENCE
from grader.sandbox.running import (
    RESULT_FD_VARIABLE,
    Completed,
    Mode,
    ProcessLimits,
    Sandbox,
    SandboxError,
)
from tests.support.bench import CLOSED, MODES, needs_bubblewrap
from tests.support.commands import living, until
from tests.support.files import attempts, beside, values

QUICK = ProcessLimits(cpu_s=5)
A_WHILE = 15  # seconds on a busy machine; what is not to be waited for takes a minute


@pytest.fixture(params=MODES)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return Sandbox.open(request.param)


def shell(
    sandbox: Sandbox,
    script: str,
    cwd: Path,
    limits: ProcessLimits = QUICK,
    *,
    watches: bool = False,
) -> Completed:
    command = ["/bin/sh", "-c", script]
    return sandbox.run(command, cwd=cwd, limits=limits, writable=[cwd], watches=watches)


def test_output_and_status(sandbox: Sandbox, tmp_path: Path) -> None:
    done = shell(sandbox, "echo out; echo err >&2; exit 3", tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 3)
    assert not done.ok
    assert done.seconds < A_WHILE


def test_signal_is_told(sandbox: Sandbox, tmp_path: Path) -> None:
    done = shell(sandbox, "kill -SEGV $$", tmp_path, watches=True)
    assert (done.returncode, done.signal) == (None, signal.SIGSEGV)


def test_result_pipe(sandbox: Sandbox, tmp_path: Path) -> None:
    script = f"echo hello > /proc/self/fd/${RESULT_FD_VARIABLE}"
    done = shell(sandbox, script, tmp_path, ProcessLimits(cpu_s=5, result_bytes=3))
    assert done.result == b"hel"
    assert done.stdout == ""


def test_wall_time(sandbox: Sandbox, tmp_path: Path) -> None:
    done = shell(sandbox, "sleep 60", tmp_path, ProcessLimits(cpu_s=0.3))
    assert done.timed_out
    assert done.seconds < 0.3 * PATIENCE  # sleeping counts; nobody waits for the last resort


def test_output_is_cut(sandbox: Sandbox, tmp_path: Path) -> None:
    done = shell(
        sandbox, "yes | head -c 3000000", tmp_path, ProcessLimits(cpu_s=5, output_bytes=1000)
    )
    assert len(done.stdout) == 1000
    assert done.ok


def test_memory(sandbox: Sandbox, tmp_path: Path) -> None:
    limits = ProcessLimits(cpu_s=5, memory_mb=64)
    done = shell(sandbox, "head -c 300000000 /dev/zero | tail", tmp_path, limits)
    assert "memory exhausted" in done.stderr


def test_file_size(sandbox: Sandbox, tmp_path: Path) -> None:
    shell(sandbox, "head -c 9000000 /dev/zero > big", tmp_path, ProcessLimits(cpu_s=5, file_mb=1))
    assert (tmp_path / "big").stat().st_size == 1 << 20


def test_environment_is_not_passed_on(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "x")
    done = sandbox.run(["/usr/bin/env"], cwd=tmp_path, limits=QUICK, readable=[tmp_path])
    assert "A_SECRET" not in done.stdout


def test_background_process_dies_with_the_run(sandbox: Sandbox, tmp_path: Path) -> None:
    mark = f"63.{os.getpid()}"
    script = f"/bin/sleep {mark} >/dev/null 2>&1 & sleep 0.1; exit 0"
    assert shell(sandbox, script, tmp_path).seconds < A_WHILE
    until(lambda: not living("/bin/sleep", mark))


def test_open_pipe_in_a_grandchild_is_not_waited_for(sandbox: Sandbox, tmp_path: Path) -> None:
    assert shell(sandbox, "sleep 60 & echo done", tmp_path).seconds < A_WHILE


@pytest.mark.parametrize("mode", CLOSED)
def test_only_what_is_named_can_be_seen(mode: Mode, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "other").mkdir()
    script = f"cat /etc/passwd; ls {tmp_path}; ls /dev /dev/; touch /usr/x"
    done = shell(Sandbox.open(mode), script, tmp_path / "mine")
    assert "root:" not in done.stdout
    assert "other" not in done.stdout
    assert "nvidia" not in done.stdout
    refusal = "Read-only file system" if mode == "bubblewrap" else "Permission denied"
    assert f"/usr/x': {refusal}" in done.stderr


@needs_bubblewrap
def test_no_network(tmp_path: Path) -> None:
    done = shell(Sandbox.open("bubblewrap"), "cat /proc/net/dev", tmp_path)
    assert [line.split(":")[0].strip() for line in done.stdout.splitlines()[2:]] in ([], ["lo"])


@needs_bubblewrap
def test_what_can_be_written_is_small_and_private(tmp_path: Path) -> None:
    script = "for f in /x /dev/x /dev/shm/x /tmp/x /usr/x /etc/x; do touch $f && echo $f; done"
    done = shell(Sandbox.open("bubblewrap"), script, tmp_path)
    assert done.stdout.split() == ["/dev/shm/x", "/tmp/x"]
    script = "for i in 1 2 3 4; do head -c 200000000 /dev/zero > /tmp/$i; done; du -sm /tmp"
    done = shell(Sandbox.open("bubblewrap"), script, tmp_path, ProcessLimits(cpu_s=30))
    assert int(done.stdout.split()[0]) <= 520
    assert "No space left on device" in done.stderr


DOORS = (
    attempts(__file__, "doors.txt")
    + """
attempt()
socket.socketpair()
if os.fork() == 0:
    os._exit(0)
print("forked", os.wait()[1])
"""
)


@needs_bubblewrap
@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86-64")
def test_doors_into_the_kernel_are_shut(tmp_path: Path) -> None:
    sandbox = Sandbox.open("bubblewrap")
    if not sandbox.filtered:
        pytest.skip("no seccomp here")
    python = Path(sys.executable).resolve()
    done = sandbox.run(
        [str(python), "-I", "-c", DOORS],
        cwd=tmp_path,
        limits=QUICK,
        readable=[tmp_path, Path(sys.base_prefix)],
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 9, done.stderr
    assert all(line.endswith(" EPERM") for line in lines[:-1]), lines
    assert lines[-1] == "forked 0"


def test_no_capabilities(sandbox: Sandbox, tmp_path: Path) -> None:
    done = shell(sandbox, "grep -E 'Cap|NoNew' /proc/self/status", tmp_path, watches=True)
    seen = dict(line.split(":\t") for line in done.stdout.splitlines())
    kept = {name for name, value in seen.items() if int(value, 16)}
    # Only root may empty the bounding set; without new privileges nothing can come of it.
    assert kept <= {"NoNewPrivs", "CapBnd"}
    assert "NoNewPrivs" in kept
    if os.getuid() == 0:
        assert "CapBnd" not in kept


@pytest.mark.parametrize("mode", MODES)
def test_ctrl_c_leaves_no_process(mode: str, tmp_path: Path) -> None:
    mark = f"61.{os.getpid()}"
    program = beside(__file__, "sleeps.py.in", mode=repr(mode), mark=mark)
    grader = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert grader.stdout is not None
    grader.stdout.readline()
    until(lambda: living("/bin/sleep", mark))
    grader.send_signal(signal.SIGINT)
    grader.wait(5)
    grader.stdout.close()
    until(lambda: not living("/bin/sleep", mark))


def test_ctrl_c_while_a_process_is_started_leaves_none() -> None:
    mark = f"62.{os.getpid()}"
    program = beside(__file__, "interrupted.py.in", mark=mark)
    done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, check=False)

    assert done.stderr.rstrip().endswith(b"KeyboardInterrupt")
    assert not living("/bin/sleep", mark)


def test_require_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grader.sandbox.bubblewrap.programs", lambda: iter(()))
    monkeypatch.setattr("grader.sandbox.bubblewrap.working", lambda: None)
    if landlock.working() is not None:
        assert Sandbox.open("auto").kind == Sandbox.open("require").kind == "landlock"
    monkeypatch.setattr("grader.sandbox.landlock.working", lambda: None)
    monkeypatch.setattr("grader.sandbox.landlock.version", lambda: 0)
    assert Sandbox.open("auto").kind == "rlimits"
    with pytest.raises(SandboxError, match=r"apt-get install bubblewrap.*Landlock"):
        Sandbox.open("require")


# --- why one does not work


DENIED = "unshare: unshare failed: Operation not permitted"


APPARMOR = "kernel.apparmor_restrict_unprivileged_userns"
DEBIAN, LINUX = "kernel.unprivileged_userns_clone", "user.max_user_namespaces"
PROFILE = "the container's seccomp profile refuses namespaces, as Docker's does"
NO_NAMESPACE = [  # settings, whether system calls are filtered: what is said, and the remedy
    ({APPARMOR: "1"}, False, f"AppArmor forbids user namespaces ({APPARMOR}=1)", f"{APPARMOR}=0"),
    ({DEBIAN: "0"}, False, "Debian's kernel forbids user namespaces", f"{DEBIAN}=1"),
    ({LINUX: "0"}, True, f"the Linux kernel forbids user namespaces ({LINUX}=0)", f"{LINUX}=15000"),
    ({APPARMOR: "0"}, True, PROFILE, "docker run --security-opt seccomp=unconfined"),
    ({}, False, f"no user namespace can be made: {DENIED}", "ask who runs it"),
]


@pytest.mark.parametrize(("settings", "filtered", "what", "remedy"), NO_NAMESPACE)
def test_why_no_namespace_can_be_made(
    settings: dict[str, str],
    filtered: bool,
    what: str,
    remedy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bubblewrap, "programs", lambda: iter([Path("/usr/bin/bwrap")]))
    monkeypatch.setattr(causes.os, "getuid", lambda: 1000)
    monkeypatch.setattr(bubblewrap, "complaint", lambda _command: DENIED)
    monkeypatch.setattr(causes, "_setting", settings.get)
    monkeypatch.setattr(causes, "_filtered", lambda: filtered)
    cause = causes.without_bubblewrap()
    assert str(cause.what).startswith(what)
    assert str(cause.remedy).removeprefix("sysctl -w ").startswith(remedy)


@pytest.mark.parametrize(
    ("error", "release", "filtered", "what", "remedy"), values(__file__, "no_landlock.txt")
)
def test_why_there_is_no_landlock(
    error: str,
    release: str,
    filtered: bool,
    what: str,
    remedy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 0)
    monkeypatch.setattr(landlock, "refusal", lambda: getattr(errno, error))
    monkeypatch.setattr(causes.platform, "release", lambda: release)
    monkeypatch.setattr(causes, "_filtered", lambda: filtered)
    cause = causes.without_landlock()
    assert str(cause.what).startswith(what)
    assert remedy in str(cause.remedy)
