"""Which elements of a matrix the registers of a wmma fragment hold."""

from __future__ import annotations

from dataclasses import dataclass

from ptxsim.lowering.mma_rules import ELEMENT_BYTES


@dataclass(frozen=True)
class Piece:
    """One register of a fragment: the row and column of its first element, where ``lane // 4`` adds
    to the one and ``lane % 4 * count`` to the other. Its other elements lie along ``along``."""

    row: int
    column: int
    along: str  # "row": elements in one row, at ascending columns; "column"
    count: int  # elements

    def turned(self) -> Piece:
        """Of the transposed matrix."""
        along = "column" if self.along == "row" else "row"
        return Piece(self.column, self.row, along, self.count)


def _left(m: int, k: int, count: int) -> list[Piece]:
    """A of m16n8kK, for every 16 rows."""
    return [
        Piece(top + 8 * (r & 1), 4 * count * (r >> 1), "row", count)
        for top in range(0, m, 16)
        for r in range(16 * k // 32 // count)
    ]


def _right(n: int, k: int, count: int) -> list[Piece]:
    """B of m16n8kK, for every 8 columns."""
    return [
        Piece(4 * count * r, left, "column", count)
        for left in range(0, n, 8)
        for r in range(8 * k // 32 // count)
    ]


def _sum(m: int, n: int) -> list[Piece]:
    """C and D of m16n8kK, for every 16 rows and 8 columns; two elements each."""
    return [
        Piece(top + 8 * r, left, "row", 2)
        for top in range(0, m, 16)
        for left in range(0, n, 8)
        for r in range(2)
    ]


def pieces_of(matrix: str, m: int, n: int, k: int, kind: str) -> list[Piece]:
    """The pieces of a fragment of m×n×k. With 8 rows the transposed product is computed."""
    count = 4 // ELEMENT_BYTES[kind]
    if m == 8:
        other = {"a": "b", "b": "a"}.get(matrix, matrix)
        return [piece.turned() for piece in pieces_of(other, n, m, k, kind)]
    if matrix == "a":
        return _left(m, k, count)
    return _right(n, k, count) if matrix == "b" else _sum(m, n)
