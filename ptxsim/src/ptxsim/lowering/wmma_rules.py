"""Lowering rules of wmma.

``wmma`` is made of other operations, as ptxas makes it: fragments are those of ``mma``, their loads
and stores are each lane's own. The PTX ISA leaves the layout of a wmma fragment open; this is what
ptxas chooses for accumulators from sm_80 on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptxsim.frontend.records import Instruction
from ptxsim.lowering.lower import Lowering
from ptxsim.lowering.memory_rules import space_of
from ptxsim.lowering.mma_rules import ELEMENT_BYTES, m16n8_flops
from ptxsim.lowering.operation import (
    OWN_TAINT,
    SPECIAL_REGISTERS,
    Constant,
    Operand,
    Register,
    Special,
)


@dataclass(frozen=True)
class FragmentPiece:
    """One register of a fragment: the row and column of its first element, where ``lane // 4`` adds
    to the one and ``lane % 4 * count`` to the other. Its other elements lie along ``along``."""

    row: int
    column: int
    along: str  # "row": elements in one row, at ascending columns; "column"
    count: int  # elements

    def turned(self) -> FragmentPiece:
        """Return the piece of the transposed matrix."""
        along = "column" if self.along == "row" else "row"
        return FragmentPiece(self.column, self.row, along, self.count)


def _left(m: int, k: int, count: int) -> list[FragmentPiece]:
    """A of m16n8kK, for every 16 rows."""
    return [
        FragmentPiece(top + 8 * (r & 1), 4 * count * (r >> 1), "row", count)
        for top in range(0, m, 16)
        for r in range(16 * k // 32 // count)
    ]


def _right(n: int, k: int, count: int) -> list[FragmentPiece]:
    """B of m16n8kK, for every 8 columns."""
    return [
        FragmentPiece(4 * count * r, left, "column", count)
        for left in range(0, n, 8)
        for r in range(8 * k // 32 // count)
    ]


def _sum(m: int, n: int) -> list[FragmentPiece]:
    """C and D of m16n8kK, for every 16 rows and 8 columns; two elements each."""
    return [
        FragmentPiece(top + 8 * r, left, "row", 2)
        for top in range(0, m, 16)
        for left in range(0, n, 8)
        for r in range(2)
    ]


def pieces_of(matrix: str, m: int, n: int, k: int, kind: str) -> list[FragmentPiece]:
    """The pieces of a fragment of m×n×k. With 8 rows the transposed product is computed."""
    count = 4 // ELEMENT_BYTES[kind]
    if m == 8:
        other = {"a": "b", "b": "a"}.get(matrix, matrix)
        return [piece.turned() for piece in pieces_of(other, n, m, k, kind)]
    if matrix == "a":
        return _left(m, k, count)
    return _right(n, k, count) if matrix == "b" else _sum(m, n)


_LANE = Special(SPECIAL_REGISTERS.index("%laneid"))


def _extents(mods: Sequence[str]) -> tuple[int, int, int]:
    shape = next(m for m in mods if m[0] == "m" and m[1:2].isdigit())
    m, _, rest = shape[1:].partition("n")
    n, _, k = rest.partition("k")
    extents = int(m), int(n), int(k)
    if extents not in {(16, 16, 16), (32, 8, 16), (8, 32, 16), (16, 16, 8)}:
        raise ValueError(shape)
    return extents


def wmma(low: Lowering, item: Instruction, mods: list[str]) -> None:
    match mods[0]:
        case "load":
            _load_fragment(low, item, mods)
        case "store":
            _store_fragment(low, item, mods)
        case "mma":
            _multiply_fragments(low, item, mods)
        case _:
            raise low.unsupported()


class _Tile:
    """The addresses of a tile in memory, for the loads and stores of its fragment."""

    def __init__(
        self,
        low: Lowering,
        mods: Sequence[str],
        address: str,
        pitch: str | None,
        extents: tuple[int, int],
        *,
        store: bool,
    ) -> None:
        """extents: of the matrix, in rows and columns."""
        self.low, self.bytes = low, ELEMENT_BYTES[mods[-1]]
        self.rows = "row" in mods  # they are what lies one pitch apart
        self.space = space_of(low, list(mods))
        self.base, self.width, self.offset = low.address(address)
        tight = extents[1] if self.rows else extents[0]
        self.pitch = low.source(pitch, "u32") if pitch else Constant(tight, 4)
        self.places: dict[tuple[bool, int, int], Operand] = {}
        low.emit_guarded(
            "wmma.tile",
            [self.pitch, None, None, None, self.base, self.width],
            imm=self.offset,
            width=self.bytes,
            vec=2 if store else 1,
            space=self.space,
            flags=OWN_TAINT,
        )

    def contiguous(self, piece: FragmentPiece) -> bool:
        """Whether the elements of a piece lie next to each other."""
        return (piece.along == "row") == self.rows

    def at(self, piece: FragmentPiece, element: int) -> tuple[Operand, int]:
        """A register with a 64-bit address, and an offset from it."""
        row = piece.row + (element if piece.along == "column" else 0)
        column = piece.column + (element if piece.along == "row" else 0)
        far, near = (row, column) if self.rows else (column, row)
        # lane // 4 counts across the pieces' elements, lane % 4 along them.
        key = (self.contiguous(piece), piece.count, far)
        if key not in self.places:
            self.places[key] = self._place(*key)
        return self.places[key], self.offset + near * self.bytes

    def _place(self, contiguous: bool, count: int, far: int) -> Operand:
        """base + ((lane's own + far) · pitch + lane's own) · bytes"""
        low = self.low
        group, within = low.register(4), low.register(4)
        low.emit("shr.u32", [group, _LANE, Constant(2, 4)])
        low.emit("and.b32", [within, _LANE, Constant(3, 4)])
        low.emit("mul.lo.u32", [within, within, Constant(count, 4)])
        across, along = (group, within) if contiguous else (within, group)
        steps, sum_, bytes_ = low.register(4), low.register(8), low.register(8)
        low.emit("add.u32", [steps, across, Constant(far, 4)])
        low.emit("mul.wide.u32", [sum_, steps, self.pitch])
        wide = low.converted(along, "cvt.r.u64.u32", 8)
        low.emit("add.u64", [sum_, sum_, wide])
        low.emit("shl.b64", [bytes_, sum_, Constant(self.bytes.bit_length() - 1, 4)])
        if self.base is None:
            return bytes_
        base = self.base if self.width == 8 else low.converted(self.base, "cvt.r.u64.u32", 8)
        low.emit("add.u64", [bytes_, bytes_, base])
        return bytes_

    def halves(self, piece: FragmentPiece, registers: list[Operand]) -> bool:
        """Whether two elements of one register lie apart."""
        return not self.contiguous(piece) and len(registers) != piece.count

    def access(
        self,
        name: str,
        piece: FragmentPiece,
        registers: list[Operand],
        places: list[tuple[Operand, int]],
        width: int = 4,
    ) -> None:
        """Move the registers of a piece, at once where its elements lie next to each other."""
        groups = [registers] if self.contiguous(piece) else [[register] for register in registers]
        for values, (where, offset) in zip(groups, places, strict=False):
            self.low.emit_guarded(
                name,
                [*values, *([None] * (4 - len(values))), where, 8, 0],
                imm=offset,
                width=width,
                vec=len(values),
                space=self.space,
                flags=OWN_TAINT,
            )


def _load_fragment(low: Lowering, item: Instruction, mods: list[str]) -> None:
    matrix, kind = mods[1], mods[-1]
    m, n, k = _extents(mods)
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n)}[matrix]
    targets = low.vector(item.operands[0], "b32", output=True)
    pitch = item.operands[2] if len(item.operands) > 2 else None
    tile = _Tile(low, mods, item.operands[1], pitch, (rows, columns), store=False)
    pieces = pieces_of(matrix, m, n, k, kind)
    loads: list[tuple[FragmentPiece, list[Operand]]] = []
    if matrix == "c" and kind == "f32":
        loads = [(piece, targets[2 * i : 2 * i + 2]) for i, piece in enumerate(pieces)]
    else:
        loads = [(piece, [target]) for piece, target in zip(pieces, targets, strict=False)]
    if len(targets) % len(pieces):
        raise low.unsupported_form()
    places = [[tile.at(piece, e) for e in range(piece.count)] for piece, _ in loads]
    for (piece, registers), at in zip(loads, places, strict=True):
        if not tile.halves(piece, registers):
            tile.access("ld", piece, registers, at)
            continue
        parts: list[Operand] = [low.register(4), low.register(4)]
        tile.access("ld", piece, parts, at, 2)
        low.emit_guarded("pack.b32", [registers[0], *parts])
    # A fragment of FP16 may have more registers than its elements need; they hold copies.
    if matrix != "c":
        for index in range(len(pieces), len(targets)):
            low.emit_guarded("mov.b32", [targets[index], targets[index % len(pieces)]])


def _store_fragment(low: Lowering, item: Instruction, mods: list[str]) -> None:
    kind = mods[-1]
    m, n, k = _extents(mods)
    values = low.vector(item.operands[1], "b32", output=False)
    pitch = item.operands[2] if len(item.operands) > 2 else None
    tile = _Tile(low, mods, item.operands[0], pitch, (m, n), store=True)
    pieces = pieces_of("d", m, n, k, kind)
    each = 2 if kind == "f32" else 1
    if len(values) != each * len(pieces):
        raise low.unsupported_form()
    for index, piece in enumerate(pieces):
        registers = values[each * index : each * (index + 1)]
        at = [tile.at(piece, e) for e in range(piece.count)]
        if not tile.halves(piece, registers):
            tile.access("st", piece, registers, at)
            continue
        parts: list[Operand] = [low.register(4), low.register(4)]
        low.emit("unpack.b32", [*parts, registers[0]])
        tile.access("st", piece, parts, at, 2)


def _multiply_fragments(low: Lowering, item: Instruction, mods: list[str]) -> None:
    m, n, k = _extents(mods)
    types = [t for t in mods if t in ELEMENT_BYTES]
    result, start = types[0], types[-1]
    kind = "f16" if len(types) == 2 else types[1]
    if len(types) == 4 and types[1] != types[2]:
        raise low.unsupported()
    d = low.vector(item.operands[0], "b32", output=True)
    a, b, c = (low.vector(text, "b32", output=False) for text in item.operands[1:])
    if m == 8:
        a, b, m, n = b, a, n, m
    per_left, per_right = (rows * k // 32 // (4 // ELEMENT_BYTES[kind]) for rows in (16, 8))
    wider = result == "f16" and start == "f32"  # the sum is rounded to halves afterwards
    inner = "f32" if wider else result
    each, of_start, of_sum = (4 if t == "f32" else 2 for t in (result, start, inner))
    tiles = [(top, left) for top in range(m // 16) for left in range(n // 8)]
    if len(d) != each * len(tiles) or len(c) != of_start * len(tiles):
        raise low.unsupported_form()
    # Registers are read before any is written, and the tiles are computed one after the other.
    apart = wider or bool(set(_registers(d)) & set(_registers([*a, *b, *c])))
    sums: list[Operand] = [low.register(4) for _ in range(of_sum * len(tiles))] if apart else d
    for index, (top, left) in enumerate(tiles):
        begin = _converted_start(low, c[of_start * index : of_start * (index + 1)], start, inner)
        low.emit_guarded(
            f"mma.m16n8k{k}.{inner}.{kind}",
            [],
            extra=[
                *sums[of_sum * index : of_sum * (index + 1)],
                *a[per_left * top : per_left * (top + 1)],
                *b[per_right * left : per_right * (left + 1)],
                *begin,
            ],
            flags=OWN_TAINT,
            flops=m16n8_flops(k),
        )
    for at, register in enumerate(d if apart else []):
        if wider:
            low.emit_guarded("cvt.f16x2.f32", [register, sums[2 * at + 1], sums[2 * at]])
        else:
            low.emit_guarded("mov.b32", [register, sums[at]])


def _converted_start(low: Lowering, values: list[Operand], start: str, inner: str) -> list[Operand]:
    """C in the type that sums have."""
    if start == inner:
        return values
    converted: list[Operand] = []
    for value in values:
        halves: list[Operand] = [low.register(4), low.register(4)]
        low.emit("unpack.b32", [*halves, value])
        converted += [low.converted(half, "cvt.r.f32.f16", 4) for half in halves]
    return converted


def _registers(operands: list[Operand]) -> list[Register]:
    return [operand for operand in operands if isinstance(operand, Register)]
