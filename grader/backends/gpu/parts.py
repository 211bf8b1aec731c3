"""How long each part of a call takes: its kernels, memsets and copies.

After the scored repetitions a call that consists of several operations is launched a few more
times, one operation after the other on the same stream, with an event after each. What lies between
an operation's end and that of the one before is its time, the gap before it included. Kernels do
not overlap across an event: the parts of a call with programmatic launches may take longer together
than the call. These repetitions have fresh inputs and a flushed L2 like the scored ones, but
nothing of them is scored.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from grader.model import Copy, Launch, Memset, PartTime, SymbolWrite, Write

REPETITIONS = 3
# Of more operations the host could not launch each before the GPU has finished the one before.
MOST_STEPS = 64

Part = tuple[str, bool]  # its name, and whether it is a kernel
Step = tuple[Part, Callable[[], None]]  # what it belongs to, and what launches it


def part_of(operation: object) -> Part:
    """The part that an operation belongs to: one for each kernel, and for what else takes time."""
    if isinstance(operation, Launch):
        return operation.kernel, True
    if isinstance(operation, Memset):
        return "memset", False
    copies = isinstance(operation, Copy | SymbolWrite | Write)
    return "copy" if copies else "host calls", False


def time_parts(
    steps: Sequence[Step],
    repeat: Callable[[Callable[[], None]], object],
    mark: Callable[[], Any],
    elapsed: Callable[[Any, Any], float],
) -> tuple[PartTime, ...]:
    """The parts in order of their first operation; () for a single operation, or for too many.

    repeat: prepares a repetition, calls what it is given, and waits for the GPU. mark: an event on
    the stream, now. elapsed: milliseconds between two events.
    """
    if not 1 < len(steps) <= MOST_STEPS:
        return ()
    seen: dict[Part, list[float]] = defaultdict(list)
    for _ in range(REPETITIONS):
        marks: list[Any] = []

        def launch(marks: list[Any] = marks) -> None:
            marks.append(mark())
            for _, step in steps:
                step()
                marks.append(mark())

        repeat(launch)
        spent: dict[Part, float] = defaultdict(float)
        for (part, _), (before, after) in zip(steps, pairwise(marks), strict=True):
            spent[part] += elapsed(before, after)
        for part, milliseconds in spent.items():
            seen[part].append(milliseconds)
    parts = [part for part, _ in steps]
    return tuple(
        PartTime(name=part[0], kernel=part[1], times=parts.count(part), ms=statistics.median(each))
        for part, each in seen.items()
    )
