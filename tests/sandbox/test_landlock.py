"""What a program can do to its user's other processes and files where no namespace hides them.

Every version of Landlock that this kernel can serve is tried: the launcher asks for no more than a
kernel of that version has, and the filter of system calls must make up for the rest.
"""

from __future__ import annotations

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
from grader.sandbox.running import Completed, Limits, Sandbox
from tests.support.places import ROOT
from tests.support.processes import living, until
from tests.support.sandboxes import needs_landlock

pytestmark = needs_landlock
LIMITS = Limits(cpu_s=10)
VERSIONS = tuple(range(1, landlock.version() + 1))
PYTHON = Path(sys.executable).resolve()

ATTACKS = r"""
import ctypes, errno, fcntl, mmap, os, resource, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
victim, place, port = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
secret, folder, own = f"{place}/other/secret", f"{place}/other", f"{place}/mine"

def tried(name, act):
    try:
        print(name, "open", act())
    except OSError as error:
        print(name, errno.errorcode[error.errno])

def called(name, *arguments):
    result = getattr(libc, name)(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result

def through(name, target, make):
    def act():
        make(target, f"{own}/{name}")
        return open(f"{own}/{name}").read()
    return act

def owner(command, value):
    ours, theirs = os.pipe()
    return fcntl.fcntl(ours, command, value)

def moved():
    open(f"{own}/x", "w").close()
    os.rename(f"{own}/x", f"{folder}/x")

for descriptor in range(3, 256):
    try:
        print("inherited", os.readlink(f"/proc/self/fd/{descriptor}"))
    except OSError:
        pass
# files
tried("read", lambda: open(secret).read())
tried("list", lambda: os.listdir(folder))
tried("write", lambda: open(secret, "w"))
tried("append", lambda: open(secret, "a"))
tried("make", lambda: open(f"{folder}/new", "w"))
tried("remove", lambda: os.unlink(secret))
tried("rename", lambda: os.rename(secret, f"{own}/taken"))
tried("move-out", moved)
tried("truncate", lambda: os.truncate(secret, 0))
tried("symlink", through("soft", secret, os.symlink))
tried("hardlink", through("hard", secret, os.link))
tried("in-proc", lambda: open(f"/proc/self/root{secret}").read())
tried("chmod", lambda: os.chmod(secret, 0))
tried("chmod-readable", lambda: os.chmod(f"{place}/shown", 0))
tried("fchmod-readable", lambda: os.fchmod(os.open(f"{place}/shown", os.O_RDONLY), 0))
tried("chown", lambda: os.chown(secret, os.getuid(), os.getgid()))
tried("utime", lambda: os.utime(secret))
tried("setxattr", lambda: os.setxattr(secret, "user.x", b"x"))
tried("shorten-readable", lambda: os.open(f"{place}/shown", os.O_RDONLY | os.O_TRUNC))
tried("shorten-readable-3", lambda: os.open(f"{place}/shown", 3 | os.O_TRUNC))
tried("write-readable", lambda: os.open(f"{place}/shown", os.O_RDWR))
tried("device", lambda: os.mknod(f"{own}/disk", 0o660 | 0o060000, os.makedev(1, 0)))
tried("shared-memory-file", lambda: open("/dev/shm/x", "w"))
tried("temporary", lambda: open("/tmp/sgemm-grader-of-others", "w"))
tried("inotify", lambda: called("inotify_init1", 0))
tried("lease", lambda: fcntl.fcntl(os.open(f"{place}/shown", 0), fcntl.F_SETLEASE, fcntl.F_WRLCK))
tried("dnotify", lambda: fcntl.fcntl(os.open(own, 0), fcntl.F_NOTIFY, 1))
# processes
tried("environ", lambda: open(f"/proc/{victim}/environ").read())
tried("cmdline", lambda: open(f"/proc/{victim}/cmdline").read())
tried("mem", lambda: open(f"/proc/{victim}/mem", "rb"))
tried("fds", lambda: os.listdir(f"/proc/{victim}/fd"))
tried("processes", lambda: os.listdir("/proc"))
tried("ptrace", lambda: called("ptrace", 16, victim, 0, 0))
tried("seize", lambda: called("ptrace", 0x4206, victim, 0, 0))
tried("vm_readv", lambda: called("process_vm_readv", victim, None, 0, None, 0, 0))
for target in (victim, os.getppid()):
    tried(f"kill {target}".replace(" ", "-"), lambda: os.kill(target, signal.SIGKILL))
    tried(f"probe-{target}", lambda: os.kill(target, 0))
tried("killpg", lambda: os.killpg(os.getpgid(victim), signal.SIGKILL))
tried("tgkill", lambda: called("syscall", 234, victim, victim, signal.SIGKILL))
tried("sigqueue", lambda: called("sigqueue", victim, signal.SIGTERM, 0))
tried("pidfd", lambda: os.pidfd_open(victim))
tried("owner", lambda: owner(fcntl.F_SETOWN, victim))
tried("owner-signal", lambda: owner(fcntl.F_SETSIG, signal.SIGKILL))
tried("limits", lambda: resource.prlimit(victim, resource.RLIMIT_CPU, (0, 0)))
tried("limits-seen", lambda: resource.prlimit(victim, resource.RLIMIT_CPU))
tried("affinity", lambda: os.sched_setaffinity(victim, {0}))
tried("priority", lambda: os.setpriority(os.PRIO_PROCESS, victim, 19))
tried("scheduler", lambda: os.sched_setscheduler(victim, os.SCHED_IDLE, os.sched_param(0)))
# the world
tried("tcp", lambda: socket.create_connection(("127.0.0.1", port)))
tried("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
tried("unix", lambda: socket.socket(socket.AF_UNIX).connect(f"{place}/server"))
tried("abstract", lambda: socket.socket(socket.AF_UNIX).connect(f"\0{place}"))
tried("pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
tried("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
tried("shm", lambda: called("shmget", 7, 4096, 0o1600))
tried("queue", lambda: called("mq_open", b"/x", 0o100, 0o600, None))
tried("io_uring", lambda: called("syscall", 425, 1, None))
tried("namespace", lambda: called("unshare", 0x10000000))
tried("mount", lambda: called("mount", b"none", b"/tmp", b"tmpfs", 0, None))
tried("chroot", lambda: os.chroot(own))
tried("unknown", lambda: called("syscall", 470))
tried("setuid", lambda: os.setuid(65534))
print("done")
"""


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


