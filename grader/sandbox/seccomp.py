"""The system calls that a sandboxed program may not make, as filters for the kernel.

Compilers need only processes and files: no network beyond local sockets, no other namespaces, no
access to other processes, and no administrative calls. What runs students' code may do far less:
the second part lists what is left.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import signal
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from grader.base import MachineError
from ptxsim.message import phrase, verbatim

# --- numbers on x86-64 and on aarch64; -1 where the machine has no such call ----------------------

DENIED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "iopl": (172, -1),
    "ioperm": (173, -1),
    "fanotify_init": (300, 262),
    "vhangup": (153, 58),
}
# Beyond that, where no namespaces separate a program from other processes and files of its user.
DENIED_AMONG_OTHERS = {
    # a local socket reaches every server of the machine
    "socket": (41, 198),
    "socketpair": (53, 199),
    # attributes of files, which Landlock leaves alone
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, -1),
    "fchown": (93, 55),
    "lchown": (94, -1),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "utime": (132, -1),
    "utimes": (235, -1),
    "futimesat": (261, -1),
    "utimensat": (280, 88),
    # a watch on a folder tells the names in it
    "inotify_init": (253, -1),
    "inotify_init1": (294, 26),
    # System V's memory, semaphores and queues, POSIX's queues: none is a file
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "semctl": (66, 191),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    # how other processes run
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "pidfd_open": (434, 434),
}
SIGNALLING = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
# What computation needs once everything is in memory, whatever the arguments; below stand the
# calls of which only some arguments will do.
COMPUTING = {
    "munmap": (11, 215),
    "brk": (12, 214),
    "futex": (202, 98),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "time": (201, -1),
    "getrandom": (318, 278),
    "close": (3, 57),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
# Beyond that, what the simulator needs for its threads and for what it writes into its own files.
COMPUTING_IN_THREADS = {
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "sched_yield": (24, 124),
    "write": (1, 64),
}

# --- filters -------------------------------------------------------------------------------------

_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}  # audit number, column below
_PRLIMIT, _FCNTL, _SOCKET, _CLONE = (302, 261), (72, 25), (41, 198), (56, 220)
_TRUNCATE, _OPEN, _OPENAT, _OPENAT2, _CLONE3 = (76, 45), (2, -1), (257, 56), (437, 437), (435, 435)
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


class SystemCall(NamedTuple):
    """A system call by its numbers; the first way that fits decides, and without one EPERM does."""

    numbers: tuple[int, int]
    ways: tuple[Way, ...] = (Way(),)


# Its flags lie in memory, where a filter cannot look: the C library falls back to clone().
_NO_CLONE3 = SystemCall(_CLONE3, (Way(answer=_MISSING),))


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
    denied = [*DENIED.values(), *(() if namespaces else DENIED_AMONG_OTHERS.values())]
    denied += () if signals else SIGNALLING.values()
    calls = [SystemCall(numbers, ()) for numbers in denied]
    if not namespaces:
        # Its own limits only. A descriptor can signal its owner, hold up others who open the file,
        # and watch a folder.
        watching = (_if(1, command, answer=REFUSED) for command in _FCNTL_DENIED)
        calls += [SystemCall(_PRLIMIT, (_if(0, 0),)), SystemCall(_FCNTL, (*watching, Way()))]
    if not truncates:
        calls += [SystemCall(_TRUNCATE, ()), SystemCall(_OPENAT2, (Way(answer=_MISSING),))]
        for call, flags in ((_OPEN, 1), (_OPENAT, 2)):  # O_TRUNC without the right to write
            shortening = (_if(flags, _O_TRUNC | mode, _O_TRUNC | 3, REFUSED) for mode in (0, 3))
            calls.append(SystemCall(call, (*shortening, Way())))
    calls += [
        _NO_CLONE3,
        SystemCall(_SOCKET, (_if(0, _AF_UNIX),)),
        SystemCall(_CLONE, (_if(0, 0, _NEW_NAMESPACES),)),
    ]
    program = _packed(calls, ALLOWED, newer=namespaces)
    if program is None:
        return None
    descriptor = os.memfd_create("filter")
    os.write(descriptor, program)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _packed(calls: Sequence[SystemCall], otherwise: int, *, newer: bool = True) -> bytes | None:
    """An array of struct sock_filter. newer: calls that nobody knows yet get ``otherwise``, too."""
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return None
    audit, column = machine
    # Whoever calls as another architecture would is ended.
    lines: list[_Line] = [(_LOAD, 0, 0, _MACHINE), (_EQUAL, 1, 0, audit), (_RETURN, 0, 0, _KILL)]
    lines.append((_LOAD, 0, 0, _NUMBER))
    if column == 0:
        lines += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    if not newer:
        lines += [(_AT_LEAST, 0, 1, _UNKNOWN), (_RETURN, 0, 0, _MISSING)]
    for numbers, ways in calls:
        if numbers[column] >= 0:
            block = [line for way in ways for line in _way(way)]
            refusal = (_RETURN, 0, 0, REFUSED)
            lines += [(_EQUAL, 0, len(block) + 1, numbers[column]), *block, refusal]
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
_READ, _READ_AT = (0, 63), (17, 67)
_WRITING = ((1, 64), (20, 66), (8, 62))  # write, writev, lseek, which stdio asks for first
_STATE, _STATE_AT, _MEMORY_FILE = (5, 80), (262, 79), (319, 279)
_MAP, _REMAP, _PROTECT, _ADVISE = (9, 222), (25, 216), (10, 226), (28, 233)
_CLOCKS = ((228, 113), (229, 114), (230, 115))  # clock_gettime, clock_getres, clock_nanosleep
_SIGNAL = (234, 131)  # tgkill
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_DEATH_SIGNAL, _SET_NO_NEW_PRIVILEGES = 1, 38  # prctl
_SET_FILTER, _ALL_THREADS = 1, 1

# Of the filters that refuse every other call, by EPERM: a library which can do without goes on.
_COMMON = (
    _NO_CLONE3,
    *(SystemCall(numbers) for numbers in COMPUTING.values()),
    SystemCall(_REMAP, (_if(3, 0, _KEEP_THE_OLD),)),
    SystemCall(_ADVISE, (_if(2, _DONT_NEED), _if(2, _HUGE))),
    # The first sixteen are everybody's and its own; the others are of some process or device.
    *(SystemCall(numbers, (_if(0, 0, ALL_BITS & ~15),)) for numbers in _CLOCKS),
)


def _signals_to(process: int) -> SystemCall:
    """Let raise() and abort() through, but for SIGKILL, which means that somebody else ended it. Of
    signals up to 31 each can wait once; how many others may wait, all processes of a user share."""
    at_most_31 = Argument(2, 0, ALL_BITS & ~31)
    never = _if(2, signal.SIGKILL, answer=REFUSED)
    return SystemCall(_SIGNAL, (never, Way((Argument(0, process), at_most_31))))


def host_code_filter() -> bytes:
    """The filter of a recorder's child; empty for a machine that is not known here."""
    of_library, kinds = _if(0, LIBRARY_FD), _ANONYMOUS | _HUGE_POOL
    copied = Way((Argument(4, LIBRARY_FD), Argument(3, 0, kinds)))
    calls = (
        *_COMMON,
        SystemCall(_PROTECT),
        *(SystemCall(numbers, (_if(0, 0, ALL_BITS & ~REPLY_FD),)) for numbers in _WRITING),
        _signals_to(OWN_PROCESS),
        # How the dynamic loader reads the library; it closes it before any code of it runs.
        *(SystemCall(numbers, (of_library,)) for numbers in (_READ, _READ_AT, _STATE)),
        SystemCall(_STATE_AT, (of_library._replace(answer=TRAPPED),)),
        SystemCall(_OPENAT, (_if(2, _CLOSE_ON_EXEC, answer=TRAPPED),)),
        SystemCall(_MAP, (_if(3, _ANONYMOUS, kinds), copied)),
    )
    return _packed(calls, REFUSED) or b""


