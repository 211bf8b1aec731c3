"""Mistakes with fragments and swizzles: the product of matrices with elements in wrong places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.problems.problem import Expected
from ptxsim.message import Message, phrase

Doubles = NDArray[np.float64]
Move = Callable[[Any, Any], tuple[Any, Any]]  # the indices of an element → where it is taken from
Product = Callable[[Doubles, Doubles], Expected]

_ROWS, _COLUMNS = phrase("rows"), phrase("columns")
_SIDES = (("A", _ROWS), ("B", _COLUMNS))
_STEPS = tuple(1 << bit for bit in range(7))
_SWIZZLES = ((0, 8), (0, 4), (0, 2), (1, 4), (2, 2))  # (line >> shift) % chunks of 16 bytes


def moved(values: Doubles, move: Move) -> Doubles:
    """The matrix with each element taken from elsewhere, 0 from beyond its edges."""
    line, along = move(*np.indices(values.shape))
    inside = (line < values.shape[0]) & (along < values.shape[1])
    return np.where(inside, values[line * inside, along * inside], 0.0)


def exchange(bit: int, other: int) -> Move:
    """Exchange one bit of the two indices."""

    def move(line: Any, along: Any) -> tuple[Any, Any]:
        differ = (line >> bit ^ along >> other) & 1
        return line ^ differ << bit, along ^ differ << other

    return move


def flip(line_step: int, step: int) -> Move:
    """Exchange neighbouring parts of so many lines, and of so many elements along them."""
    return lambda line, along: (line ^ line_step, along ^ step)


def swizzle(shift: int, chunks: int, length: int) -> Move:
    """Turn chunks of ``length`` elements round by the number of their line."""
    return lambda line, along: (line, along ^ (line >> shift) % chunks * length)


def misplaced(
    a: Doubles, b: Doubles, chunk: int, product: Product
) -> Iterator[tuple[Message, Expected]]:
    """Yield likely mistakes in words, and what they compute. chunk: elements in 16 bytes."""
    right = product(a, b)

    def with_moved(name: str, move: Move) -> Expected:
        return product(moved(a, move), b) if name == "A" else product(a, moved(b.T, move).T)

    for name, lines in _SIDES:
        for bit in (3, 2):
            words = phrase(
                "two registers of {name}'s fragment, or two matrices of its ldmatrix, are "
                "exchanged: {lines} 8 to 15 with the first {half} of K stand where {lines} 0 to 7 "
                "with the next {half} belong",
                name=name,
                lines=lines,
                half=1 << bit,
            )
            yield words, with_moved(name, exchange(3, bit))
    for step in _STEPS:
        words = phrase(
            "A at K = p meets B at K = p xor {step}: in one of them, parts of {step} along K are "
            "exchanged, such as registers of a fragment or chunks of a tile",
            step=step,
        )
        yield words, product(moved(a, flip(0, step)), b)
    for step in _STEPS:
        for lines, move in ((_ROWS, flip(step, 0)), (_COLUMNS, flip(0, step))):
            words = phrase(
                "each {step} {lines} of C are exchanged with the next {step}: registers of a "
                "fragment, or the lanes that hold it, are",
                step=step,
                lines=lines,
            )
            yield words, _all_moved(right, move)
    words = phrase(
        "two of the four results of each lane are exchanged: column 2·t + 1 of row g, and column "
        "2·t of row g + 8, with g = lane / 4 and t = lane % 4"
    )
    yield words, _all_moved(right, exchange(3, 0))
    for name, lines in _SIDES:
        for shift, chunks in _SWIZZLES:
            words = phrase(
                "{name}'s tile is swizzled in another way where it is written than where it is "
                "read: of {lines} numbered r, chunk c of 16 bytes comes from chunk c xor {turn}",
                name=name,
                lines=lines,
                turn=f"(r / {1 << shift}) % {chunks}" if shift else f"r % {chunks}",
            )
            yield words, with_moved(name, swizzle(shift, chunks, chunk))


def _all_moved(right: Expected, move: Move) -> Expected:
    return Expected(want=moved(right.want, move), scale=moved(right.scale, move))
