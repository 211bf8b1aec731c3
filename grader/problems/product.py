"""float64 reference, error criterion, first mismatch and tile map.

Matrices are flat float32 arrays in the lab's memory order: A row-major (``A[i*k + p]``),
B column-major (``B[p + j*k]``), C column-major (``C[i + j*m]``).

**The criterion.** An element is correct if ``|C - Cref| / s <= tolerance(K)`` with the scale
``s = ‖row i of A‖ · ‖column j of B‖ / √K``, the typical size of a sum of K products with random
signs. Written this way round, NaN is wrong.

FP32 rounds each partial sum with a relative error of at most u = 2⁻²⁴. Partial sums grow like √p,
and the rounding errors are independent, so the error divided by s grows like u·√K for every order
of summation that does not depend on the data. Measured worst elements of 256² results
for K = 1 … 16384: 1 to 3.6 u·√K with and without fused multiply-add. The tolerance is
``u·(2 + 8·√K)``, two to three times that.

Rounding the *inputs* to TF32 (10 bits) or BF16 (7) puts an error in every product, which does not
shrink with K: 5.5e-4 of s on average, against a tolerance of 4e-6 at K = 64 and 6e-5 at K = 16384.
More than 90 % of the elements are then wrong.

**The inputs** (``inputs.py``) expose every shortcut. Magnitudes lie in [0.5, 1.5), so omitting one
term at K = 16384 costs at least 0.25 / 128 of s, 30 tolerances. Signs are random, so sums stay
small. The 13 mantissa bits that TF32 drops lie just above half a unit in its last place. Every
input is far from its TF32, FP16 and BF16 neighbours, rounded or truncated, and always on the same
side, so even 1×1×1 shows the difference.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from grader.model import ErrorStats, Mismatch, Mnk, Record
from grader.problems.inputs import Floats

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]

POISON = 0x7FC0DEAD  # a quiet NaN that no computation gives; fills C before the kernel runs
UNIT_ROUNDOFF = 2.0**-24
MAP_ROWS, MAP_COLUMNS = 32, 64


class Check(Record):
    """The result of comparing one C with the reference."""

    error: ErrorStats
    message: str  # "" when right, else how much is wrong and, if the pattern is exact, why

    @property
    def right(self) -> bool:
        return self.error.wrong == 0


def poisoned(size: Mnk) -> Floats:
    """C before the kernel: NaN everywhere, so an element that is never written is wrong."""
    return np.full(size.m * size.n, POISON, dtype=np.uint32).view(np.float32)


# --- the criterion ----------------------------------------------------------------------------


def tolerance(k: int) -> float:
    """Largest |C - Cref| / s that FP32 arithmetic may leave; derived in the module's docstring."""
    return UNIT_ROUNDOFF * (2 + 8 * math.sqrt(k))


def freivalds_bounds(k: int, rows: Doubles, columns: Doubles) -> Doubles:
    """For every row i, the limit of |C·x − A·(B·x)| for a vector x of random signs.

    rows: ‖row i of A‖, columns: ‖column j of B‖. The errors of row i, each at most the tolerance,
    add up with random signs: the sum passes six times their Euclidean norm once in 10⁷.
    """
    return 6 * tolerance(k) / math.sqrt(k) * rows * float(np.linalg.norm(columns))


def check(size: Mnk, a: Floats, b: Floats, c: Floats) -> Check:
    """Compare C with the float64 product of A and B."""
    m, n, k = size.m, size.n, size.k
    wide_a = a.astype(np.float64).reshape(m, k)
    wide_b = b.astype(np.float64).reshape(n, k).T
    got = c.reshape(n, m).T
    want = wide_a @ wide_b
    scale = np.outer(np.linalg.norm(wide_a, axis=1), np.linalg.norm(wide_b, axis=0)) / math.sqrt(k)
    with np.errstate(invalid="ignore"):
        error = np.abs(got - want) / scale
    wrong = ~(error <= tolerance(k))
    stats = ErrorStats(
        max=_finite(error.max()),
        rms=_finite(np.sqrt(np.mean(error**2))),
        tolerance=tolerance(k),
        wrong=int(wrong.sum()),
        first_mismatch=_first_mismatch(wrong, got, want),
        tile_map=tile_map(wrong) if wrong.any() else (),
        tile_edge=tile_edge(m, n),
    )
    return Check(error=stats, message=_explain(size, a, b, c, wrong) if wrong.any() else "")


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _first_mismatch(wrong: Mask, got: Floats, want: Doubles) -> Mismatch | None:
    if not wrong.any():
        return None
    row, column = map(int, np.unravel_index(np.argmax(wrong), wrong.shape))
    value = float(got[row, column])
    return Mismatch(
        row=row,
        col=column,
        got=_finite(value),
        want=float(want[row, column]),
        got_text=f"{value:.7g}",
    )


