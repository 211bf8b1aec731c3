"""The order in which the sizes of a submission run on a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from grader.backends.gpu.stages import in_stages
from grader.backends.protocol import PlannedCase
from tests.support.simulating import planned


def cases(*extents: int) -> list[PlannedCase]:
    return [msgspec.structs.replace(planned(0, m=m), id=str(at)) for at, m in enumerate(extents)]


def staged(
    extents: Sequence[int], timed: set[str], *, put_off: bool = True
) -> tuple[list[str], list[str], list[str]]:
    found = in_stages(cases(*extents), timed, put_off=put_off)
    first, measured, last = (
        [case.id for case in each] for each in (found.first, found.timed, found.last)
    )
    return first, measured, last


def test_half_of_what_is_verified_runs_last() -> None:
    assert staged([1, 2, 3, 4, 5, 1000], {"5"}) == (["0", "1", "2"], ["5"], ["3", "4"])


def test_nothing_is_put_off_that_leaves_no_room_for_another_context() -> None:
    assert staged([1, 2, 3, 700, 1000], {"4"}) == (["0", "1", "3"], ["4"], ["2"])


def test_what_is_larger_than_a_timed_size_keeps_its_place() -> None:
    assert staged([1, 2, 1000, 2000, 3000], {"2"}) == (["0"], ["2", "3", "4"], ["1"])


def test_hidden_sizes_run_after_all_public_ones() -> None:
    assert staged([1, 2, 1000], {"2"}, put_off=False) == (["0", "1"], ["2"], [])


def test_without_a_timed_size_nothing_is_put_off() -> None:
    assert staged([1, 2, 3], set()) == (["0", "1", "2"], [], [])
