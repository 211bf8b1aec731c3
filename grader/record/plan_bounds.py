"""The limits of a plan, and the addresses of its allocations.

The recorder is compiled with these figures. If host code exceeds one, the recorder stops with a
message that names it. plan_check.py checks every plan against them again, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxsim.records import MOST_ROWS

CALLS = 3  # of run_custom that are recorded for each size
MAX_LAUNCHES = 10_000  # of one call
MAX_TRANSFERS = 10_000  # memsets, copies, symbol writes and synchronisations of one call
MAX_ALLOCATIONS = 1024  # of all calls, including A, B, C and symbols whose address was requested
MAX_PLAN_BYTES = 8 << 20  # of one call as JSON: parameters, data, every name
MAX_REPLY_BYTES = CALLS * MAX_PLAN_BYTES

# The arena lies where neither programs nor libraries are mapped and where a driver lets us map
# device memory; no likely integer equals the upper half of its addresses. Allocations are so far
# apart that an index wrong by 31 bits reaches no neighbour.
RED_ZONE = 1024  # unused bytes on either side of an allocation
FIRST_ADDRESS = 0x6A5D_0000_0000 + RED_ZONE
STRIDE = 4 << 30
ARENA_BYTES = 1 << 43
# An address this far before an allocation or past its end still counts as a pointer into it.
REACH = 1 << 30


def addresses(sizes: Iterable[int]) -> Iterator[int]:
    """The addresses of allocations of these sizes, in this order. plan.cpp computes the same."""
    at = FIRST_ADDRESS
    for size in sizes:
        yield at
        at += -(-(size + STRIDE // 2) // STRIDE) * STRIDE


def macros() -> tuple[str, ...]:
    """The same figures as options of the recorder's compiler."""
    figures = {
        "CALLS": CALLS,
        "MAX_LAUNCHES": MAX_LAUNCHES,
        "MAX_TRANSFERS": MAX_TRANSFERS,
        "MAX_ALLOCATIONS": MAX_ALLOCATIONS,
        "MAX_PLAN_BYTES": MAX_PLAN_BYTES,
        "MAX_ROWS": MOST_ROWS,
        "MAX_REPLY_BYTES": MAX_REPLY_BYTES,
        "FIRST_ADDRESS": FIRST_ADDRESS,
        "STRIDE": STRIDE,
        "ARENA_BYTES": ARENA_BYTES,
        "REACH": REACH,
    }
    return tuple(f"-D{name}={value}ull" for name, value in figures.items())
