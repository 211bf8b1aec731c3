"""The order in which the sizes of a submission run on a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from grader.run.gpu.device import in_stages
from grader.run.protocol import PlannedCase
from ptxsim.records import Allocation
from tests.support.bench import planned


def cases(*extents: int) -> list[PlannedCase]:
    return [msgspec.structs.replace(planned(0, m=m), id=str(at)) for at, m in enumerate(extents)]


def staged(extents: Sequence[int], timed: set[str]) -> tuple[str, str, str]:
    found = in_stages(cases(*extents), timed)
    first, alone, last = (
        "".join(case.id for case in stage) for stage in (found.first, found.alone, found.last)
    )
    return first, alone, last


def test_most_of_what_is_verified_runs_last() -> None:
    assert staged([1, 2, 3, 4, 5, 1000], {"5"}) == ("01", "5", "234")
    assert staged([1, 2, 3, 4, 1000], {"4"}) == ("0", "4", "123")


def test_beside_another_context_runs_only_what_leaves_room_for_it() -> None:
    assert staged([1, 2, 3, 700, 1000], {"4"}) == ("0", "34", "12")


def test_what_a_submission_allocates_leaves_no_room() -> None:
    own = Allocation(name="own", address=0, size=1 << 40)
    found = cases(1, 2, 3, 1000)
    plans = [
        msgspec.structs.replace(each.plan, allocations=(*each.plan.allocations, own))
        for each in (found[2], found[3])
    ]
    found[2:] = [
        msgspec.structs.replace(each, plan=plan)
        for each, plan in zip(found[2:], plans, strict=True)
    ]
    stages = in_stages(found, {"3"})
    assert [case.id for case in stages.alone] == ["2", "3"]


def test_what_is_larger_than_a_timed_size_runs_after_it() -> None:
    assert staged([1, 2, 900, 1800, 4000], {"2"}) == ("0", "234", "1")


def test_without_a_timed_size_nothing_is_put_off() -> None:
    assert staged([1, 2, 3000], set()) == ("01", "2", "")
    assert staged([], set()) == ("", "", "")
