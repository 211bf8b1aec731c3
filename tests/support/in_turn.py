"""Which of many similar cases a run tries: a third of them always, all with ``--all``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

Case = TypeVar("Case")


def a_third(cases: Iterable[Case], name: Callable[[Case], str]) -> list[ParameterSet]:
    """The cases under their names, two of three marked slow."""
    return [
        pytest.param(each, id=name(each), marks=[pytest.mark.slow] if place % 3 else [])
        for place, each in enumerate(cases)
    ]
