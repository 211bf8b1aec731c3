"""Accesses to shared memory, and where their lanes go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from grader.model import Record
from grader.performance.accesses import Access
from grader.performance.sass import Instruction

WORD = 4  # bytes
MATRICES = ("LDSM", "STSM")  # of 8 rows of 16 bytes; lanes hold the rows' addresses
_OF_SHARED = ("LDS", "STS", "LDGSTS", *MATRICES)
MATRIX_ROW = 16  # bytes

Lanes = tuple[int | None, ...]


class SharedAccess(Record):
    """A machine instruction that accesses shared memory, in the sampled blocks."""

    opcode: str
    file: str | None
    line: int | None
    row: int  # line of the PTX
    in_loop: bool  # in the main loop
    requests: float
    wavefronts: float  # for each request
    ideal: float  # without bank conflicts
    width: int  # bytes that a lane moves
    array: int
    lanes: Lanes  # words from the start of the array

    @property
    def extra(self) -> float:
        return self.requests * max(self.wavefronts - self.ideal, 0.0)


def shared_accesses(of: Iterable[Access], loop: Sequence[Instruction]) -> tuple[SharedAccess, ...]:
    """Accesses whose addresses are known, in the order of the PTX. loop: the main loop's code."""
    inside = {item.address for item in loop}
    found = (
        _shared(each, each.item.address in inside)
        for each in of
        if each.item.base in _OF_SHARED and each.row.lanes and each.row.requests
    )
    return tuple(sorted(found, key=lambda access: access.row))


def _shared(access: Access, in_loop: bool) -> SharedAccess:
    item, row = access.item, access.row
    width = max(item.bits // 8, row.width)
    if item.base in MATRICES:
        # ptxas makes them of wmma fragments, too, whose PTX is modelled as accesses of 4 bytes.
        width = min(row.width, MATRIX_ROW)
    wavefronts, ideal = _wavefronts(access, width)
    return SharedAccess(
        opcode=item.base,
        file=item.file,
        line=item.line,
        row=row.row,
        in_loop=in_loop,
        requests=access.requests * row.parts,
        wavefronts=wavefronts / row.requests,
        ideal=ideal / row.requests,
        width=width,
        array=row.array,
        lanes=tuple(None if at is None else at // width * width // WORD for at in row.lanes),
    )


def _wavefronts(access: Access, width: int) -> tuple[int, int]:
    """Of all requests of the PTX instruction: all, and without conflicts."""
    row = access.row
    own = row.cost if width == row.width else row.cost8 if width == 8 else row.cost16
    return own, {8: row.passes8, 16: row.passes16}.get(width, row.requests)


def side_by_side(accesses: Sequence[SharedAccess]) -> bool:
    """Whether what the threads of a warp read in one step along K lies side by side: their lanes
    read neighbouring words, or one thread's loads do, one after the other. ``accesses``: loads of
    one array."""
    steps: list[int] = []
    for one, other in pairwise(accesses):
        lane = next(n for n, word in enumerate(one.lanes) if word is not None)
        before, after = one.lanes[lane], other.lanes[lane]
        if before is not None and after is not None:
            steps.append(abs(after - before) * WORD // one.width)
    common = Counter(steps).most_common(1)
    return distance(accesses[0].lanes) == 1 or bool(common and common[0][0] == 1)


def rows_apart(access: SharedAccess) -> int:
    """The least distance between what the lanes access, in words; of matrices, between rows."""
    if access.opcode not in MATRICES:
        return distance(access.lanes)
    return distance(access.lanes[:8] if access.width == MATRIX_ROW else access.lanes[::4])


def distance(lanes: Lanes) -> int:
    """The least distance between words that different lanes access; 0 if all access one word."""
    words = sorted({word for word in lanes if word is not None})
    return min((b - a for a, b in pairwise(words)), default=0)
