"""Products in FP64: the right ones, and those that mistakes with fragments and swizzles make."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.problems.expected import Expected
from grader.problems.gemm.gemm import say
from grader.problems.inputs import Places, Source
from grader.problems.operands import Operand
from ptxsim.text import Message

Doubles = NDArray[np.float64]
Move = Callable[[Any, Any], tuple[Any, Any]]  # the indices of an element → where it is taken from
Product = Callable[[Doubles, Doubles], Expected]

_SIDES = (("A", say("lines.A")), ("B", say("lines.B")))
_STEPS = tuple(1 << bit for bit in range(7))
_SWIZZLES = ((0, 8), (0, 4), (0, 2), (1, 4), (2, 2))  # (line >> shift) % chunks of 16 bytes


def product(a: Doubles, b: Doubles) -> Expected:
    """A·B, and s for every element."""
    k = max(1, a.shape[1])
    scale = np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=0)) / math.sqrt(k)
    return Expected(want=a @ b, scale=scale)


def make_parts(
    operands: Sequence[Operand], inputs: Sequence[Source], rows: Places, columns: Places
) -> tuple[Doubles, Doubles, tuple[Places, Places]]:
    """The rows of A and the columns of B that these elements of C need, each once, and where the
    elements lie in the product of those."""
    (a, b), depth = operands, np.arange(operands[0].shape[1])
    row, of_row = np.unique(rows, return_inverse=True)
    column, of_column = np.unique(columns, return_inverse=True)
    of_a, of_b = _part(a, inputs[0], row, depth), _part(b, inputs[1], depth, column)
    return of_a, of_b, (of_row, of_column)


def _part(operand: Operand, source: Source, rows: Places, columns: Places) -> Doubles:
    """These rows and columns of a matrix, made in the order of its memory."""
    lines, along = (rows, columns) if operand.order == "row" else (columns, rows)
    length = operand.shape[1] if operand.order == "row" else operand.shape[0]
    made = source.at(lines[:, None] * length + along).astype(np.float64)
    return made if operand.order == "row" else made.T


def freivalds_bounds(most: float, k: int, rows: Doubles, columns: Doubles) -> Doubles:
    """For every row i, the limit of |C·x − A·(B·x)| for a vector x of random signs.

    most: the tolerance. rows: ‖row i of A‖, columns: ‖column j of B‖. The errors of row i, each at
    most the tolerance, add up with random signs: the sum passes six times their Euclidean norm once
    in 10⁷.
    """
    return 6 * most / math.sqrt(k) * rows * float(np.linalg.norm(columns))


# --- mistakes ----------------------------------------------------------------------------------


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
            words = say("moved.halves", name=name, lines=lines, half=1 << bit)
            yield words, with_moved(name, exchange(3, bit))
    for step in _STEPS:
        yield say("moved.depth", step=step), product(moved(a, flip(0, step)), b)
    for step in _STEPS:
        for (_, lines), move in zip(_SIDES, (flip(step, 0), flip(0, step)), strict=True):
            yield say("moved.parts", step=step, lines=lines), _all_moved(right, move)
    yield say("moved.results"), _all_moved(right, exchange(3, 0))
    for name, lines in _SIDES:
        for shift, chunks in _SWIZZLES:
            turn = f"(r / {1 << shift}) % {chunks}" if shift else f"r % {chunks}"
            words = say("moved.swizzled", name=name, lines=lines, turn=turn)
            yield words, with_moved(name, swizzle(shift, chunks, chunk))


def _all_moved(right: Expected, move: Move) -> Expected:
    return Expected(want=moved(right.want, move), scale=moved(right.scale, move))
