"""In which order the sizes of a submission run on a GPU."""

from __future__ import annotations

from collections.abc import Sequence, Set

from grader.backends.protocol import PlannedCase
from grader.model import Record

_SMALLER = 2  # times, at least: then there is room for the next worker's context


class Stages(Record):
    first: tuple[PlannedCase, ...]  # verified; the worker before this one may still be ending
    timed: tuple[PlannedCase, ...]  # with what is verified between or after timed ones
    last: tuple[PlannedCase, ...]  # verified; the next worker may make its context


def in_stages(cases: Sequence[PlannedCase], timed: Set[str], *, put_off: bool) -> Stages:
    """cases: in increasing order. put_off: whether some may run last, for the sake of the next
    worker: the larger half of those before the first timed one."""
    at = next((i for i, case in enumerate(cases) if case.id in timed), len(cases))
    before, others = tuple(cases[:at]), tuple(cases[at:])
    if not put_off or not others:
        return Stages(first=before, timed=others, last=())
    most = max(_bytes(case) for case in others if case.id in timed) // _SMALLER
    half = len(before) - len(before) // 2
    last = tuple(case for case in before[half:] if _bytes(case) <= most)
    first = tuple(case for case in before if case not in last)
    return Stages(first=first, timed=others, last=last)


def _bytes(case: PlannedCase) -> int:
    return sum(each.size for each in case.plan.allocations)
