"""Contents of a kernel's output: how much it holds of one operand, by running it on codes.

A kernel that is linear in an operand makes each element a sum of factors times the operand's. Where
the operand holds small whole numbers, weights, in one box of its elements and zeros elsewhere, what
comes out is exact, and is the sum of weights times factors in that box. A box is settled as soon as
a likely pattern makes just this sum: nothing, what was expected, or what was seen in another box of
this shape. Else it is halved. Halves of several boxes share a run, each shifted by as many bits as
its sum needs. So a mistake that repeats in each tile is looked at once, and few runs tell where it
is. If a half holds more than the whole, or no whole number, the kernel is not linear.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Doubles = NDArray[np.float64]

_HEAVIEST = 256  # weights are 1 … 256, and neighbours differ
_FEWEST = 8  # elements of an operand that are in one of the output
_SEEDS = (1, 2)  # of weights: what is likely may make the same sum as what is true
_FINEST = 12  # bits of a factor behind the point, for sums to be exact
_SLACK = 1e-5  # of sums that are not, relative to all
_MOST_TIMES = 8  # that everything may be there
_FURTHEST = 4  # from what is expected, in size, where signs differ
_PATTERNS, _LARGEST_PATTERN = 24, 1 << 16  # that are remembered by shape; elements


class NotLinear(Exception):  # noqa: N818 - a fact about the kernel, not a fault
    """Raised where what came out contradicts itself, or would take more runs than allowed."""


def contents(
    kernel: Callable[[Array], Any],
    operand: Array,
    element: int | Sequence[int],
    *,
    expected: Array | None = None,
    bits: int | None = None,
    most: int = 200,
) -> Doubles:
    """Return the factor of every element of ``operand`` in one element of what ``kernel`` returns,
    in an array of the operand's shape; of several, one array for each.

    kernel: launches on an array like ``operand`` and returns the output; all else that it reads
    must stay the same, and there it must be linear, or linear plus a constant.
    element: its index in the output's memory.
    expected: the factors that should be there, if known: they save runs.
    bits: of whole numbers that sums hold exactly; None: as the types of both arrays have it.
    most: launches.

    Raises NotLinear.
    """
    elements = np.atleast_1d(np.asarray(element, np.int64))
    wanted = None if expected is None else np.asarray(expected, np.float64)
    shape = (elements.size, *operand.shape)
    wanted = None if wanted is None else wanted.reshape(shape)

    def run(values: Doubles) -> Array:
        return np.asarray(kernel(values.astype(operand.dtype))).reshape(-1)

    before = run(np.zeros(operand.shape))
    exact = bits or min(_whole_bits(operand.dtype), _whole_bits(before.dtype))
    constant = before[elements].astype(np.float64)

    def ask(values: Doubles) -> Doubles:
        return run(values)[elements].astype(np.float64) - constant

    negative = wanted is not None and bool((wanted < 0).any())
    why, left = NotLinear(), most - 1
    for signed, seed in sorted(itertools.product({negative, True}, _SEEDS)):
        search = _Search(ask, shape, wanted, exact, left, seed=seed, signed=signed)
        try:
            found = search.measured()
        except NotLinear as failure:
            why, left = failure, search.left
        else:
            return found[0] if np.ndim(element) == 0 else found
    raise why


def _whole_bits(dtype: np.dtype[Any]) -> int:
    """Bits of whole numbers that a type holds exactly."""
    return np.finfo(dtype).nmant + 1 if dtype.kind == "f" else 8 * dtype.itemsize - 1


@dataclass
class _Box:
    """Neighbouring elements of an operand."""

    at: tuple[slice, ...]
    sums: Doubles  # by element of the output: of weights times factors
    open: list[int]  # elements of the output of which the factors are not known
    parent: _Box | None = None
    halves: int = 0  # that are not settled

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(each.stop - each.start for each in self.at)

    def cut(self) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The two halves along the first axis that has some; the first is a power of two long."""
        axis = next(axis for axis, extent in enumerate(self.extents) if extent > 1)
        whole = self.at[axis]
        middle = whole.start + (1 << (self.extents[axis] - 1).bit_length() - 1)
        parts = slice(whole.start, middle), slice(middle, whole.stop)
        first, second = ((*self.at[:axis], part, *self.at[axis + 1 :]) for part in parts)
        return first, second


