"""What is unordered between streams, and which of it races."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ptxsim.records import Free, Memset, Operation, Synchronise
from ptxsim.streams import (
    READ,
    READ_STRONGLY,
    WRITTEN,
    WRITTEN_STRONGLY,
    Use,
    Watch,
    launch_use,
    rows_use,
    unordered,
)

CELL = 4


def memset(after: tuple[int, ...] | None = None) -> Memset:
    return Memset(allocation=2, delta=0, value=0, size=4, after=after)


@pytest.mark.parametrize(
    ("operations", "rivals"),
    [
        ((memset(), memset(), memset()), [0, 0, 0]),
        ((memset(), memset(()), memset((1,))), [0, 0b1, 0b1]),
        ((memset(), memset(()), memset((2, 1)), memset((1,))), [0, 0b1, 0, 0]),
        ((memset(), memset(()), Synchronise(after=(1,)), memset(())), [0, 1, 1, 1]),
        ((memset(), memset(()), Synchronise(), memset(())), [0, 1, 0, 0]),
        ((memset(), Free(allocation=3), memset(())), [0, 0, 0]),
        ((memset(), Free(allocation=3, ordered=True), memset(())), [0, 0, 0b11]),
        ((memset((7, -1)), memset((2, 0))), [0, 1]),  # forged
    ],
)
def test_what_is_unordered(operations: tuple[Operation, ...], rivals: list[int]) -> None:
    assert unordered(operations) == rivals


STRONG = WRITTEN_STRONGLY


def used(*cells: int) -> Use:
    use = launch_use(0, np.array(cells, np.uint8), CELL)
    assert use is not None
    return use


def rows(start: int, end: int, count: int, pitch: int) -> Use:
    return rows_use(Use(0, start, end, True), count, pitch, CELL)


RACES = [
    ("a read and a write", used(READ), used(WRITTEN), True),
    ("two reads", used(READ), used(READ), False),
    ("two writes", used(WRITTEN), used(WRITTEN), True),
    ("neighbours", used(WRITTEN, 0, WRITTEN), used(0, WRITTEN), False),
    ("the last of several", used(0, READ, 0, READ), used(0, 0, 0, WRITTEN), True),
    ("atomics", used(STRONG), used(STRONG), False),
    (
        "atomics whose results nobody reads, and a race",
        used(STRONG, WRITTEN),
        used(STRONG, READ),
        True,
    ),
    (
        "atomics that may order the rest",
        used(STRONG, WRITTEN),
        used(STRONG | READ_STRONGLY, READ),
        False,
    ),
    ("an atomic and a read", used(STRONG), used(READ), True),
    ("a flag that may order the rest", used(STRONG, WRITTEN), used(READ_STRONGLY, READ), False),
    ("a memset of a part", used(0, READ), Use(0, 5, 9, True), True),
    ("a memset of the rest", used(READ, 0, READ), Use(0, 4, 8, True), False),
    ("a memset and atomics", used(STRONG), Use(0, 0, 4, True), True),
    ("a copy that reads", used(READ), Use(0, 0, 4, False), False),
    ("rows between", used(WRITTEN, 0, 0, WRITTEN), rows(4, 8, 3, 12), False),
    ("rows that meet", used(0, 0, WRITTEN), rows(4, 9, 3, 12), True),
    ("rows beside each other", rows(0, 5, 3, 12), rows(8, 10, 3, 12), False),
    ("rows over each other", rows(0, 8, 3, 12), rows(18, 20, 1, 12), True),
    ("two memsets", Use(0, 0, 6, True), Use(0, 6, 9, True), False),
    ("two memsets that meet", Use(0, 0, 7, True), Use(0, 6, 9, True), True),
    ("elsewhere", Use(0, 0, 7, True), Use(1, 0, 7, True), False),
]


@pytest.mark.parametrize(
    ("one", "other", "race"), [r[1:] for r in RACES], ids=[r[0] for r in RACES]
)
def test_what_races(one: Use, other: Use, race: bool) -> None:
    for first, second in ((one, other), (other, one)):
        watch = Watch((memset(), memset(())), CELL)
        assert watch.watches(0) and watch.watches(1)
        assert watch.races(0, [first]) == []
        assert watch.races(1, [second]) == ([(0, 0)] if race else [])


def test_one_stream_is_not_watched() -> None:
    watch = Watch((memset(), memset()), CELL)
    assert not (watch.watches(0) or watch.watches(1))


def test_thousands_of_streams_are_watched_in_little_time() -> None:
    """The first half comes after nothing, the second after nothing but the last of the first."""
    count = 5000
    operations = tuple(memset(()) for _ in range(count))
    ordered = tuple(memset((place + 1,)) for place in range(count - 1))
    started = time.process_time()
    watch = Watch((*operations, *ordered, memset(())), CELL)
    for place in range(2 * count):
        watch.races(place, (Use(0, 4 * place, 4 * place + 4, True),))
    assert time.process_time() - started < 5
