"""Decides why processes take long: through their own work, or because the machine is too busy.

A limit counts work, not waiting. ``Meter`` charges the processes of a session for the CPU time of
all of them, and for the time in which none of them wanted a CPU, so that sleeping gains nothing.
Time in which they were ready and others ran is free. After ``PATIENCE`` times the limit, a wall
clock ends the processes that are left; the machine was then too busy.
"""

import errno
import os
import platform
import re
import selectors
import subprocess
import time
from collections.abc import Collection, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from grader.sandbox import bubblewrap, landlock
from ptxsim.plan import Record
from ptxsim.text import Message, phrase, verbatim

PATIENCE = 10  # wall time allowed for each second of a limit
_TICKS = os.sysconf("SC_CLK_TCK")
_SHARED = re.compile(r"^RssShmem:\s+(\d+) kB", re.MULTILINE)  # of /proc/PID/status
_WANTS_TO_GO_ON = ("R", "D")  # running or ready; waiting for a disk
# Of /proc/PID/stat behind the name: state, then utime, stime, cutime, cstime.
_STATE, _FIRST_TIME, _LAST_TIME = 0, 11, 15
_MOST_PAUSE_S, _LEAST_PAUSE_S = 0.25, 0.05


class TookTooLong(Exception):  # noqa: N818 - what the processes did, not a fault of ours
    """The processes used their CPU time, or slept instead."""


class TookTooMuch(TookTooLong):
    """They filled more memory that can be shared than they may."""


class FellAsleep(TookTooLong):
    """Most of that time none of them wanted a CPU."""


class Starved(Exception):  # noqa: N818
    """The wall clock ran out before they had it."""


class Meter:
    """Charges the processes of ``sessions`` from now on, against ``limit_s``. shared: a file in
    memory, and the most bytes that it may take. The first session may map it twice, and no more
    memory of that kind, which no limit of the kernel counts."""

    def __init__(
        self, limit_s: float, *sessions: int, shared: tuple[int, int] | None = None
    ) -> None:
        self._sessions = sessions
        self._shared = shared
        self._limit = limit_s
        self._started = self._looked = time.monotonic()
        self._cpu, _ = _use(sessions)
        self._slept = self.charged = 0.0  # seconds, as of the last look

    def pause(self) -> float:
        """Look, and return after how many seconds to look again. Raises TookTooLong or Starved."""
        now = time.monotonic()
        if self._shared:
            file, most = self._shared
            filled = os.fstat(file).st_blocks * 512
            if filled > most or _mapped(self._sessions[0]) > 2 * most:
                raise TookTooMuch
        if now - self._looked >= _LEAST_PAUSE_S:
            cpu, wanting = _use(self._sessions)
            # A process that was collected between two reads is missing once.
            spent = max(0.0, cpu - self._cpu)
            slept = 0.0 if wanting else max(0.0, now - self._looked - spent)
            self.charged += spent + slept
            self._slept += slept
            self._cpu, self._looked = max(cpu, self._cpu), now
        if self.charged > self._limit:
            raise FellAsleep if self._slept > self.charged / 2 else TookTooLong
        left = PATIENCE * self._limit - (now - self._started)
        if left <= 0:
            raise Starved
        soonest = (self._limit - self.charged) / (os.cpu_count() or 1)
        return min(left, max(_LEAST_PAUSE_S, min(_MOST_PAUSE_S, soonest)))


def _use(sessions: Collection[int]) -> tuple[float, bool]:
    """CPU seconds of the sessions' processes and their dead children; whether any wants more."""
    ticks, wanting = 0, False
    for folder in Path("/proc").iterdir():
        with suppress(OSError):  # ended meanwhile
            if folder.name.isdigit() and os.getsid(int(folder.name)) in sessions:
                ticks += sum(map(int, _stat(folder)[_FIRST_TIME:_LAST_TIME]))
                tasks = (folder, *(folder / "task").iterdir())
                wanting = wanting or any(_stat(each)[_STATE] in _WANTS_TO_GO_ON for each in tasks)
    return ticks / _TICKS, wanting


def _mapped(session: int) -> int:
    """Bytes of shared memory that the processes of a session have touched."""
    total = 0
    for folder in Path("/proc").iterdir():
        with suppress(OSError):  # ended meanwhile
            if folder.name.isdigit() and os.getsid(int(folder.name)) == session:
                found = _SHARED.search((folder / "status").read_text(errors="replace"))
                total += int(found[1]) << 10 if found else 0
    return total


