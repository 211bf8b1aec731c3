"""The system calls that a sandboxed program may not make, as filters for the kernel.

Compilers need only processes and files: no network beyond local sockets, no other namespaces, no
access to other processes, and no administrative calls. The recorder's children,
which run the students' host code, forbid more (record/cudart/child.cpp). The
processes that interpret device code have everything they need before they see any of it:
``lock_down`` leaves them memory, threads, clocks and their open pipes.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import struct

# Of x86-64 and of aarch64; -1 where the machine has no such call.
_DENIED = {
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
# The calls that computation needs once everything is loaded and every file open.
_ALLOWED = {
    "read": (0, 63),
    "write": (1, 64),
    "readv": (19, 65),
    "writev": (20, 66),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "poll": (7, -1),
    "ppoll": (271, 73),
    "select": (23, -1),
    "pselect6": (270, 72),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "brk": (12, 214),
    "memfd_create": (319, 279),
    "membarrier": (324, 283),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "futex": (202, 98),
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "getcpu": (309, 168),
    "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "gettimeofday": (96, 169),
    "getrusage": (98, 165),
    "times": (100, 153),
    "getrandom": (318, 278),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
_MMAP, _MPROTECT, _TGKILL, _SECCOMP = (9, 222), (10, 226), (234, 131), (317, 277)
_MACHINES = {  # audit number, column above, socket(), clone(), clone3()
    "x86_64": (0xC000003E, 0, 41, 56, 435),
    "aarch64": (0xC00000B7, 1, 198, 220, 435),
}
_AF_UNIX = 1
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEW*
_NEW_THREAD = 0x00010000  # CLONE_THREAD
_EXECUTABLE = 4  # PROT_EXEC
_SET_DEATH_SIGNAL, _SET_NO_NEW_PRIVILEGES = 1, 38  # prctl
_SET_FILTER, _ALL_THREADS = 1, 1
_X32 = 0x40000000

# Classic BPF: what is done, and with what.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE, _ARGUMENT, _THIRD = 0, 4, 16, 32  # offsets in struct seccomp_data
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_REFUSE = 0x00050000


_REFUSED = (_RETURN, 0, 0, _REFUSE | errno.EPERM)
_ALLOWED_HERE = (_RETURN, 0, 0, _ALLOW)

_Line = tuple[int, int, int, int]


def program() -> bytes | None:
    """The filter as an array of struct sock_filter; None for a machine that is not known here."""
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return None
    audit, column, socket, clone, clone3 = machine
    lines = _right_machine(audit, column)
    for numbers in _DENIED.values():
        if numbers[column] >= 0:
            lines += [(_EQUAL, 0, 1, numbers[column]), _REFUSED]
    # Its flags lie in memory, where a filter cannot look: the C library falls back to clone().
    lines += [(_EQUAL, 0, 1, clone3), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)]
    lines += [
        *((_EQUAL, 0, 4, socket), (_LOAD, 0, 0, _ARGUMENT), (_EQUAL, 1, 0, _AF_UNIX)),
        *(_REFUSED, _ALLOWED_HERE),
        *((_EQUAL, 0, 3, clone), (_LOAD, 0, 0, _ARGUMENT), (_ANY_BIT, 0, 1, _NEW_NAMESPACES)),
        *(_REFUSED, _ALLOWED_HERE),
    ]
    return _packed(lines)


def _computing_only() -> bytes | None:
    """For this process, whose threads may also abort it."""
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return None
    audit, column, _, clone, clone3 = machine
    lines = _right_machine(audit, column)
    for numbers in _ALLOWED.values():
        if numbers[column] >= 0:
            lines += [(_EQUAL, 0, 1, numbers[column]), _ALLOWED_HERE]
    lines += [(_EQUAL, 0, 1, clone3), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)]
    lines += [
        *((_EQUAL, 0, 4, clone), (_LOAD, 0, 0, _ARGUMENT), (_ANY_BIT, 0, 1, _NEW_THREAD)),
        *(_ALLOWED_HERE, _REFUSED),
    ]
    for call in (_MMAP, _MPROTECT):
        lines += [(_EQUAL, 0, 4, call[column]), (_LOAD, 0, 0, _THIRD)]
        lines += [(_ANY_BIT, 0, 1, _EXECUTABLE), _REFUSED, _ALLOWED_HERE]
    lines += [
        *((_EQUAL, 0, 3, _TGKILL[column]), (_LOAD, 0, 0, _ARGUMENT), (_EQUAL, 0, 1, os.getpid())),
        *(_ALLOWED_HERE, _REFUSED),
    ]
    return _packed(lines)


def _right_machine(audit: int, column: int) -> list[_Line]:
    """Ends a process that calls as another architecture would; loads the number of the call."""
    lines = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if column == 0:
        lines += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    return lines


def _packed(lines: list[_Line]) -> bytes:
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_char_p))


def lock_down() -> None:
    """Leave this process only computation: it can open no file or socket and start no process.

    Call it when everything is loaded. It cannot be undone. If the kernel has no such filter, the
    sandbox's other protections remain. From now on the process ends with the thread that
    started it.
    """
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    library.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    machine, lines = _MACHINES.get(platform.machine()), _computing_only()
    if machine is None or lines is None:
        return
    given = _Program(len(lines) // 8, lines)
    library.syscall(_SECCOMP[machine[1]], _SET_FILTER, _ALL_THREADS, ctypes.byref(given))
