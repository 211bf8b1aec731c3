"""Outputs against a reference: error, first mismatch, and a picture of what is wrong.

An element is right if ``|got - want| / scale <= tolerance``. Written this way round, NaN is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.model import (
    NOTHING,
    ErrorStats,
    Message,
    Mismatch,
    Record,
    Size,
    phrase,
    verbatim,
    wrong_elements,
)
from grader.problems.operands import Operand
from grader.problems.problem import Cause, Expected, Problem

Array = NDArray[Any]
Mask = NDArray[np.bool_]

# Fills outputs before the kernel runs: a quiet NaN in FP64, FP32 and, in either half, in FP16 and
# BF16, and none that a computation gives.
POISON = 0x7FFB7FFD
MAP_ROWS, MAP_COLUMNS = 32, 64


class Check(Record):
    """The result of comparing the outputs of one call with the reference."""

    error: ErrorStats
    message: Message  # empty when right, else how much is wrong and, if the pattern is exact, why

    @property
    def right(self) -> bool:
        return self.error.wrong == 0


def poisoned(operand: Operand) -> Array:
    """An output before the kernel: an element that is never written is wrong."""
    words = np.full(-(-operand.bytes // 4), POISON, dtype=np.uint32)
    return words.view(operand.element.dtype)[: operand.count]


def check(problem: Problem, size: Size, inputs: Sequence[Array], outputs: Sequence[Array]) -> Check:
    """Compare the outputs with the reference, on the CPU."""
    expected = problem.reference(np, size, inputs)
    targets = [each for each in problem.operands(size) if each.role == "out"]
    found = [
        compare(np, operand, got, want, problem.tolerance(size))
        for operand, got, want in zip(targets, outputs, expected, strict=True)
    ]
    place = worst(found)
    if not found[place].wrong:
        return Check(error=found[place], message=NOTHING)
    amount, guess = _amount(found[place], targets[place], outputs[place])
    cause = _cause(problem.causes(size, inputs), targets, outputs) if guess else NOTHING
    if cause:
        amount = phrase("{amount}: {cause}", amount=amount, cause=cause)
    return Check(error=found[place], message=amount)


def worst(found: Sequence[ErrorStats]) -> int:
    """The output that a message is about: the first wrong one, else that of the largest error."""
    wrong = next((place for place, each in enumerate(found) if each.wrong), None)
    largest = max(range(len(found)), key=lambda place: found[place].max or 0.0)
    return largest if wrong is None else wrong


def compare(
    xp: Any, operand: Operand, got: Any, expected: Expected, tolerance: float
) -> ErrorStats:
    """One output; ``xp`` is NumPy or CuPy."""
    logical = operand.wide(got)
    with np.errstate(invalid="ignore", over="ignore"):
        error = xp.abs(logical - expected.want) / expected.scale
    wrong = ~(error <= tolerance)
    count = int(wrong.sum())
    return ErrorStats(
        max=finite(float(error.max())),
        rms=finite(float(xp.sqrt(xp.mean(error**2)))),
        tolerance=tolerance,
        wrong=count,
        operand=operand.name,
        shape=operand.shape,
        first_mismatch=first_mismatch(operand, wrong, logical, expected.want) if count else None,
        tile_map=tile_map(xp.asnumpy(wrong) if hasattr(xp, "asnumpy") else wrong) if count else (),
        tile_edge=tile_edge(operand.shape),
    )


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def first_mismatch(operand: Operand, wrong: Any, got: Any, want: Any) -> Mismatch:
    """The first wrong element, rows first."""
    place = int(wrong.reshape(-1).argmax())
    index = tuple(int(each) for each in np.unravel_index(place, operand.shape))
    return mismatch(operand, index, float(got[index]), float(want[index]))


def mismatch(operand: Operand, index: tuple[int, ...], got: float, want: float) -> Mismatch:
    return Mismatch(
        index=index,
        element=operand.named(index),
        got=finite(got),
        want=want,
        got_text=f"{got:.7g}",
    )


# --- a picture of the wrong elements ----------------------------------------------------------


def tile_edge(shape: tuple[int, ...]) -> int:
    """Elements along the edge of one sign of the map: a power of two, so that the signs lie on the
    borders of a kernel's tiles. Of a vector a sign shows so many elements in a row."""
    edge = 1
    if len(shape) == 2:
        while shape[0] > MAP_ROWS * edge or shape[1] > MAP_COLUMNS * edge:
            edge *= 2
    else:
        while math.prod(shape) > MAP_ROWS * MAP_COLUMNS * edge:
            edge *= 2
    return edge


def tile_map(wrong: Mask) -> tuple[str, ...]:
    """Rows of '.', '+', '#' (right, some wrong, all wrong): a matrix by its tiles, a vector line
    by line. () for a scalar."""
    if wrong.ndim == 1 and wrong.size == 1:
        return ()
    edge = tile_edge(wrong.shape)
    if wrong.ndim == 2:
        return tuple("".join(row) for row in _signs(wrong, edge, edge))
    signs = "".join(_signs(wrong.reshape(1, -1), 1, edge)[0])
    return tuple(signs[at : at + MAP_COLUMNS] for at in range(0, len(signs), MAP_COLUMNS))


def _signs(wrong: Mask, height: int, width: int) -> Array:
    counts = _tile_sums(wrong.astype(np.int64), height, width)
    sizes = _tile_sums(np.ones_like(wrong, dtype=np.int64), height, width)
    return np.where(counts == 0, ".", np.where(counts == sizes, "#", "+"))


def _tile_sums(values: NDArray[np.int64], height: int, width: int) -> NDArray[np.int64]:
    rows, columns = np.arange(0, values.shape[0], height), np.arange(0, values.shape[1], width)
    return np.add.reduceat(np.add.reduceat(values, rows, axis=0), columns, axis=1)


# --- in words ---------------------------------------------------------------------------------


def _amount(stats: ErrorStats, target: Operand, got: Array) -> tuple[Message, bool]:
    """How much is wrong, and whether it makes sense to look for the mistake."""
    count, total = stats.wrong, got.size
    amount = wrong_elements(count, total)
    raw = np.resize(np.array([POISON], np.uint32), -(-got.nbytes // 4))
    blank = got.view(f"u{got.itemsize}") == raw.view(f"u{got.itemsize}")[: got.size]
    unwritten = int(np.count_nonzero(blank))
    if unwritten:
        blanks = (
            phrase("still NaN")
            if unwritten == count
            else phrase("{count} of them still NaN", count=unwritten)
        )
        amount = phrase(
            "{amount}, {blanks}: never written, or computed from memory nobody wrote",
            amount=amount,
            blanks=blanks,
        )
    return amount, unwritten < total and not np.isnan(target.wide(got)).any()


def _cause(causes: Any, targets: Sequence[Operand], outputs: Sequence[Array]) -> Message:
    """The first mistake that explains every element of every output, by the same criterion."""
    cause: Cause
    for cause in causes:
        if all(
            bool((np.abs(target.wide(got) - each.want) <= cause.tolerance * each.scale).all())
            for target, got, each in zip(targets, outputs, cause.outputs, strict=True)
        ):
            return cause.words if isinstance(cause.words, Message) else verbatim(cause.words)
    return NOTHING
