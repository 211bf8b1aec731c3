"""What a plan may come to and where its allocations lie.

The recorder is compiled with these figures and stops at them with a message that names the one
that was passed; check.py holds every plan to them again, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

MAX_LAUNCHES = 10_000
MAX_TRANSFERS = 10_000  # memsets, copies and symbol writes
MAX_ALLOCATIONS = 1024  # A, B, C and symbols whose address was asked for included
MAX_PLAN_BYTES = 8 << 20  # of the plan as JSON: parameters, symbol data, every name

# The arena lies where neither programs nor libraries are mapped and where a driver lets us map
# device memory; the upper half of its addresses is no likely integer. Allocations are so far apart
# that an index gone wrong by 31 bits reaches no neighbour.
RED_ZONE = 1024  # bytes on either side of an allocation that belong to nobody
FIRST_ADDRESS = 0x6A5D_0000_0000 + RED_ZONE
STRIDE = 4 << 30
ARENA_BYTES = 1 << 43
# An address this far before an allocation or past its end still counts as a pointer into it.
REACH = 1 << 30


def addresses(sizes: Iterable[int]) -> Iterator[int]:
    """Where allocations of these sizes lie, in this order. plan.cpp does the same."""
    at = FIRST_ADDRESS
    for size in sizes:
        yield at
        at += -(-(size + STRIDE // 2) // STRIDE) * STRIDE


def macros() -> tuple[str, ...]:
    """The same figures as options of the recorder's compiler."""
    figures = {
        "MAX_LAUNCHES": MAX_LAUNCHES,
        "MAX_TRANSFERS": MAX_TRANSFERS,
        "MAX_ALLOCATIONS": MAX_ALLOCATIONS,
        "MAX_PLAN_BYTES": MAX_PLAN_BYTES,
        "FIRST_ADDRESS": FIRST_ADDRESS,
        "STRIDE": STRIDE,
        "ARENA_BYTES": ARENA_BYTES,
        "REACH": REACH,
    }
    return tuple(f"-D{name}={value}ull" for name, value in figures.items())