# --- a picture of the wrong elements ----------------------------------------------------------


def tile_edge(m: int, n: int) -> int:
    """Elements along the edge of one sign of the tile map: a power of two, so that the signs lie
    on the borders of a kernel's tiles."""
    edge = 1
    while m > MAP_ROWS * edge or n > MAP_COLUMNS * edge:
        edge *= 2
    return edge


def tile_map(wrong: Mask) -> tuple[str, ...]:
    """Rows of '.', '+', '#' (right, some wrong, all wrong), one sign per square of C."""
    edge = tile_edge(*wrong.shape)
    counts = _tile_sums(wrong.astype(np.int64), edge)
    sizes = _tile_sums(np.ones_like(wrong, dtype=np.int64), edge)
    signs = np.where(counts == 0, ".", np.where(counts == sizes, "#", "+"))
    return tuple("".join(row) for row in signs)


def _tile_sums(values: NDArray[np.int64], edge: int) -> NDArray[np.int64]:
    rows, columns = (np.arange(0, extent, edge) for extent in values.shape)
    return np.add.reduceat(np.add.reduceat(values, rows, axis=0), columns, axis=1)


# --- likely causes ----------------------------------------------------------------------------

_LAYOUTS = (
    "A was read as if column-major: A is row-major, A[i*k + p]",
    "B was read as if row-major: B is column-major, B[p + j*k]",
    "C came out transposed: C is column-major, C[i + j*m]",
)
_STEPS = (4, 8, 16, 32, 64, 128)  # K steps of tiled kernels


def _explain(size: Mnk, a: Floats, b: Floats, c: Floats, wrong: Mask) -> str:
    """How much is wrong; also why, if one mistake explains every element exactly."""
    count, total = int(wrong.sum()), wrong.size
    amount = f"{count} of {total} elements are wrong" if total > 1 else "the one element is wrong"
    unwritten = int(np.count_nonzero(c.view(np.uint32) == POISON))
    if unwritten:
        blank = "still NaN" if unwritten == count else f"{unwritten} of them still NaN"
        amount += f", {blank}: never written, or computed from memory nobody wrote"
    if unwritten < total and not np.isnan(c).any():
        for cause, candidate, (wide_a, wide_b) in _suspects(size, a, b, c):
            if _explains(candidate, wide_a, wide_b):
                return f"{amount}: {cause}"
    return amount


def _suspects(
    size: Mnk, a: Floats, b: Floats, c: Floats
) -> Iterator[tuple[str, Floats, tuple[Doubles, Doubles]]]:
    """(cause, C, (A, B)), with the matrices read as that cause would have them."""
    m, n, k = size.m, size.n, size.k
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    read_a = (wide_a.reshape(m, k), wide_a.reshape(k, m).T)
    read_b = (wide_b.reshape(n, k).T, wide_b.reshape(k, n))
    read_c = (c.reshape(n, m).T, c.reshape(m, n))
    for flags in sorted(itertools.product((0, 1), repeat=3), key=sum):
        cause = "; ".join(text for text, flag in zip(_LAYOUTS, flags, strict=True) if flag)
        if cause:
            yield cause, read_c[flags[2]], (read_a[flags[0]], read_b[flags[1]])
    for kept in sorted({k // step * step for step in _STEPS} - {k}, reverse=True):
        missing = f"the last {k - kept} of K = {k} terms are missing"
        cause = f"{missing}; K need not be a multiple of the tile" if kept else "C is all zeros"
        yield cause, read_c[0], (read_a[0][:, :kept], read_b[0][:kept, :])


def _explains(got: Floats, a: Doubles, b: Doubles) -> bool:
    """Whether C is A·B for these readings, by the same criterion."""
    k = max(1, a.shape[1])
    scale = np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=0)) / math.sqrt(k)
    return bool((np.abs(got - a @ b) <= tolerance(k) * scale).all())