class _Search:
    def __init__(
        self,
        ask: Callable[[Doubles], Doubles],
        shape: tuple[int, ...],
        expected: Doubles | None,
        bits: int,
        most: int,
        *,
        seed: int,
        signed: bool,
    ) -> None:
        self._ask, self.left, self._bits, self._signed = ask, most, bits, signed
        self._expected = np.zeros(shape) if expected is None else expected
        self._found = np.zeros(shape)
        self._seen: dict[tuple[int, ...], dict[bytes, Doubles]] = {}  # by element and extents
        self._first = seed == _SEEDS[0]
        self._random, self._unit = np.random.default_rng(seed), 0.0
        self._weights = np.ones(shape[1:])

    def measured(self) -> Doubles:
        sums = self._expected.reshape(len(self._found), -1).sum(1)
        self._weigh(sums if self._expected.any() else self._run(self._weights))
        sums = self._run(self._weights)
        if not self._signed and (sums < 0).any():
            raise NotLinear("a sum is negative")
        expected = self._expected[self._expected != 0]
        self._unit = _unit(np.concatenate([sums, expected]))
        if self._unit < 1 and not self._first:  # parts of these may be finer still
            self._unit = 0.0
        self._slack = self._unit / 4 or _SLACK * float(abs(sums).max())
        everything = tuple(slice(0, extent) for extent in self._weights.shape)
        unsettled = [_Box(everything, sums, list(range(len(sums))))]
        while batch := self._batch(unsettled):
            unsettled += reversed(self._halved(batch))
        # Other weights, so that what is likely in all boxes is not taken for what is true.
        self._weigh(abs(self._found).reshape(len(sums), -1).sum(1))
        error = self._run(self._weights) - self._weighed(everything, self._found)
        if not (abs(error) <= self._slack).all():
            raise NotLinear("other inputs come to something else")
        return self._found

    def _weigh(self, sums: Doubles) -> None:
        """Draw weights as large as sums leave room for."""
        room = (1 << self._bits - 1) / max(float(abs(sums).max()), _FEWEST)
        heaviest = min(_HEAVIEST, 1 << max(int(room), 1).bit_length() - 1)
        weights = self._random.integers(1, heaviest + 1, self._weights.size)
        again = weights[1::2] == weights[: weights.size - 1 : 2]
        weights[1::2] = np.where(again, weights[1::2] % heaviest + 1, weights[1::2])
        self._weights = weights.reshape(self._weights.shape).astype(np.float64)

    def _run(self, values: Doubles) -> Doubles:
        self.left -= 1
        if self.left < 0:
            raise NotLinear("it takes too many launches")
        sums = self._ask(values)
        if not np.isfinite(sums).all():
            raise NotLinear("a sum is no number")
        if self._unit and abs(sums).max() >= self._unit * (1 << self._bits):
            raise NotLinear("a sum is not exact")
        return sums

    def _batch(self, unsettled: list[_Box]) -> list[tuple[_Box, int]]:
        """Take the next boxes that share a run, each with its shift."""
        batch: list[tuple[_Box, int]] = []
        used = np.zeros(len(self._found), np.int64)
        while unsettled:
            box = unsettled[-1]
            self._settle(box)
            if box.open:
                needed = self._needed(box)
                shift = int(used[needed > 0].max(initial=0))
                if batch and shift + needed.max() > self._bits:
                    break
                used = np.where(needed > 0, shift + needed, used)
                batch.append((box, shift))
            unsettled.pop()
        return batch

    def _needed(self, box: _Box) -> NDArray[np.int64]:
        """The bits that a half of the box needs, by element of the output."""
        most = abs(box.sums)
        if self._signed:
            most = np.maximum(most, self._weighed(box.at, abs(self._expected) + _FURTHEST))
        if not self._unit:
            return np.where(most > self._slack, self._bits, 0)
        bits = [round(each / self._unit).bit_length() for each in most.tolist()]
        return np.array(bits) + self._signed

    def _halved(self, batch: Sequence[tuple[_Box, int]]) -> list[_Box]:
        values = np.zeros(self._weights.shape)
        firsts = [box.cut()[0] for box, _ in batch]
        for (_, shift), first in zip(batch, firsts, strict=True):
            values[first] += self._weights[first] * 2.0**shift
        sums = [self._weighed(first, self._found) for first in firsts]
        rest = self._run(values)
        for (box, shift), known in zip(batch, sums, strict=True):
            known[box.open] = 0
            rest = rest - known * 2.0**shift
        for (box, shift), known in zip(batch, sums, strict=True):
            needed = self._needed(box)
            for e in box.open:
                known[e] = self._digit(rest[e], shift, int(needed[e]))
                rest[e] -= known[e] * 2.0**shift
        if not (abs(rest) <= self._slack).all():
            raise NotLinear("what is left of a sum is nobody's")
        halves = []
        for (box, _), known in zip(batch, sums, strict=True):
            other = box.sums - known
            if not self._signed and min(known.min(), other.min()) < -self._slack:
                raise NotLinear("a part holds more than the whole")
            box.halves = 2
            parts = zip(box.cut(), (known, other), strict=True)
            halves += [_Box(at, part, [*box.open], box) for at, part in parts]
        return halves

    def _digit(self, rest: float, shift: int, bits: int) -> float:
        """The part of a sum that begins at ``shift``, where only higher ones are left besides."""
        if not self._unit:
            return rest
        whole = round(rest / self._unit)
        if abs(whole * self._unit - rest) > self._slack:
            raise NotLinear("a sum is not whole")
        half = 1 << bits - 1 if self._signed else 0
        return ((((whole >> shift) + half) & (1 << bits) - 1) - half) * self._unit

    def _weighed(self, at: tuple[slice, ...], factors: Doubles) -> Doubles:
        """The sums that a box would have by these factors."""
        weighted: Doubles = self._weights[at] * factors[(slice(None), *at)]
        sums: Doubles = weighted.reshape(len(weighted), -1).sum(1)
        return sums

    # --- what settles a box ---

    def _settle(self, box: _Box) -> None:
        for e in [*box.open]:
            factors = self._likely(e, box)
            if factors is not None:
                self._found[e][box.at] = factors
                self._remember(e, box)
                box.open.remove(e)
        if not box.open:
            self._finish(box)

    def _finish(self, box: _Box) -> None:
        """Note that a box is settled, and what holds it with it."""
        outer = box.parent
        if outer is None:
            return
        outer.halves -= 1
        if not outer.halves:
            for e in outer.open:
                self._remember(e, outer)
            self._finish(outer)

    def _likely(self, e: int, box: _Box) -> Doubles | float | None:
        """Factors that make the sum of a box; None if nothing likely does."""
        total, weights = float(box.sums[e]), self._weights[box.at]
        if weights.size == 1:
            return total / weights
        expected: Doubles = self._expected[e][box.at]
        usual = float((weights * expected).sum())
        cancels = self._signed and (box.parent is None or expected.any())
        if abs(total) <= self._slack and not cancels:
            return 0.0
        for factors in self._seen.get((e, *box.extents), {}).values():
            if abs(float((weights * factors).sum()) - total) <= self._slack:
                return factors
        times = total / usual if usual else 0.0
        if 1 <= round(times) <= _MOST_TIMES and abs(total - round(times) * usual) <= self._slack:
            return round(times) * expected
        part = round(1 / times) if times and box.parent is None else 0
        if part and abs(usual - total * part) <= self._slack:
            return expected / part  # a mean where a sum is asked for, or another sign
        return 1.0 if abs(total - float(weights.sum())) <= self._slack else None

    def _remember(self, e: int, box: _Box) -> None:
        factors = self._found[e][box.at]
        if 2 < factors.size <= _LARGEST_PATTERN and factors.any():
            patterns = self._seen.setdefault((e, *box.extents), {})
            if len(patterns) < _PATTERNS:
                patterns[factors.tobytes()] = factors.copy()


def _unit(values: Doubles) -> float:
    """The power of two of which all values are whole multiples; 0 if it is too small."""
    for bits in range(_FINEST + 1):
        if (np.rint(values * 2.0**bits) == values * 2.0**bits).all():
            return 2.0**-bits
    return 0.0