def _stat(folder: Path) -> list[str]:
    return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()


_CHUNK = 1 << 16


def drain(
    process: subprocess.Popen[bytes], pipes: Mapping[int, tuple[int, bytearray]], meter: Meter
) -> None:
    """Read every pipe until the program ends, and keep as many bytes as it says. Raises what
    ``meter`` raises. A pipe can outlive the program in a grandchild's hands, so its end is not
    waited for."""
    with selectors.DefaultSelector() as selector, ExitStack() as closing:
        for fd in pipes:
            selector.register(fd, selectors.EVENT_READ)
        most = 0.01  # seconds between two looks at a child whose end does not wake us
        with suppress(OSError):  # a kernel or a container without pidfd_open
            ended = os.pidfd_open(process.pid)
            closing.callback(os.close, ended)
            selector.register(ended, selectors.EVENT_READ)
            most = 3600.0
        while True:
            ready = {key.fd for key, _ in selector.select(min(meter.pause(), most))} & pipes.keys()
            for fd in ready:
                chunk, (limit, kept) = os.read(fd, _CHUNK), pipes[fd]
                kept += chunk[: limit - len(kept)]
                if not chunk:
                    selector.unregister(fd)
            if not ready and process.poll() is not None:
                return


# --- causes ------------------------------------------------------------------------------------

# A setting that forbids unprivileged user namespaces, its value then, and the value that does not.
# The first is Ubuntu's, from 23.10 on.
_SETTINGS = (
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0", verbatim("AppArmor")),
    ("kernel.unprivileged_userns_clone", "0", "1", phrase("Debian's kernel")),
    ("user.max_user_namespaces", "0", "15000", phrase("the Linux kernel")),
)
_FIRST_LANDLOCK = (5, 13)
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")


class Obstacle(Record):
    what: Message
    remedy: Message


def _obstacle(name: str, **args: str | Message) -> Obstacle:
    """The obstacle that obstacles.toml has under this name."""
    table = msgspec.toml.decode(Path(__file__).with_name("obstacles.toml").read_bytes())
    row = table[name] | args
    what, remedy = (Message(text=row.pop(each)) for each in ("what", "remedy"))
    return Obstacle(what=what.given(**row), remedy=remedy.given(**row))


def without_bubblewrap() -> Obstacle:
    program = next(bubblewrap.programs(), None)
    if program is None:
        return _obstacle("no-bubblewrap")
    if (refusal := bubblewrap.complaint(["unshare", "--user", "true"])) is not None:
        for name, forbids, allows, who in _SETTINGS:
            if _setting(name) == forbids and (os.getuid() != 0 or name.startswith("user.")):
                setting, command = f"{name}={forbids}", f"sysctl -w {name}={allows}"
                return _obstacle("setting", who=who, setting=setting, command=command)
        if _filtered():
            return _obstacle("profile-without-namespaces")
        return _obstacle("no-namespace", why=refusal)
    said = bubblewrap.complaint([*bubblewrap.command(program, (), (), Path("/"), None), "true"])
    in_a_container = any(Path(mark).exists() for mark in _CONTAINER_MARKS)
    if in_a_container and said is not None and "proc" in said:
        return _obstacle("masked-proc")
    return _obstacle("bubblewrap-fails", why=str(said), words=f"{program} --version")


def without_landlock() -> Obstacle:
    if landlock.version() > 0:
        return _obstacle("no-filter")
    release = platform.release()
    old = tuple(map(int, re.findall(r"\d+", release)[:2])) < _FIRST_LANDLOCK
    if landlock.refusal() == errno.EOPNOTSUPP:
        return _obstacle("landlock-off")
    if not old and _filtered():
        return _obstacle("profile-without-landlock")
    return _obstacle("old-kernel", release=release)


def _setting(name: str) -> str | None:
    try:
        return Path("/proc/sys", *name.split(".")).read_text().strip()
    except OSError:
        return None


def _filtered() -> bool:
    """Whether a container's runtime put a filter of system calls on this process."""
    return "Seccomp:\t2" in Path("/proc/self/status").read_text()
