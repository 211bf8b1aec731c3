"""Products in FP64."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grader.problems.expected import Expected
from grader.problems.inputs import Places, Source
from grader.problems.operands import Operand

Doubles = NDArray[np.float64]


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
