"""The sandbox without namespaces: Landlock, through a launcher that supervises the program.

Landlock restricts files, from version 4 TCP, from version 6 abstract sockets and signals. It does
not restrict what a program may ask about a file that it cannot open, or change about one that it
owns; the filter of system calls covers the rest (seccomp.py). The launcher also runs programs
without Landlock, where the kernel has none: then only the filter and the limits hold.
"""

import ctypes
import functools
import os
from collections.abc import Sequence
from pathlib import Path

from grader.base import Native
from grader.sandbox import seccomp
from grader.sandbox.bubblewrap import ETC, SYSTEM, complaint

SIGNALS_SINCE = 6  # the version of Landlock that keeps signals in
_TRUNCATION_SINCE = 3
_NEWEST = 7  # what launcher.cpp knows; a newer kernel takes the same rules
_CREATE_RULESET, _ASK_VERSION = 444, 1
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# What programs read of the machine: the C library, OpenBLAS, the C++ compiler.
_MACHINE = (
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/filesystems"),
    *("/proc/sys/vm/overcommit_memory", "/sys/devices/system/cpu"),
)
LAUNCHER = Native(
    name="launcher",
    sources=(Path(__file__).with_name("launcher.cpp"),),
    shared=False,
    flags=("-O1",),
)


def version() -> int:
    """The version of Landlock's interface in this kernel; 0 if there is none or it is off."""
    return max(0, min(_NEWEST, _asked()[0]))


def refusal() -> int:
    """The error number with which the kernel denies having it."""
    return _asked()[1]


def _asked() -> tuple[int, int]:
    answer = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)
    return answer, ctypes.get_errno()


def command(
    abi: int,
    readable: Sequence[Path],
    writable: Sequence[Path],
    filter_fd: int | None,
    *,
    processes: bool,
) -> list[str]:
    """The command line in front of the program's own; 0 for ``abi`` leaves Landlock out.
    ``processes`` lets it read /proc."""
    arguments = [str(_launcher()), str(os.getpid()), str(abi)]
    arguments.append("-1" if filter_fd is None else str(filter_fd))
    for option, paths in (
        ("-r", ("/usr", *SYSTEM, *ETC)),
        ("-f", ("/proc",) if processes else _MACHINE),
        ("-d", _DEVICES),
    ):
        arguments += [word for path in paths if Path(path).exists() for word in (option, path)]
    arguments += [word for path in readable for word in ("-r", str(path))]
    arguments += [word for path in writable for word in ("-w", str(path))]
    return [*arguments, "--"]


def open_filter(abi: int, processes: bool = False) -> int | None:
    """A descriptor that the launcher reads the filter from, where there is one for this machine."""
    return seccomp.open_filter(
        namespaces=False,
        signals=processes or abi >= SIGNALS_SINCE,
        truncates=abi >= _TRUNCATION_SINCE or abi == 0,
    )


def working() -> int | None:
    """Landlock's version, tried for real together with the filter, without which it is porous."""
    abi = version()
    return abi if abi > 0 and filters(abi) else None


@functools.cache
def filters(abi: int = 0) -> bool:
    """Whether system calls can be filtered here, with this version of Landlock or without it."""
    filter_fd = open_filter(abi)
    if filter_fd is None:
        return False
    trial = [*command(abi, (), (), filter_fd, processes=False), "true"]
    return complaint(trial, (filter_fd,)) is None


@functools.cache
def _launcher() -> Path:
    return LAUNCHER.compiled()
