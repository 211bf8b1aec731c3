"""The system calls that a sandboxed program may not make, as filters for the kernel.

Compilers need only processes and files: no network beyond local sockets, no other namespaces, no
access to other processes, and no administrative calls. What runs students' code may do far less:
the second part lists what is left.
"""

import csv
import ctypes
import errno
import mmap
import os
import platform
import signal
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from grader.base import MachineError
from ptxsim.text import verbatim

# --- system calls --------------------------------------------------------------------------------


# Names, numbers on each machine ("": it has no such call), and the list below that a call is on.
_CALLS = Path(__file__).with_name("system_calls.csv").read_text().splitlines()
_TABLE = tuple(csv.DictReader(_CALLS))


def _listed(use: str) -> tuple[str, ...]:
    return tuple(row["name"] for row in _TABLE if row["use"] == use)


_DENIED, _SIGNALLING = _listed("denied"), _listed("signalling")
# Beyond that, where no namespaces separate a program from other processes and files of its user: a
# local socket reaches every server of the machine; Landlock leaves attributes of files alone; a
# watch on a folder tells the names in it; System V's memory, semaphores and queues, and POSIX's
# queues, are no files; the last ones are about how other processes run.
_DENIED_AMONG_OTHERS = _listed("denied among others")
# What computation needs once everything is in memory, whatever the arguments; below stand the
# calls of which only some arguments will do.
_COMPUTING = _listed("computing")
# Beyond that, what the simulator needs for its threads and for what it writes into its own files.
_COMPUTING_IN_THREADS = _listed("computing in threads")

# --- filters -------------------------------------------------------------------------------------

_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # audit numbers
_FCNTL_DENIED = (8, 10, 15, 1024, 1026)  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY
_O_TRUNC = 0x200
_UNKNOWN = 470  # and later: calls that are newer than the tables
_AF_UNIX = 1
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEW*
_X32 = 0x40000000

# Classic BPF: what is done, and with what.
_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_NUMBER, _MACHINE, _ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_KILL, _REFUSE = 0x80000000, 0x00050000
# Answers to a call; for one that is trapped the process gets SIGSYS.
ALLOWED, TRAPPED, REFUSED = 0x7FFF0000, 0x00030000, _REFUSE | errno.EPERM
_MISSING = _REFUSE | errno.ENOSYS  # the kernel has no such call
ALL_BITS = 0xFFFFFFFF

_Line = tuple[int, int, int, int]


class Argument(NamedTuple):
    """An argument of a system call, and the value that ``bits`` of its lower half must have."""

    place: int
    value: int
    bits: int = ALL_BITS


class Way(NamedTuple):
    """Arguments with which a call gets an answer."""

    arguments: tuple[Argument, ...] = ()
    answer: int = ALLOWED


# By the name of the call: the first way that fits decides, and without one EPERM does.
_Calls = Mapping[str, tuple[Way, ...]]
_FREE, _ABSENT = (Way(),), (Way(answer=_MISSING),)
# Its flags lie in memory, where a filter cannot look: the C library falls back to clone().
_NO_CLONE3 = {"clone3": _ABSENT}


def _if(place: int, value: int, bits: int = ALL_BITS, answer: int = ALLOWED) -> Way:
    return Way((Argument(place, value, bits),), answer)


