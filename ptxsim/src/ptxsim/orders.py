"""Runs a launch in several orders of blocks and warps, and says what depends on the order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxsim.findings.finding import Finding, Kind, Severity
from ptxsim.message import Message, phrase
from ptxsim.outcome import SimOutcome

Run = Callable[[int, int], SimOutcome]  # by turn and seed, as Simulator.run takes them
Arrays = Mapping[str, NDArray[Any]]
_MOST_SEEDS = 1 << 31


@dataclass(frozen=True)
class Difference:
    """The first element in which two arrays differ."""

    index: int
    one: object
    other: object
    count: int  # of elements that differ
    total: int

    def of(self, one: str, other: str) -> str:
        return (
            f"[{self.index}]: {one} is {self.one}, {other} has {self.other} "
            f"({self.count} of {self.total} elements differ)"
        )


def first_difference(
    one: NDArray[Any], other: NDArray[Any], tolerance: float, equal_nan: bool = False
) -> Difference | None:
    """tolerance: of floating-point elements, absolute and relative to ``other``'s."""
    one, other = one.reshape(-1), other.reshape(-1)
    if one.dtype.kind in "fc" or other.dtype.kind in "fc":
        same = np.isclose(one, other, tolerance, tolerance, equal_nan)
    else:
        same = one == other
    if same.all():
        return None
    first = int(np.argmin(same))
    return Difference(first, one[first], other[first], int((~same).sum()), one.size)


@dataclass(frozen=True)
class Orders:
    """The order of the numbers, the reverse one, then permutations of blocks and warps."""

    number: int = 1
    seed: int = 1  # of the first permutation
    tolerance: float = 1e-5  # of floating point: sums in another order are rounded otherwise

    def __post_init__(self) -> None:
        if self.number < 1 or not 1 <= self.seed <= _MOST_SEEDS - self.number:
            raise ValueError(f"{self.number} orders from seed {self.seed}: both must be 1 or more")


def in_orders(run: Run, arrays: Arrays, orders: Orders) -> SimOutcome:
    """The outcome of ``run`` in the first order, to which ``arrays`` belong afterwards, with the
    findings of all, and one for each array that came out otherwise in another."""
    if orders.number == 1:
        return run(0, 0)
    before = {name: array.copy() for name, array in arrays.items()}
    first = run(0, 0)
    after = {name: array.copy() for name, array in arrays.items()}
    findings = list(first.findings)
    stopped = first.stopped
    for number in range(1, orders.number):
        _put(arrays, before)
        chosen = orders.seed + number - 2 if number > 1 else 0
        other = run(number, chosen)
        if not stopped and not other.stopped:
            findings += _differences(after, arrays, chosen, orders.tolerance)
        findings += other.findings
        stopped = stopped or other.stopped
    _put(arrays, after)
    return replace(first, findings=_distinct(findings), stopped=stopped)


def _put(arrays: Arrays, values: Arrays) -> None:
    for name, array in arrays.items():
        array[...] = values[name]


def _differences(one: Arrays, other: Arrays, seed: int, tolerance: float) -> Iterator[Finding]:
    for name, array in one.items():
        if found := first_difference(array, other[name], tolerance, equal_nan=True):
            yield Finding(
                kind=Kind.ORDER,
                severity=Severity.WARNING,
                place=None,
                text=_sentence(name, found, seed),
            )


def _sentence(name: str, found: Difference, seed: int) -> Message:
    places: dict[str, str | int] = {
        "element": f"{name}[{found.index}]",
        "one": str(found.one),
        "other": str(found.other),
        "count": found.count,
        "total": found.total,
    }
    if not seed:
        return phrase(
            "{element} depends on the order of blocks and warps, which nothing fixes: it is {one} "
            "in the order of their numbers and {other} in the reverse one; {count} of {total} "
            "elements differ",
            **places,
        )
    return phrase(
        "{element} depends on the order of blocks and warps, which nothing fixes: it is {one} in "
        "the order of their numbers and {other} in the order of seed {seed}; {count} of {total} "
        "elements differ",
        seed=seed,
        **places,
    )


def _distinct(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The first of those that say the same of one line, or of one array."""
    seen: dict[object, Finding] = {}
    for each in findings:
        said = each.text.args.get("element") if each.kind is Kind.ORDER else None
        seen.setdefault((each.kind, each.severity, each.place, said), each)
    return tuple(seen.values())
