"""Mistakes that programs of several problems make."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from grader.problems.expected import Cause, Expected
from ptxsim.text import counted

BLOCKS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)  # elements of a block's part


def tails_missing(n: int, of_first: Callable[[int], Expected], tolerance: float) -> Iterator[Cause]:
    """Only whole blocks count. of_first: what so many elements from the first on would give."""
    for kept in sorted({n // block * block for block in BLOCKS} - {0, n}, reverse=True):
        missing = counted(
            "the last of n = {n} elements is missing",
            "the last {count} of n = {n} elements are missing",
            n - kept,
            n=n,
        )
        yield Cause(words=missing, outputs=(of_first(kept),), tolerance=tolerance)