def open_filter(
    *, namespaces: bool = True, signals: bool = True, truncates: bool = True
) -> int | None:
    """A descriptor to read a program's filter from; None for a machine that is not known here.

    ``namespaces`` separate the program from its user's other processes and files. Where there are
    none, more calls are refused: every one that signals, unless something else confines
    ``signals``, and those that shorten a file which is open for reading only, unless something
    else confines ``truncates``.
    """
    denied = [*_DENIED, *(() if namespaces else _DENIED_AMONG_OTHERS)]
    denied += () if signals else _SIGNALLING
    calls: dict[str, tuple[Way, ...]] = {
        **_NO_CLONE3,
        "socket": (_if(0, _AF_UNIX),),
        "clone": (_if(0, 0, _NEW_NAMESPACES),),
    }
    if not namespaces:
        # Its own limits only. A descriptor can signal its owner, hold up others who open the file,
        # and watch a folder.
        watching = (_if(1, command, answer=REFUSED) for command in _FCNTL_DENIED)
        calls |= {"prlimit64": (_if(0, 0),), "fcntl": (*watching, Way())}
    if not truncates:
        calls |= {"truncate": (), "openat2": _ABSENT}
        for call, flags in (("open", 1), ("openat", 2)):  # O_TRUNC without the right to write
            shortening = (_if(flags, _O_TRUNC | mode, _O_TRUNC | 3, REFUSED) for mode in (0, 3))
            calls[call] = (*shortening, Way())
    calls |= dict.fromkeys(denied, ())  # also socket, where it is among them
    program = _packed(calls, ALLOWED, newer=namespaces)
    if program is None:
        return None
    descriptor = os.memfd_create("filter")
    os.write(descriptor, program)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _packed(calls: _Calls, otherwise: int, *, newer: bool = True) -> bytes | None:
    """An array of struct sock_filter. newer: calls that nobody knows yet get ``otherwise``, too."""
    machine = platform.machine()
    if machine not in _MACHINES:
        return None
    audit, numbers = _MACHINES[machine], {row["name"]: row[machine] for row in _TABLE}
    # Whoever calls as another architecture would is ended.
    lines: list[_Line] = [(_LOAD, 0, 0, _MACHINE), (_EQUAL, 1, 0, audit), (_RETURN, 0, 0, _KILL)]
    lines.append((_LOAD, 0, 0, _NUMBER))
    if machine == "x86_64":
        lines += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    if not newer:
        lines += [(_AT_LEAST, 0, 1, _UNKNOWN), (_RETURN, 0, 0, _MISSING)]
    for name, ways in calls.items():
        if numbers[name]:
            block = [line for way in ways for line in _way(way)]
            refusal = (_RETURN, 0, 0, REFUSED)
            lines += [(_EQUAL, 0, len(block) + 1, int(numbers[name])), *block, refusal]
    return b"".join(struct.pack("=HBBI", *line) for line in (*lines, (_RETURN, 0, 0, otherwise)))


def _way(way: Way) -> list[_Line]:
    """Ends the filter if all of a way's arguments fit."""
    lines: list[_Line] = [(_RETURN, 0, 0, way.answer)]
    for argument in reversed(way.arguments):
        lines[:0] = [
            (_LOAD, 0, 0, _ARGUMENT + 8 * argument.place),
            (_AND, 0, 0, argument.bits),
            (_EQUAL, 0, len(lines), argument.value),
        ]
    return lines


# --- lockdown ----------------------------------------------------------------------------------

REPLY_FD, LIBRARY_FD = 3, 4  # of a recorder's child
OWN_PROCESS = 0xFFFFFFFF  # stands for the number of a recorder's child, which cage.cpp fills in

_ANONYMOUS, _HUGE_POOL = 0x20, 0x40000  # MAP_ANONYMOUS, MAP_HUGETLB: pages of the whole machine
_KEEP_THE_OLD = 4  # MREMAP_DONTUNMAP
_EXECUTABLE = 4  # PROT_EXEC
_NEW_THREAD = 0x00010000  # CLONE_THREAD
_DONT_NEED, _HUGE = 4, 14  # of madvise: memory that is given back, or is to have large pages
_CLOSE_ON_EXEC, _FILE_CLOSES = 0x80000, 1  # O_CLOEXEC, MFD_CLOEXEC
_WRITING = ("write", "writev", "lseek")  # stdio asks for the last one first
_CLOCKS = ("clock_gettime", "clock_getres", "clock_nanosleep")
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_DEATH_SIGNAL, _SET_NO_NEW_PRIVILEGES = 1, 38  # prctl
_SET_FILTER, _ALL_THREADS = 1, 1

