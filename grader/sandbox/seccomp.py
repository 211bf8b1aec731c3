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

from grader.sandbox.system_calls import ALLOWED, DENIED, DENIED_AMONG_OTHERS, SIGNALLING

_MMAP, _MPROTECT, _TGKILL, _SECCOMP = (9, 222), (10, 226), (234, 131), (317, 277)
_PRLIMIT, _FCNTL = (302, 261), (72, 25)
_FCNTL_DENIED = (8, 10, 15, 1024, 1026)  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY
_TRUNCATE, _OPEN, _OPENAT, _OPENAT2 = (76, 45), (2, -1), (257, 56), 437
_O_TRUNC = 0x200
_UNKNOWN = 470  # and later: calls that are newer than the tables
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
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _MACHINE, _ARGUMENT, _SECOND, _THIRD = 0, 4, 16, 24, 32  # offsets in struct seccomp_data
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_REFUSE = 0x00050000


_REFUSED = (_RETURN, 0, 0, _REFUSE | errno.EPERM)
_ALLOWED_HERE = (_RETURN, 0, 0, _ALLOW)

_Line = tuple[int, int, int, int]


def program(
    *, namespaces: bool = True, signals: bool = True, truncates: bool = True
) -> bytes | None:
    """The filter as an array of struct sock_filter; None for a machine that is not known here.

    ``namespaces`` separate the program from its user's other processes and files. Where there are
    none, more calls are refused: every one that signals, unless something else confines
    ``signals``, and those that shorten a file which is open for reading only, unless something
    else confines ``truncates``.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return None
    audit, column, socket, clone, clone3 = machine
    lines = _right_machine(audit, column)
    denied = {**DENIED, **({} if namespaces else DENIED_AMONG_OTHERS)}
    denied |= {} if signals else SIGNALLING
    for numbers in denied.values():
        if numbers[column] >= 0:
            lines += [(_EQUAL, 0, 1, numbers[column]), _REFUSED]
    if not namespaces:
        lines += _reaching_others(column)
    if not truncates:
        lines += _shortening(column)
    # Its flags lie in memory, where a filter cannot look: the C library falls back to clone().
    lines += [(_EQUAL, 0, 1, clone3), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)]
    lines += [
        *((_EQUAL, 0, 4, socket), (_LOAD, 0, 0, _ARGUMENT), (_EQUAL, 1, 0, _AF_UNIX)),
        *(_REFUSED, _ALLOWED_HERE),
        *((_EQUAL, 0, 3, clone), (_LOAD, 0, 0, _ARGUMENT), (_ANY_BIT, 0, 1, _NEW_NAMESPACES)),
        *(_REFUSED, _ALLOWED_HERE),
    ]
    return _packed(lines)


def _reaching_others(column: int) -> list[_Line]:
    """Refuses the ways to others that lie in an argument, and calls that nobody knows yet."""
    lines = [(_AT_LEAST, 0, 1, _UNKNOWN), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)]
    # Its own limits only.
    lines += [
        *((_EQUAL, 0, 4, _PRLIMIT[column]), (_LOAD, 0, 0, _ARGUMENT), (_EQUAL, 1, 0, 0)),
        *(_REFUSED, _ALLOWED_HERE),
    ]
    # A descriptor can signal its owner, hold up others who open the file, and watch a folder.
    lines += [(_EQUAL, 0, len(_FCNTL_DENIED) + 3, _FCNTL[column]), (_LOAD, 0, 0, _SECOND)]
    for left, what in zip(range(len(_FCNTL_DENIED), 0, -1), _FCNTL_DENIED, strict=True):
        lines.append((_EQUAL, left, 0, what))
    return [*lines, _ALLOWED_HERE, _REFUSED]


def _shortening(column: int) -> list[_Line]:
    """Refuses truncate(), and O_TRUNC without the right to write."""
    lines = [(_EQUAL, 0, 1, _TRUNCATE[column]), _REFUSED]
    # Its flags lie in memory.
    lines += [(_EQUAL, 0, 1, _OPENAT2), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)]
    for number, flags in ((_OPEN[column], _SECOND), (_OPENAT[column], _THIRD)):
        if number >= 0:
            lines += [
                *((_EQUAL, 0, 6, number), (_LOAD, 0, 0, flags), (_AND, 0, 0, _O_TRUNC | 3)),
                *((_EQUAL, 1, 0, _O_TRUNC), (_EQUAL, 0, 1, _O_TRUNC | 3), _REFUSED),
                _ALLOWED_HERE,
            ]
    return lines


def opened(program: bytes | None) -> int | None:
    """A descriptor to read ``program`` from."""
    if program is None:
        return None
    descriptor = os.memfd_create("filter")
    os.write(descriptor, program)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _computing_only() -> bytes | None:
    """For this process, whose threads may also abort it."""
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return None
    audit, column, _, clone, clone3 = machine
    lines = _right_machine(audit, column)
    for numbers in ALLOWED.values():
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
