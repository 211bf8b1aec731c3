"""In which order the sizes of a submission run on a GPU."""

from __future__ import annotations

from collections.abc import Sequence, Set

from grader.backends.protocol import PlannedCase
from grader.model import Record

# Beside another worker's context run only sizes that take so much less than the operands of the
# largest do. What a submission allocates itself makes a size larger, never the largest one.
_SMALLER = 2
# One in so many of the small sizes is verified before anything is timed: most programs that are
# wrong are wrong there. While the others are verified, the next worker makes its context.
_FIRST = 4


class Stages(Record):
    first: tuple[PlannedCase, ...]  # verified; the worker before this one may still be ending
    alone: tuple[PlannedCase, ...]  # all timed ones, and those beside them
    last: tuple[PlannedCase, ...]  # verified; the next worker may make its context


def in_stages(cases: Sequence[PlannedCase], timed: Set[str], *, put_off: bool) -> Stages:
    """cases: in increasing order. put_off: whether some may run last, for the sake of the next
    worker: three quarters of those before the first timed one."""
    most = max((_bytes(each, each.plan.given) for each in cases), default=0) // _SMALLER
    at = next((i for i, each in enumerate(cases) if each.id in timed or _bytes(each) > most), 0)
    small, alone = tuple(cases[:at]), tuple(cases[at:])
    if not put_off or not any(each.id in timed for each in alone):
        return Stages(first=small, alone=alone, last=())
    before = -(-len(small) // _FIRST)
    return Stages(first=small[:before], alone=alone, last=small[before:])


def _bytes(case: PlannedCase, allocations: int | None = None) -> int:
    """Of all of them, or of so many."""
    return sum(each.size for each in case.plan.allocations[:allocations])
