"""What the benchmark of a class sees of a GPU that two submissions use at once."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.timeline import Turn, beside_timing

FIRST = Turn(
    student="ann",
    process=0,
    loaded=1,
    asked=1,
    context=(1, 2),
    cases=(2, 9),
    timing=(4, 7),
    timed=3,
    verified=4,
    ending=9,
    gone=10,
)
NEXT = msgspec.structs.replace(
    FIRST, student="ben", context=(7, 8), cases=(9, 16), timing=(11, 14), ending=16, gone=17
)


def test_turns_that_overlap_as_they_may() -> None:
    assert beside_timing([FIRST, NEXT]) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"context": (6.5, 8)}, "ben made its context while ann was timed"),
        ({"cases": (6.5, 16)}, "ben ran while ann was timed"),
        ({"timing": (9.5, 14)}, "ann ended while ben was timed"),
    ],
)
def test_what_may_not_be(change: dict[str, tuple[float, float]], says: str) -> None:
    assert beside_timing([FIRST, msgspec.structs.replace(NEXT, **change)]) == [says]