# Of the filters that refuse every other call, by EPERM: a library which can do without goes on.
_COMMON: _Calls = {
    **_NO_CLONE3,
    **dict.fromkeys(_COMPUTING, _FREE),
    "mremap": (_if(3, 0, _KEEP_THE_OLD),),
    "madvise": (_if(2, _DONT_NEED), _if(2, _HUGE)),
    # The first sixteen are everybody's and its own; the others are of some process or device.
    **dict.fromkeys(_CLOCKS, (_if(0, 0, ALL_BITS & ~15),)),
}


def _signals_to(process: int) -> tuple[Way, Way]:
    """Let raise() and abort() through, but for SIGKILL, which means that somebody else ended it. Of
    signals up to 31 each can wait once; how many others may wait, all processes of a user share."""
    at_most_31 = Argument(2, 0, ALL_BITS & ~31)
    never = _if(2, signal.SIGKILL, answer=REFUSED)
    return never, Way((Argument(0, process), at_most_31))


def host_code_filter() -> bytes:
    """The filter of a recorder's child; empty for a machine that is not known here."""
    of_library, kinds = _if(0, LIBRARY_FD), _ANONYMOUS | _HUGE_POOL
    copied = Way((Argument(4, LIBRARY_FD), Argument(3, 0, kinds)))
    calls = {
        **_COMMON,
        "mprotect": _FREE,
        **dict.fromkeys(_WRITING, (_if(0, 0, ALL_BITS & ~REPLY_FD),)),
        "tgkill": _signals_to(OWN_PROCESS),
        # How the dynamic loader reads the library; it closes it before any code of it runs.
        **dict.fromkeys(("read", "pread64", "fstat"), (of_library,)),
        "newfstatat": (of_library._replace(answer=TRAPPED),),
        "openat": (_if(2, _CLOSE_ON_EXEC, answer=TRAPPED),),
        "mmap": (_if(3, _ANONYMOUS, kinds), copied),
    }
    return _packed(calls, REFUSED) or b""


def _simulators_filter() -> bytes | None:
    """For this process, whose threads may also abort it. None of its memory can be made code."""
    not_code = Argument(2, 0, _EXECUTABLE)
    calls = {
        **_COMMON,
        **dict.fromkeys(_COMPUTING_IN_THREADS, _FREE),
        "read": (_if(0, 0),),
        "memfd_create": (_if(1, 0, ALL_BITS & ~_FILE_CLOSES),),
        "mmap": (Way((not_code, Argument(3, 0, _HUGE_POOL))),),
        "mprotect": (Way((not_code,)),),
        "tgkill": _signals_to(os.getpid()),
        "clone": (_if(0, _NEW_THREAD, _NEW_THREAD),),
    }
    return _packed(calls, REFUSED)


def macros() -> tuple[str, ...]:
    """The recorder's part of it, as options of its compiler."""
    figures = {"REPLY_FD": REPLY_FD, "LIBRARY_FD": LIBRARY_FD, "OWN_PROCESS": f"{OWN_PROCESS}u"}
    return tuple(f"-D{name}={value}" for name, value in figures.items())


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_char_p))


def lock_down(*, filtered: bool) -> None:
    """Leave this process only computation, for good. Call it when everything is loaded. From now
    on the process ends with the thread that started it. Raises MachineError if the kernel refuses
    the filter, unless the sandbox is not ``filtered``: then its other protections remain."""
    _take_all_pages()
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    library.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    lines = _simulators_filter()
    if lines is None:
        return
    given = _Program(len(lines) // 8, lines)
    number = _SECCOMP[platform.machine()]
    if library.syscall(number, _SET_FILTER, _ALL_THREADS, ctypes.byref(given)) and filtered:
        reason = verbatim(os.strerror(ctypes.get_errno()))
        raise MachineError.saying(
            "the kernel refuses the simulator's filter of system calls: {reason}", reason=reason
        )


def _take_all_pages() -> None:
    """Read a byte of every page that is mapped from a file: no later use of one shows in the page
    cache."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, permissions, _, _, inode, *_ = line.split()
        if inode != "0" and permissions[0] == "r":
            start, end = (int(address, 16) for address in span.split("-"))
            mapped = memoryview((ctypes.c_ubyte * (end - start)).from_address(start))
            mapped[:: mmap.PAGESIZE].tobytes()
