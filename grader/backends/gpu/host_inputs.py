"""Inputs on the host, from their keys, in a process that owns a GPU: any elements, and fast.

NumPy takes some 20 ns for a word of a key stream, and makes sixteen to get one far from others.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from grader.problems.inputs import Floats, Places, Words, values_of
from grader.problems.operands import Operand
from grader.toolchain.native import Native

KEY_STREAM = Native(
    name="key-stream",
    sources=(Path(__file__).with_name("key_stream.cpp"),),
    shared=True,
    flags=("-O3",),
)


class KeyStreams:
    """The compiled generator. Raises ToolchainError when it cannot be had."""

    def __init__(self) -> None:
        self._words = ctypes.CDLL(str(KEY_STREAM.compiled())).key_stream_words
        self._words.restype = None

    def words(self, key: bytes, places: Places) -> Words:
        """What ``inputs.key_stream`` has at ``places``."""
        flat = np.ascontiguousarray(places, np.int64)
        found = np.empty(flat.shape, np.uint32)
        self._words(
            key,
            flat.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_uint64(flat.size),
            found.ctypes.data_as(ctypes.c_void_p),
        )
        return found


class HostInput:
    """One input: a ``Source``."""

    def __init__(self, streams: KeyStreams, key: bytes, operand: Operand) -> None:
        self._streams = streams
        self._key = key
        self._operand = operand

    def at(self, places: Places) -> Floats:
        return values_of(self._streams.words(self._key, places), self._operand.values)