FLEES = """
import os, time
for _ in range(3):  # out of its session, its group and its parent's sight
    if os.fork():
        os._exit(0) if _ else time.sleep(0.3) or os._exit(0)
    os.setsid()
os.execv("/bin/sleep", ["/bin/sleep", "{mark}"])
"""


@pytest.mark.parametrize("mode", ["landlock", "off"])
def test_who_flees_the_session_dies_too(mode: str, tmp_path: Path) -> None:
    mark = f"67.{os.getpid()}"
    sandbox = Sandbox.open(mode)
    command = [str(PYTHON), "-I", "-c", FLEES.format(mark=mark)]
    done = sandbox.run(
        command, cwd=tmp_path, limits=LIMITS, readable=[Path(sys.base_prefix)], writable=[tmp_path]
    )
    assert done.ok, done
    assert not living("/bin/sleep", mark)


GRADER = """
from pathlib import Path
from grader.sandbox.running import *
print("ready", flush=True)
Sandbox.open({mode!r}).run([{python!r}, "-I", "-c", {program!r}], cwd=Path("/"),
    limits=Limits(cpu_s=60), readable=[Path({prefix!r})])
"""


@pytest.mark.parametrize("mode", ["landlock", "off"])
def test_nobody_outlives_a_grader_that_is_killed(mode: str) -> None:
    mark = f"68.{os.getpid()}"
    program = (
        "import os\nif os.fork() == 0:\n    os.setsid()\n"
        f"os.execv('/bin/sleep', ['/bin/sleep', '{mark}'])\n"
    )
    script = GRADER.format(mode=mode, python=str(PYTHON), program=program, prefix=sys.base_prefix)
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
