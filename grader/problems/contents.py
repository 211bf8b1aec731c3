"""A measurement of what wrong elements hold, and of what they should: a program runs on codes.

A problem says in which operands it is linear. One of them is coded while the others of its group
are zeros and all other linear ones are ones, so that an element is the sum of factors times codes
(``ptxsim.contents``); the reference, asked the same, says which factors are right. Of a product of
two operands a further run with one of them as a code says which factors meet.

Whatever is found must predict the elements at inputs of the usual kind, to rounding: else nothing
is said. So no sentence is false, whatever a program does.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.problems.comparison import measured, worst
from grader.problems.inputs import make_inputs
from grader.problems.operands import Element, Operand
from grader.problems.problem import Problem
from ptxsim import NotLinear, contents
from ptxsim.plan import Size

Array = NDArray[Any]
Doubles = NDArray[np.float64]
# Inputs as stored, and the seconds that are left → outputs as stored.
Run = Callable[[Sequence[Array], float], Sequence[Array]]
Ask = Callable[[Mapping[str, Doubles]], Doubles]  # codes by operand → the output's memory
Pair = tuple[int, int]  # places in the shapes of two operands

_ELEMENTS, _SOUGHT = 4, 64  # that are looked at, of so many
_RUNS, _FREE = 100, 4000  # of a program for one operand; of the reference
_PREDICTED = 4  # times the tolerance: rounding of other sums than the right one
_LEAST, _LEAST_EXTENT = 512, 16  # elements of the largest input, and along each axis of all
_CLOSE, _NEGLIGIBLE = 1e-4, 1e-6  # of factors that no sum holds exactly
_MOST_ELEMENTS = 1 << 20  # of an operand
_UPPER_BITS = 8  # of BF16's whole numbers


@dataclass(frozen=True)
class Held:
    """Factors of one operand in one element."""

    operand: Operand
    want: Doubles  # in the operand's shape
    got: Doubles


@dataclass(frozen=True)
class ElementContents:
    """One wrong element: what it holds."""

    target: Operand
    index: tuple[int, ...]
    held: tuple[Held, ...]  # by linear operand
    constant: float  # what it holds besides, whatever the inputs
    # Of a product of two operands: what meets, in the order of the first, and how often.
    want_pairs: Mapping[Pair, float] = field(default_factory=dict)
    got_pairs: Mapping[Pair, float] = field(default_factory=dict)

    @property
    def wrong(self) -> bool:
        return (
            self.want_pairs != self.got_pairs
            or any(bool((each.want != each.got).any()) for each in self.held)
            or self.constant != 0.0
        )


@dataclass(frozen=True)
class Suspect:
    """One input that is not where it should be."""

    operand: Operand
    index: tuple[int, ...]
    place: int  # in memory
    foreign: bool  # an element has it, and should not; else the element lacks it
    of: ElementContents


def look_into(problem: Problem, size: Size, run: Run, seconds: float) -> list[ElementContents]:
    """Return what up to four wrong elements hold; none where that cannot be known. seconds: of CPU
    time, for all runs. Raises what ``run`` raises."""
    groups = problem.linear
    product = len(groups) == 2 and max(map(len, groups)) == 1
    if not product and len(groups) != 1:
        return []
    if max(each.count for each in problem.operands(size)) > _MOST_ELEMENTS:
        return []
    try:
        return _Look(problem, size, run, seconds).elements()
    except NotLinear:
        return []


def shows_enough(problem: Problem, size: Size) -> bool:
    """Whether the inputs of a size are large enough to show what repeats."""
    shapes = [each.shape for each in problem.operands(size) if each.given]
    return min(map(min, shapes)) >= _LEAST_EXTENT and max(map(math.prod, shapes)) >= _LEAST


def suspect(found: Sequence[ElementContents]) -> Suspect | None:
    """The input that the first of these elements has wrongly, or lacks."""
    for kind in (True, False):
        for held in found[0].held if found else ():
            wrong = (
                (held.want == 0) & (held.got != 0) if kind else (held.want != 0) & (held.got == 0)
            )
            if wrong.any():
                index = tuple(int(each) for each in np.argwhere(wrong)[-1])
                place = int(held.operand.logical(np.arange(held.operand.count))[index])
                return Suspect(
                    operand=held.operand, index=index, place=place, foreign=kind, of=found[0]
                )
    return None


class _Look:
    """Runs of a program, and of the reference, on the same inputs."""

    def __init__(self, problem: Problem, size: Size, run: Run, seconds: float) -> None:
        self._problem, self._size, self._run = problem, size, run
        self._end = time.thread_time() + seconds
        self._operands = problem.operands(size)
        self._given = [each for each in self._operands if each.given]
        self._targets = [each for each in self._operands if each.written]
        self._groups = problem.linear
        self._usual = make_inputs(self._operands)
        self._target, self._number = self._targets[0], 0
        self._places = self._values = self._limit = np.zeros(0)

    def elements(self) -> list[ElementContents]:
        outputs = self._program(self._usual)
        expected = self._problem.reference(np, self._size, self._usual)
        tolerance = self._problem.tolerance(self._size)
        seen = [
            measured(np, target, target.logical(got), each, tolerance)
            for target, got, each in zip(self._targets, outputs, expected, strict=True)
        ]
        self._number = worst([stats for stats, _ in seen])
        self._target = self._targets[self._number]
        want, wrong = expected[self._number], seen[self._number][1]
        if want.wrong is not None or want.together:
            return []
        got = self._target.wide(outputs[self._number])
        chosen = _chosen(wrong & np.isfinite(got))
        if not chosen:
            return []
        self._places = self._target.logical(np.arange(self._target.count))
        self._values, self._limit = got, np.zeros(self._target.shape)
        if want.scale is not None:
            self._limit += _PREDICTED * tolerance * want.scale
        return [each for each in self._measured(chosen) if each.wrong and self._explains(each)]

    # --- runs ---

    def _program(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return self._run(inputs, self._left())

    def _left(self) -> float:
        left = self._end - time.thread_time()
        if left <= 0:
            raise NotLinear("it takes too long")
        return left

    def _inputs(self, coded: Mapping[str, Doubles]) -> list[Array]:
        """The inputs as stored, with codes in some operands, in their shape."""
        group = {name for names in self._groups if coded.keys() & {*names} for name in names}
        others = {name for names in self._groups for name in names}
        inputs = []
        for operand, usual in zip(self._given, self._usual, strict=True):
            values = np.full(operand.shape, float(operand.name not in group))
            values = coded.get(operand.name, values)
            known = operand.name in others
            inputs.append(operand.element.packed(operand.flat(values)) if known else usual)
        return inputs

    def _got(self, coded: Mapping[str, Doubles]) -> Doubles:
        outputs = self._program(self._inputs(coded))
        values: Doubles = self._target.element.wide(outputs[self._number])
        return values

    def _want(self, coded: Mapping[str, Doubles]) -> Doubles:
        self._left()
        expected = self._problem.reference(np, self._size, self._inputs(coded))[self._number]
        want = self._target.flat(expected.want)
        values = self._target.element.wide(want) if expected.scale is None else want
        return np.asarray(values, np.float64)

    # --- what they say ---

    def _measured(self, chosen: Sequence[tuple[int, ...]]) -> Iterator[ElementContents]:
        operands = [
            next(each for each in self._given if each.name == name)
            for name in itertools.chain(*self._groups)
        ]
        factors = [self._factors(each, chosen) for each in operands]
        name, nothing = operands[0].name, np.zeros(operands[0].shape)
        constants = self._got({name: nothing})[[self._places[index] for index in chosen]]
        found = [
            ElementContents(
                target=self._target,
                index=index,
                held=tuple(
                    Held(operand, want[e], got[e])
                    for operand, (want, got) in zip(operands, factors, strict=True)
                ),
                constant=float(constants[e]),
            )
            for e, index in enumerate(chosen)
        ]
        return iter(found) if len(self._groups) == 1 else self._paired(found)

    def _factors(
        self, operand: Operand, chosen: Sequence[tuple[int, ...]]
    ) -> tuple[Doubles, Doubles]:
        """Factors of an operand in the chosen elements: the right ones, and the program's."""
        places = [int(self._places[index]) for index in chosen]
        asked = partial(contents, operand=np.zeros(operand.shape), element=places)
        bits = self._bits(operand)
        want = asked(lambda codes: self._want({operand.name: codes}), bits=bits, most=_FREE)
        got = asked(
            lambda codes: self._got({operand.name: codes}), bits=bits, most=_RUNS, expected=want
        )
        got[abs(got) < _NEGLIGIBLE * abs(want).max()] = 0.0
        return want, np.where(np.isclose(got, want, _CLOSE, 0.0), want, got)

    def _bits(self, operand: Operand) -> int:
        """Bits of whole numbers that both an operand and the output hold exactly."""
        return min(map(_whole_bits, (operand.element, self._target.element)))

    def _paired(self, found: Sequence[ElementContents]) -> Iterator[ElementContents]:
        """The same with what meets in products: as the reference has it if that explains the
        element, else measured."""
        open_elements = []
        for each, pairs in self._meetings(self._want, found, lambda held: held.want):
            met = _as_wanted(each, pairs)
            each = replace(each, want_pairs=pairs, got_pairs=met or {})
            if met is not None and self._explains(each):
                yield each
            else:
                open_elements.append(each)
        if open_elements:
            for each, pairs in self._meetings(self._got, open_elements, lambda held: held.got):
                yield replace(each, got_pairs=pairs)

    def _meetings(
        self,
        ask: Ask,
        found: Sequence[ElementContents],
        factors: Callable[[Held], Doubles],
    ) -> Iterator[tuple[ElementContents, Mapping[Pair, float]]]:
        """Yield the elements that can be looked at together, with their products.

        In one operand, of which an element has everything once, some elements are powers of two so
        far apart that a number which stands for what they meet in the other lies between.
        """
        tables = [[factors(held).reshape(-1) for held in each.held] for each in found]
        one = 0 if all(((of == 0) | (of == 1)).all() for of, _ in tables) else 1
        kept: list[tuple[ElementContents, Array, Array]] = []
        taken = [np.zeros(of.size, bool) for of in tables[0]]
        for each, table in zip(found, tables, strict=True):
            once = ((table[one] == 0) | (table[one] == 1)).all()
            if once and not any((of & (t != 0)).any() for of, t in zip(taken, table, strict=True)):
                taken = [of | (t != 0) for of, t in zip(taken, table, strict=True)]
                kept.append((each, np.flatnonzero(table[one]), np.flatnonzero(table[1 - one])))
        if not kept:
            return
        single, other = (kept[0][0].held[side].operand for side in (one, 1 - one))
        longest = max(len(others) for _, _, others in kept)
        width = longest.bit_length()
        each_run = max(1, self._bits(single) // width)
        steps = range(0, max(len(singles) for _, singles, _ in kept), each_run)
        if len(steps) > (_RUNS if ask == self._got else _FREE):
            raise NotLinear("it takes too many launches")
        codes = np.zeros(other.count)
        for _, _, others in kept:
            codes[others] = 1 + np.arange(len(others))
        met: list[list[Pair]] = [[] for _ in kept]
        for step in steps:
            values = np.zeros(single.count)
            for _, singles, _ in kept:
                part = singles[step : step + each_run]
                values[part] = 2.0 ** (width * np.arange(len(part)))
            coded = {
                single.name: values.reshape(single.shape),
                other.name: codes.reshape(other.shape),
            }
            outputs = ask(coded)
            for (each, singles, others), pairs in zip(kept, met, strict=True):
                constant = each.constant if ask == self._got else 0.0
                left = round(float(outputs[self._places[each.index]]) - constant)
                for place in singles[step : step + each_run].tolist():
                    code = left & (1 << width) - 1
                    if not 1 <= code <= len(others):
                        raise NotLinear("an element meets nothing")
                    pair = place, int(others[code - 1])
                    pairs.append(pair if one == 0 else pair[::-1])
                    left >>= width
        for (each, _, _), pairs in zip(kept, met, strict=True):
            yield each, dict.fromkeys(sorted(pairs), 1.0)

    def _explains(self, element: ElementContents) -> bool:
        error = abs(self._predicted(element) - self._values[element.index])
        return bool(error <= self._limit[element.index])

    def _predicted(self, element: ElementContents) -> float:
        """Return what it comes to at the usual inputs."""
        usual = {
            operand.name: operand.wide(values)
            for operand, values in zip(self._given, self._usual, strict=True)
        }
        values = [usual[each.operand.name] for each in element.held]
        if len(self._groups) == 1:
            parts = (float((h.got * v).sum()) for h, v in zip(element.held, values, strict=True))
            return element.constant + sum(parts)
        first, second = (each.reshape(-1) for each in values)
        return element.constant + sum(
            times * float(first[a] * second[b]) for (a, b), times in element.got_pairs.items()
        )


def _as_wanted(
    element: ElementContents, wanted: Mapping[Pair, float]
) -> Mapping[Pair, float] | None:
    """The products of what an element holds if each factor meets what it should, and what is
    foreign stands in the place of what is missing; None where that does not come out even."""
    instead: list[dict[int, int]] = []
    got = [each.got.reshape(-1) for each in element.held]
    for side, held in enumerate(element.held):
        missing = [pair[side] for pair in wanted if not got[side][pair[side]]]
        foreign = np.flatnonzero((got[side] != 0) & (held.want.reshape(-1) == 0)).tolist()
        if foreign and len(foreign) != len(missing):
            return None
        instead.append(dict(zip(missing, foreign)))  # noqa: B905 - nothing may be foreign
    met = {}
    for first, second in wanted:
        pair = instead[0].get(first, first), instead[1].get(second, second)
        times = float(got[0][pair[0]])
        if times != got[1][pair[1]]:
            return None
        if times:
            met[pair] = times
    return met


def _chosen(wrong: Array) -> list[tuple[int, ...]]:
    """The first wrong element, and up to three that differ from it and each other in every index if
    there are such: the last, and some between."""
    found = np.argwhere(wrong)
    places = np.linspace(0, len(found) - 1, min(_SOUGHT, len(found))).astype(int)
    between = np.random.default_rng(len(found)).permutation(places)
    picked: list[tuple[int, ...]] = []
    for place in (0, len(found) - 1, *between) if len(found) else ():
        index = tuple(int(each) for each in found[place])
        apart = all(i != j for other in picked for i, j in zip(index, other, strict=True))
        if apart and len(picked) < _ELEMENTS:
            picked.append(index)
    return picked


def _whole_bits(element: Element) -> int:
    if element.upper:
        return _UPPER_BITS
    kind = np.dtype(element.dtype)
    return np.finfo(kind).nmant + 1 if kind.kind == "f" else 8 * kind.itemsize - 1
