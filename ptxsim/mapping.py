"""A large array of ones in very little memory: one piece of it, mapped repeatedly."""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref

import numpy as np
import numpy.ctypeslib  # now: later no file can be opened
from numpy.typing import NDArray

_PIECE = 1 << 22  # bytes, a multiple of the page
_FIXED = 0x10  # MAP_FIXED, as Linux has it on every processor
_FAILED = ctypes.c_void_p(-1).value


def ones(size: int) -> NDArray[np.uint8]:
    """At least ``size`` bytes of float32 ones. A page that is written costs memory. Raises
    MemoryError."""
    pieces = max(1, -(-size // _PIECE))
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
    file = os.memfd_create("ones")
    access = mmap.PROT_READ | mmap.PROT_WRITE
    try:
        os.write(file, np.ones(_PIECE // 4, np.float32).tobytes())
        start = libc.mmap(None, pieces * _PIECE, access, mmap.MAP_PRIVATE, file, 0)
        if start == _FAILED:
            raise MemoryError
        for at in range(start + _PIECE, start + pieces * _PIECE, _PIECE):
            libc.mmap(at, _PIECE, access, mmap.MAP_PRIVATE | _FIXED, file, 0)
    finally:
        os.close(file)
    whole = (ctypes.c_uint8 * (pieces * _PIECE)).from_address(start)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    weakref.finalize(whole, libc.munmap, start, pieces * _PIECE)
    return np.ctypeslib.as_array(whole)
