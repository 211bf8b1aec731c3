"""What a kind of fragments is."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxsim import Argument

FRAGMENTS = 512  # of each kind

Words = NDArray[np.uint32]
Arguments = list[Argument]  # of a kernel; the last is the array of its results


@dataclass(frozen=True)
class Kind:
    """Fragments that one launch of one kernel tries, each with a block or a cluster of its own."""

    name: str
    source: str  # the kernel's file, beside this one
    kernel: str
    threads: int
    make: Callable[[np.random.Generator], Arguments]
    blocks: int = FRAGMENTS

    def arguments(self) -> Arguments:
        """The same whenever it is called."""
        return self.make(np.random.default_rng(zlib.crc32(self.name.encode())))


def results(arguments: Arguments) -> NDArray[Any]:
    last = arguments[-1]
    assert isinstance(last, np.ndarray)
    return last
