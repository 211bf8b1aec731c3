"""Runs a launch in several orders of blocks and warps, and says what depends on the order."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ptxsim.findings.finding import Finding, FindingKind, Severity
from ptxsim.findings.reports import merge, with_early
from ptxsim.machine import Machine
from ptxsim.outcome import SimLimits, SimOutcome
from ptxsim.text import phrase

Run = Callable[..., SimOutcome]  # takes turn and seed as Simulator.run does
Arrays = Sequence[NDArray[Any]]
_MOST_SEEDS = 1 << 31
_TOLERANCE = 1e-5
_LEAST = 1e-30  # of floating-point numbers that are usual somewhere: as such, integers are less
_DIFFERS = phrase(
    "{name}[{index}] depends on the order of blocks and warps, which nothing fixes: it is {one} in "
    "the order of their numbers and {other} in another; elements that differ: {count} of {total}"
)
_ORDERS = (
    phrase("in order {number} of {orders}, that of their numbers"),
    phrase("in order {number} of {orders}, the reverse one"),
)
_SEEDED = phrase("in order {number} of {orders}, seed {seed}")


def usual_tolerance(dtype: np.dtype[Any]) -> float:
    """Return the tolerance of results of this type where nobody gives one."""
    steps = 2 * float(np.finfo(dtype).eps) if dtype.kind in "fc" else 0.0
    return max(_TOLERANCE, steps)


def differing(one: NDArray[Any], other: NDArray[Any], tolerance: float) -> dict[str, str | int]:
    """The first element that differs and how many do, for a sentence; {} if none does.

    tolerance: of floating-point elements, relative to the element of ``other`` and to what is usual
    there: where sums cancel, more than their own last digits is lost.
    """
    one, other = one.reshape(-1), other.reshape(-1)
    if one.dtype.kind in "fc" or other.dtype.kind in "fc":
        around = tolerance * _usual_size(other)
        close = np.isclose(_wide(one), _wide(other), tolerance, around, equal_nan=True)
        found = np.flatnonzero(~close)
    else:
        found = np.flatnonzero(one != other)
    if not len(found):
        return {}
    at = int(found[0])
    values = {"one": str(one[at]), "other": str(other[at])}
    return {"index": at, **values, "count": len(found), "total": one.size}


def _wide(values: NDArray[Any]) -> NDArray[Any]:
    """The values in a type that holds a small part of them, too."""
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def _usual_size(values: NDArray[Any]) -> float:
    """Return the lower median of the magnitudes but for zeros; 1 where there are no others."""
    sizes = np.abs(_wide(values))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    middle = (sizes.size - 1) // 2
    return float(np.partition(sizes, middle)[middle]) if sizes.size else 1.0


@dataclass(frozen=True)
class Orders:
    """The order of the numbers, the reverse one, then permutations of blocks and warps."""

    number: int = 1
    seed: int = 1  # of the first permutation
    tolerance: float = _TOLERANCE  # sums in another order are rounded otherwise

    def __post_init__(self) -> None:
        if self.number < 1 or not 1 <= self.seed <= _MOST_SEEDS - self.number:
            raise ValueError(f"{self.number} orders from seed {self.seed}: both must be 1 or more")

    def seed_of(self, number: int) -> int:
        """The seed of an order, counted from 0; 0: it is no permutation."""
        return self.seed + number - 2 if number > 1 else 0

    def naming(self, number: int, findings: Sequence[Finding]) -> Iterator[Finding]:
        """The findings with the order, counted from 0, in which they were seen."""
        words = _ORDERS[number] if number < 2 else _SEEDED.given(seed=self.seed_of(number))
        order = words.given(number=number + 1, orders=self.number)
        return (msgspec.structs.replace(each, order=order) for each in findings)


def in_orders(run: Run, arrays: Arrays, names: Sequence[str], orders: Orders) -> SimOutcome:
    """The outcome of ``run`` in the first order, to which ``arrays`` belong afterwards, with the
    findings of all, and one for each array that came out otherwise in another.

    Where nobody asks for several orders, a launch that synchronises runs in two, and an array that
    differs counts only if reads that nothing orders explain it: a list in another order is right.
    """
    before = [array.copy() for array in arrays]
    first = run()
    if orders.number == 1:
        return _doubted(run, arrays, before, names, orders, first)
    after = [array.copy() for array in arrays]
    findings = list(orders.naming(0, first.findings))
    stopped, early = first.stopped, list(first.early)
    differs = False
    for number in range(1, orders.number):
        _put(arrays, before)
        # The seed alone says what happens in the third order and in all behind it.
        other = run(turn=min(number, 2), seed=orders.seed_of(number))
        seen = list(other.findings)
        early += other.early
        if not stopped and not other.stopped:
            found = _differences(names, after, arrays, orders.tolerance)
            differs |= bool(found)
            seen += found
        findings += orders.naming(number, seen)
        stopped = stopped or other.stopped
    _put(arrays, after)
    told = with_early(_distinct(findings), early if differs else ())
    return replace(first, findings=told, stopped=stopped)


def _doubted(
    run: Run,
    arrays: Arrays,
    before: Arrays,
    names: Sequence[str],
    orders: Orders,
    first: SimOutcome,
) -> SimOutcome:
    """``first``, with what another order shows to be wrong."""
    if first.stopped or not first.synchronises:
        return first
    after = [array.copy() for array in arrays]
    _put(arrays, before)
    other = run(turn=1)
    found = _differences(names, after, arrays, orders.tolerance)
    _put(arrays, after)
    if other.stopped == "time":
        return first
    findings = merge([*first.findings, *other.findings])
    early = [*first.early, *other.early]
    if found and early and not other.stopped:
        findings = with_early([*findings, *found], early)
    return replace(first, findings=findings, stopped=other.stopped)


def in_reverse(
    machine: Machine,
    limits: SimLimits,
    look: Callable[[SimLimits], SimOutcome],
    outcome: SimOutcome,
) -> SimOutcome:
    """The outcome of a launch that was just carried out, with its early reads where the reverse
    order leaves other values in memory, which are then again what this outcome's look made of it.
    """
    if not outcome.early or outcome.stopped:
        return outcome
    after = machine.written()
    if not machine.rewind():
        return outcome
    machine.begin_call(1)
    other = look(limits)
    reversed_ = machine.written()
    machine.begin_call(0)
    machine.undo_looks()
    if other.stopped or all(_alike(data, reversed_.get(at)) for at, data in after.items()):
        return outcome
    return replace(outcome, findings=with_early(outcome.findings, outcome.early))


def _alike(one: NDArray[np.uint8], other: NDArray[np.uint8] | None) -> bool:
    """Whether they hold the same bytes, or likely floating-point numbers but for their rounding."""
    if other is None or np.array_equal(one, other):
        return other is not None
    views = (
        (one.view(dtype), other.view(dtype))
        for dtype in map(np.dtype, ("f4", "f8"))
        if one.size % dtype.itemsize == 0
    )
    return any(
        _LEAST < _usual_size(ours) < 1 / _LEAST and not differing(ours, theirs, _TOLERANCE)
        for ours, theirs in views
    )


def _differences(
    names: Sequence[str], after: Arrays, arrays: Arrays, tolerance: float
) -> list[Finding]:
    """A finding for each array that came out otherwise in another order."""
    pairs = zip(names, after, arrays, strict=True)
    found = {name: differing(one, two, tolerance) for name, one, two in pairs}
    return [
        Finding(
            kind=FindingKind.ORDER,
            severity=Severity.WARNING,
            place=None,
            text=_DIFFERS.given(name=name, **differs),
        )
        for name, differs in found.items()
        if differs
    ]


def _put(arrays: Arrays, values: Arrays) -> None:
    for array, value in zip(arrays, values, strict=True):
        array[...] = value


def _distinct(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The first of those that say the same of one line, or of one array."""
    seen: dict[object, Finding] = {}
    for each in findings:
        said = each.text.args.get("name") if each.kind is FindingKind.ORDER else None
        seen.setdefault((each.kind, each.severity, each.place, said), each)
    return tuple(seen.values())
