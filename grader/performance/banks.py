"""Bank conflicts of shared accesses, and remedies that were tried on the addresses.

The sampler tells where the 32 lanes of each access go. A remedy moves every access to the same
array; the engine counts the wavefronts again. A remedy helps if at least half of the extra
wavefronts go and every access stays aligned.

The length of a tile's rows is not in the machine code. Lanes may be one row apart, or two, four and
so on; a remedy that helps for long rows only says so.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, takewhile

import msgspec

from grader.model import Record
from grader.performance.accesses import Access
from grader.performance.sass import Instruction
from ptxsim.engine import Engine

_WORD = 4  # bytes
_BANKS = 32
_OF_SHARED = ("LDS", "STS", "LDGSTS")
_SHORTEST_ROW = 4  # words
_ENOUGH = 0.5  # share of the extra wavefronts that may be left

Lanes = tuple[int | None, ...]
Mover = Callable[[int], int]  # word of an array → its word after the remedy


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


class Remedy(Record):
    """A change to the layout or to the lanes that the model has tried."""

    words: str
    kept: float  # share of the extra wavefronts of the array that are left
    always: bool  # for rows of any length that is possible


class Conflict(Record):
    """The access with the most extra wavefronts."""

    at: SharedAccess
    share: float  # of its line in the extra wavefronts of all such instructions
    lanes: tuple[int, int]  # two lanes that read different words of one bank
    apart: int  # words between them
    remedy: Remedy | None


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
    wavefronts, ideal = _wavefronts(access, width)
    return SharedAccess(
        opcode=item.base,
        file=item.file,
        line=item.line,
        row=row.row,
        in_loop=in_loop,
        requests=access.requests,
        wavefronts=wavefronts / row.requests,
        ideal=ideal / row.requests,
        width=width,
        array=row.array,
        lanes=tuple(None if at is None else at // width * width // _WORD for at in row.lanes),
    )


def _wavefronts(access: Access, width: int) -> tuple[int, int]:
    """Of all requests of the PTX instruction: all, and without conflicts."""
    row = access.row
    own = row.cost if width == row.width else row.cost8 if width == 8 else row.cost16
    return own, {8: row.passes8, 16: row.passes16}.get(width, row.requests)


def worst(accesses: Sequence[SharedAccess], unroll: int, engine: Engine) -> Conflict | None:
    """The access to blame, and what helps. ``unroll``: steps along K in one iteration."""
    extras: dict[tuple[str | None, int | None], float] = {}
    for each in accesses:
        extras[each.file, each.line] = extras.get((each.file, each.line), 0.0) + each.extra
    if not extras or not max(extras.values()):
        return None
    place = max(extras, key=lambda key: extras[key])
    here = [each for each in accesses if (each.file, each.line) == place]
    at = max(here, key=lambda each: each.extra)
    pair = _clash(at)
    if pair is None:
        return None
    together = [each for each in accesses if each.array == at.array]
    first, second = (at.lanes[lane] or 0 for lane in pair)
    return Conflict(
        at=at,
        share=sum(each.extra for each in here if each.opcode == at.opcode)
        / sum(each.extra for each in accesses if each.opcode == at.opcode),
        lanes=pair,
        apart=abs(second - first),
        remedy=_best(list(_remedies(at, together, unroll, engine))),
    )


def _best(found: Sequence[Remedy]) -> Remedy | None:
    return next((each for each in found if each.always), next(iter(found), None))


def side_by_side(accesses: Sequence[SharedAccess]) -> bool:
    """Whether what the threads of a warp read in one step along K lies side by side: their lanes
    read neighbouring words, or one thread's loads do, one after the other. ``accesses``: loads of
    one array."""
    steps: list[int] = []
    for one, other in pairwise(accesses):
        lane = next(n for n, word in enumerate(one.lanes) if word is not None)
        before, after = one.lanes[lane], other.lanes[lane]
        if before is not None and after is not None:
            steps.append(abs(after - before) * _WORD // one.width)
    common = Counter(steps).most_common(1)
    return distance(accesses[0].lanes) == 1 or bool(common and common[0][0] == 1)


def distance(lanes: Lanes) -> int:
    """The least distance between words that different lanes access; 0 if all access one word."""
    words = sorted({word for word in lanes if word is not None})
    return min((b - a for a, b in pairwise(words)), default=0)


def _clash(access: SharedAccess) -> tuple[int, int] | None:
    """Two lanes, the first of its bank and another, with different words of one bank."""
    first: dict[int, tuple[int, int]] = {}
    for lane, word in enumerate(access.lanes):
        if word is None:
            continue
        other, known = first.setdefault(word % _BANKS, (lane, word))
        if known != word:
            return other, lane
    return None


# --- remedies ---------------------------------------------------------------------------------


def _remedies(
    at: SharedAccess, together: Sequence[SharedAccess], unroll: int, engine: Engine
) -> Iterator[Remedy]:
    """Those that help, the simplest first. ``together``: all accesses to the same array.

    Lanes that are no further apart than the words that a thread reads in one step along K lie in
    one row of the tile.
    """
    apart, vector = distance(at.lanes), max(each.width for each in together) // _WORD
    loads = [each for each in together if each.in_loop and each.opcode == "LDS"]
    each_step = round(sum(each.width // _WORD for each in loads) / max(unroll, 1))
    if apart > max(each_step, vector):
        rows = _rows(apart, loads)
        unit = "column" if vector == 1 else f"column's group of {vector} values"
        if vector == 1:
            words = "pad each row of the tile by 1"
            yield from _for_rows(words, lambda row: _padded(row, 1), rows, together, engine)
        words = "pad each row of the tile by 4, which keeps float4 aligned"
        yield from _for_rows(words, lambda row: _padded(row, 4), rows, together, engine)
        words = f"XOR the index of the {unit} with that of the row"
        yield from _for_rows(words, lambda row: _swizzled(row, vector), rows, together, engine)
        if at.opcode == "LDS" and each_step > 1:
            words = "let neighbouring threads take neighbouring rows of the tile"
            yield from _of_lanes(words, at, [_neighbours(at, row) for row in rows[1:]], engine)
    elif at.opcode == "LDS" and apart > vector:
        moved = _neighbours(at, vector)
        yield from _of_lanes(_other_lanes(moved, vector), at, [moved], engine)


def _rows(apart: int, loads: Sequence[SharedAccess]) -> list[int]:
    """How long the tile's rows may be, the longest first: lanes are 1, 2, 4, … rows apart. What a
    load of the main loop takes without a gap lies in one row."""
    spans = [
        max(word for word in each.lanes if word is not None)
        - min(word for word in each.lanes if word is not None)
        for each in loads
        if distance(each.lanes) <= each.width // _WORD
    ]
    shortest = max([_SHORTEST_ROW, *spans])
    found = [apart >> halved for halved in range(8) if apart % (1 << halved) == 0]
    return [row for row in found if row >= shortest] or [apart]


def _for_rows(
    words: str,
    layout: Callable[[int], Mover],
    rows: Sequence[int],
    together: Sequence[SharedAccess],
    engine: Engine,
) -> Iterator[Remedy]:
    """A layout, and how long rows must be for it where that matters."""
    left = [_left(together, layout(row), engine) for row in rows]
    helps = list(takewhile(lambda share: share is not None and share <= _ENOUGH, left))
    if len(helps) >= len(rows) / 2:
        shortest = rows[len(helps) - 1]
        always = len(helps) == len(rows)
        only = "" if always else f", if its rows hold {shortest} or more values"
        yield Remedy(words=words + only, kept=helps[0] or 0.0, always=always)


def _of_lanes(
    words: str, at: SharedAccess, moved: Sequence[SharedAccess], engine: Engine
) -> Iterator[Remedy]:
    """``moved``: the access with other lanes, for each length that rows may have."""
    left = [_share([at], [each], engine) for each in moved]
    if left and all(share is not None and share <= _ENOUGH for share in left):
        yield Remedy(words=words, kept=left[-1] or 0.0, always=True)


def _other_lanes(moved: SharedAccess, vector: int) -> str:
    count = len({word for word in moved.lanes if word is not None})
    group = "one value" if vector == 1 else f"{vector} values"
    return (
        "padding rows does not help, because these words lie in one row; let neighbouring threads "
        f"take neighbouring groups of {group}, and give each thread groups that are "
        f"{count * vector} values apart instead of one long run"
    )


def _padded(row: int, pad: int) -> Mover:
    return lambda word: word + word // row * pad


def _swizzled(row: int, vector: int) -> Mover:
    """Columns change places within their row, ``vector`` words at a time."""
    places = max(row // vector, 1)
    places = 1 << (places.bit_length() - 1)

    def move(word: int) -> int:
        line, column = divmod(word, row)
        group, within = divmod(column, vector)
        if group < places:
            group ^= line % places
        return line * row + group * vector + within

    return move


def _neighbours(access: SharedAccess, apart: int) -> SharedAccess:
    """The same access if the lanes' words lay ``apart``, in the same order."""
    words = sorted({word for word in access.lanes if word is not None})
    vector = access.width // _WORD
    place = {word: words[0] // vector * vector + n * apart for n, word in enumerate(words)}
    lanes = tuple(None if word is None else place[word] for word in access.lanes)
    return msgspec.structs.replace(access, lanes=lanes)


def _left(accesses: Sequence[SharedAccess], move: Mover, engine: Engine) -> float | None:
    """The share of extra wavefronts that ``move`` leaves. None where an access is misaligned."""
    moved = [
        msgspec.structs.replace(
            each, lanes=tuple(None if word is None else move(word) for word in each.lanes)
        )
        for each in accesses
    ]
    return _share(accesses, moved, engine)


def _share(
    before: Sequence[SharedAccess], after: Sequence[SharedAccess], engine: Engine
) -> float | None:
    for each in after:
        if any(word is not None and word * _WORD % each.width for word in each.lanes):
            return None
    extra = sum(each.requests * (_counted(each, engine) - each.ideal) for each in before)
    left = sum(each.requests * (_counted(each, engine) - each.ideal) for each in after)
    return max(left, 0.0) / extra if extra > 0 else None


def _counted(access: SharedAccess, engine: Engine) -> int:
    """Wavefronts of one request."""
    at = (ctypes.c_uint32 * 32)(*((word or 0) * _WORD for word in access.lanes))
    mask = sum(1 << lane for lane, word in enumerate(access.lanes) if word is not None)
    return int(engine.library.sim_shared_wavefronts(at, mask, access.width))
