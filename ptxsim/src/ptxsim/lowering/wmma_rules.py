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
from ptxsim.lowering.mma_rules import ELEMENT_BITS, product_flops, product_kind
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
    """Elements that a lane holds side by side: the row and column of the first, where ``lane // 4``
    adds to the one and ``lane % 4 * count`` to the other. The others lie along ``along``."""

    row: int
    column: int
    along: str  # "row": elements in one row, at ascending columns; "column"
    count: int  # elements

    def turned(self) -> FragmentPiece:
        """Return the piece of the transposed matrix."""
        along = "column" if self.along == "row" else "row"
        return FragmentPiece(self.column, self.row, along, self.count)


def pieces_of(matrix: str, m: int, n: int, k: int, count: int) -> list[FragmentPiece]:
    """The pieces of a fragment of m×n×k, made of products of 16 or 8 rows and 8 columns. Of A and B
    a piece is one register of ``count`` elements; of sums it is two elements. With 8 rows and more
    columns the transposed product is computed."""
    if m < n and m == 8:
        other = {"a": "b", "b": "a"}.get(matrix, matrix)
        return [piece.turned() for piece in pieces_of(other, n, m, k, count)]
    high, halves = min(m, 16), min(m, 16) // 8
    if matrix == "a":
        return [
            FragmentPiece(top + 8 * (r % halves), 4 * count * (r // halves), "row", count)
            for top in range(0, m, high)
            for r in range(high * k // 32 // count)
        ]
    if matrix == "b":
        return [
            FragmentPiece(4 * count * r, left, "column", count)
            for left in range(0, n, 8)
            for r in range(8 * k // 32 // count)
        ]
    return [
        FragmentPiece(top + 8 * r, left, "row", 2)
        for top in range(0, m, high)
        for left in range(0, n, 8)
        for r in range(halves)
    ]


_LANE = Special(SPECIAL_REGISTERS.index("%laneid"))
_EXTENTS = {(m, n, 16) for m, n in ((16, 16), (32, 8), (8, 32))} | {(16, 16, 8)}
_EXTENTS |= {(8, 8, 4), (8, 8, 32), (8, 8, 128)}


def _extents(mods: Sequence[str]) -> tuple[int, int, int]:
    shape = next(m for m in mods if m[0] == "m" and m[1:2].isdigit())
    m, _, rest = shape[1:].partition("n")
    n, _, k = rest.partition("k")
    extents = int(m), int(n), int(k)
    if extents not in _EXTENTS:
        raise ValueError(shape)
    return extents


def _word(kind: str) -> str:
    """The type of a register with elements of type ``kind``."""
    return "b64" if kind == "f64" else "b32"


def _per_register(kind: str) -> int:
    return max(32 // ELEMENT_BITS[kind], 1)


def wmma(low: Lowering, item: Instruction, mods: list[str]) -> None:
    rules = {"load": _load_fragment, "store": _store_fragment, "mma": _multiply_fragments}
    if mods[0] not in rules:
        raise low.unsupported()
    rules[mods[0]](low, item, mods)


class _Tile:
    """A tile in memory, for the loads and stores of its fragment."""

    def __init__(
        self,
        low: Lowering,
        mods: Sequence[str],
        address: str,
        pitch: Sequence[str],
        extents: tuple[int, int],
        *,
        store: bool,
    ) -> None:
        """extents: of the matrix, in rows and columns. pitch: its operand, if there is one."""
        self.low, self.bits = low, ELEMENT_BITS[mods[-1]]
        self.rows = "row" in mods  # they are what lies one pitch apart
        self.space = space_of(low, list(mods))
        self.base, self.width, self.offset = low.address(address)
        tight = extents[1] if self.rows else extents[0]
        self.pitch = low.source(pitch[0], "u32") if pitch else Constant(tight, 4)
        self.places: dict[tuple[bool, int, int], Operand] = {}
        low.emit_guarded(
            "wmma.tile",
            [self.pitch, None, None, None, self.base, self.width],
            imm=self.offset,
            width=max(self.bits // 8, 1),
            vec=2 if store else 1,
            space=self.space,
            flags=OWN_TAINT,
        )

    def at(self, piece: FragmentPiece, element: int) -> tuple[Operand, int]:
        """A register with a 64-bit address, and an offset from it."""
        row = piece.row + (element if piece.along == "column" else 0)
        column = piece.column + (element if piece.along == "row" else 0)
        far, near = (row, column) if self.rows else (column, row)
        # lane // 4 counts across the pieces' elements, lane % 4 along them.
        key = ((piece.along == "row") == self.rows, piece.count, far)
        if key not in self.places:
            self.places[key] = self._place(*key)
        return self.places[key], self.offset + near * self.bits // 8

    def _place(self, contiguous: bool, count: int, far: int) -> Operand:
        """base + ((lane's own + far) · pitch + lane's own) · bytes"""
        low = self.low
        group = low.result("shr.u32", 4, _LANE, Constant(2, 4))
        lane = low.result("and.b32", 4, _LANE, Constant(3, 4))
        within = low.result("mul.lo.u32", 4, lane, Constant(count, 4))
        across, along = (group, within) if contiguous else (within, group)
        steps = low.result("add.u32", 4, across, Constant(far, 4))
        rows = low.result("mul.wide.u32", 8, steps, self.pitch)
        wide = low.result("cvt.r.u64.u32", 8, along)
        elements = low.result("add.u64", 8, rows, wide)
        bits = low.result("shl.b64", 8, elements, Constant(self.bits.bit_length() - 1, 4))
        bytes_ = low.result("shr.u64", 8, bits, Constant(3, 4))
        if self.base is None:
            return bytes_
        base = self.base if self.width == 8 else low.result("cvt.r.u64.u32", 8, self.base)
        return low.result("add.u64", 8, bytes_, base)

    def move(
        self, name: str, pieces: Sequence[FragmentPiece], registers: Sequence[list[Operand]]
    ) -> None:
        """Load or store the registers of every piece: at once where its elements lie next to each
        other."""
        places = [[self.at(piece, e) for e in range(piece.count)] for piece in pieces]
        for piece, values, at in zip(pieces, registers, places, strict=True):
            if (piece.along == "row") == self.rows:
                self._access(name, values, at[0], max(self.bits // 8, 4))
                continue
            if self.bits < 8:  # nvcc lays them out along the pieces
                raise self.low.unsupported_form()
            apart = len(values) == piece.count
            parts: list[Operand] = values if apart else [self.low.register(4) for _ in at]
            if not apart and name == "st":
                self.low.emit("unpack.b32", [*parts, *values])
            for part, where in zip(parts, at, strict=True):
                self._access(name, [part], where, self.bits // 8)
            if not apart and name == "ld":
                self._pack(values[0], parts)

    def _access(
        self, name: str, values: list[Operand], at: tuple[Operand, int], width: int
    ) -> None:
        self.low.emit_guarded(
            name,
            [*values, *([None] * (4 - len(values))), at[0], 8, 0],
            imm=at[1],
            width=width,
            vec=len(values),
            space=self.space,
            dwidth=max(width, 4),
            flags=OWN_TAINT,
        )

    def _pack(self, target: Operand, parts: list[Operand]) -> None:
        """Put two halves, or four bytes, into one register."""
        low = self.low
        if len(parts) == 4:
            halves: list[Operand] = []
            for lower, upper in (parts[:2], parts[2:]):
                shifted = low.result("shl.b32", 4, upper, Constant(8, 4))
                halves.append(low.result("or.b32", 4, shifted, lower))
            parts = halves
        low.emit_guarded("pack.b32", [target, *parts])


def _load_fragment(low: Lowering, item: Instruction, mods: list[str]) -> None:
    matrix, kind = mods[1], mods[-1]
    m, n, k = _extents(mods)
    extents = {"a": (m, k), "b": (k, n), "c": (m, n)}[matrix]
    targets = low.vector(item.operands[0], _word(kind), output=True)
    tile = _Tile(low, mods, item.operands[1], item.operands[2:], extents, store=False)
    pieces = pieces_of(matrix, m, n, k, _per_register(kind))
    # A fragment of FP16 may have more registers than its elements need; they hold copies.
    copies = matrix != "c" and kind == "f16"
    registers = _by_piece(low, targets, pieces, kind, copies=copies)
    tile.move("ld", pieces, registers)
    for index in range(len(pieces), len(targets) if copies else 0):
        low.emit_guarded("mov.b32", [targets[index], targets[index % len(pieces)]])


def _store_fragment(low: Lowering, item: Instruction, mods: list[str]) -> None:
    kind = mods[-1]
    m, n, k = _extents(mods)
    values = low.vector(item.operands[1], _word(kind), output=False)
    tile = _Tile(low, mods, item.operands[0], item.operands[2:], (m, n), store=True)
    pieces = pieces_of("d", m, n, k, 2)
    tile.move("st", pieces, _by_piece(low, values, pieces, kind, copies=False))


def _by_piece(
    low: Lowering, registers: list[Operand], pieces: list[FragmentPiece], kind: str, *, copies: bool
) -> list[list[Operand]]:
    """Return the registers of each piece. copies: there may be several times as many."""
    each = pieces[0].count // _per_register(kind)
    needed = each * len(pieces)
    if len(registers) % needed or (len(registers) > needed and not copies):
        raise low.unsupported_form()
    return [registers[at : at + each] for at in range(0, needed, each)]


def _multiply_fragments(low: Lowering, item: Instruction, mods: list[str]) -> None:
    m, n, k = _extents(mods)
    types = [t for t in mods if t in ELEMENT_BITS]
    result, *kinds, start = types
    left, right = kinds or ("f16", "f16")
    word = _word(result)
    d = low.vector(item.operands[0], word, output=True)
    a, b, c = (low.vector(text, word, output=False) for text in item.operands[1:])
    if m < n and m == 8:
        a, b, m, n, left, right = b, a, n, m, right, left
    high, per = min(m, 16), _per_register(left)
    per_left, per_right = high * k // 32 // per, 8 * k // 32 // per
    wider = result == "f16" and start == "f32"  # the sum is rounded to halves afterwards
    inner = "f32" if wider else result
    each, of_start, of_sum = (high // 4 // _per_register(t) for t in (result, start, inner))
    tiles = [(top, beside) for top in range(m // high) for beside in range(n // 8)]
    if len(d) != each * len(tiles) or len(c) != of_start * len(tiles):
        raise low.unsupported_form()
    # Registers are read before any is written, and the tiles are computed one after the other.
    apart = wider or bool(set(_registers(d)) & set(_registers([*a, *b, *c])))
    width = 8 if word == "b64" else 4
    sums: list[Operand] = [low.register(width) for _ in range(of_sum * len(tiles))] if apart else d
    kind, form = product_kind(low, left, right, mods)
    for index, (top, beside) in enumerate(tiles):
        begin = _converted_start(low, c[of_start * index : of_start * (index + 1)], start, inner)
        low.emit_guarded(
            f"mma.m{high}n8k{k}.{inner}.{kind}",
            [],
            extra=[
                *sums[of_sum * index : of_sum * (index + 1)],
                *a[per_left * top : per_left * (top + 1)],
                *b[per_right * beside : per_right * (beside + 1)],
                *begin,
                *form,
            ],
            flags=OWN_TAINT,
            flops=product_flops(inner, high, k),
        )
    for at, register in enumerate(d if apart else []):
        if wider:
            low.emit_guarded("cvt.f16x2.f32", [register, sums[2 * at + 1], sums[2 * at]])
        else:
            low.emit_guarded(f"mov.{word}", [register, sums[at]])


def _converted_start(low: Lowering, values: list[Operand], start: str, inner: str) -> list[Operand]:
    """C in the type that sums have."""
    if start == inner:
        return values
    converted: list[Operand] = []
    for value in values:
        halves: list[Operand] = [low.register(4), low.register(4)]
        low.emit("unpack.b32", [*halves, value])
        converted += [low.result("cvt.r.f32.f16", 4, half) for half in halves]
    return converted


def _registers(operands: list[Operand]) -> list[Register]:
    return [operand for operand in operands if isinstance(operand, Register)]
