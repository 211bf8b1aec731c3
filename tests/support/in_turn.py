"""Which of many similar cases a run tries: some of them always, all with ``--all``."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

Case = TypeVar("Case")
EVERY = 12


def in_turn(place: int) -> bool:
    """Whether the case at this place of a list is tried in every run."""
    return place % EVERY == 0


def some(
    cases: Iterable[Case],
    name: Callable[[Case], str],
    kind: Callable[[Case], Hashable] = lambda _: None,
    more: Sequence[pytest.MarkDecorator] = (),
) -> list[ParameterSet]:
    """The cases under their names; but for the first of each kind and every twelfth marked slow."""
    seen: set[Hashable] = set()
    found = []
    for place, each in enumerate(cases):
        always = in_turn(place) or kind(each) not in seen
        seen.add(kind(each))
        marks = [*more, *([] if always else [pytest.mark.slow])]
        found.append(pytest.param(each, id=name(each), marks=marks))
    return found