def _simulators_filter() -> bytes | None:
    """For this process, whose threads may also abort it. None of its memory can be made code."""
    not_code = Argument(2, 0, _EXECUTABLE)
    calls = (
        *_COMMON,
        *(SystemCall(numbers) for numbers in COMPUTING_IN_THREADS.values()),
        SystemCall(_READ, (_if(0, 0),)),
        SystemCall(_MEMORY_FILE, (_if(1, 0, ALL_BITS & ~_FILE_CLOSES),)),
        SystemCall(_MAP, (Way((not_code, Argument(3, 0, _HUGE_POOL))),)),
        SystemCall(_PROTECT, (Way((not_code,)),)),
        _signals_to(os.getpid()),
        SystemCall(_CLONE, (_if(0, _NEW_THREAD, _NEW_THREAD),)),
    )
    return _packed(calls, REFUSED)


def macros() -> tuple[str, ...]:
    """The recorder's part of it, as options of its compiler."""
    descriptors = (f"-DREPLY_FD={REPLY_FD}", f"-DLIBRARY_FD={LIBRARY_FD}")
    return (*descriptors, f"-DOWN_PROCESS={OWN_PROCESS}u")


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
        raise MachineError(
            phrase(
                "the kernel refuses the simulator's filter of system calls: {reason}", reason=reason
            )
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
