"""Bank conflicts of shared accesses, and remedies that were tried on the addresses.

The sampler tells where the 32 lanes of each access go. A remedy moves every access to the same
array; the engine counts the wavefronts again. A remedy helps if at least half of the extra
wavefronts go and every access stays aligned.

The length of a tile's rows is not in the machine code. Lanes may be one row apart, or two, four and
so on; a remedy that helps for long rows only says so.
"""

import ctypes
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from math import inf

import msgspec

from grader.model.accesses import MATRICES, MATRIX_ROW, WORD, SharedAccess, distance
from ptxsim import Engine
from ptxsim.plan import Record
from ptxsim.text import Message, clauses, counted, phrase

_BANKS = 32
_SHORTEST_ROW = 4  # words
_ENOUGH = 0.5  # share of the extra wavefronts that may be left

Mover = Callable[[int], int]  # word of an array → its word after the remedy


class Remedy(Record):
    """A change to the layout or to the lanes that the model has tried."""

    words: Message
    kept: float  # share of the extra wavefronts of the array that are left
    always: bool  # for rows of any length that is possible


class Conflict(Record):
    """The access with the most extra wavefronts."""

    at: SharedAccess
    share: float  # of its line in the extra wavefronts of all such instructions
    lanes: tuple[int, int]  # two lanes that read different words of one bank
    apart: int  # words between them
    remedy: Remedy | None

    @property
    def figures(self) -> dict[str, float]:
        """The figures that every sentence about it gives."""
        return {"one": self.lanes[0], "other": self.lanes[1], "apart": self.apart}


def worst(accesses: Sequence[SharedAccess], unroll: int, engine: Engine) -> Conflict | None:
    """The access to blame, and what helps. ``unroll``: steps along K in one iteration."""
    extras: defaultdict[tuple[str | None, int | None], float] = defaultdict(float)
    for each in accesses:
        extras[each.file, each.line] += each.extra
    if not max(extras.values(), default=0.0):
        return None
    place = max(extras, key=lambda key: extras[key])
    here = [each for each in accesses if (each.file, each.line) == place]
    at = max(here, key=lambda each: each.extra)
    pair = _clash(at)
    if pair is None:
        return None
    first, second = (at.lanes[lane] or 0 for lane in pair)
    together = [each for each in accesses if each.array == at.array]
    found = list(_remedies(at, together, unroll, engine))
    return Conflict(
        at=at,
        share=sum(each.extra for each in here if each.opcode == at.opcode)
        / sum(each.extra for each in accesses if each.opcode == at.opcode),
        lanes=pair,
        apart=abs(second - first),
        # The simplest that always helps, else the simplest that does for some rows.
        remedy=next((each for each in found if each.always), next(iter(found), None)),
    )


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


# --- remedies


def _remedies(
    at: SharedAccess, together: Sequence[SharedAccess], unroll: int, engine: Engine
) -> Iterator[Remedy]:
    """Yield the remedies that help, the simplest first. ``together``: all accesses to the array
    that ``at`` accesses. ``unroll``: steps along K in one iteration.

    Lanes that are no further apart than the words that a thread reads in one step along K lie in
    one row of the tile.
    """
    apart, vector = distance(at.lanes), max(each.width for each in together) // WORD
    loads = [each for each in together if each.in_loop and each.opcode == "LDS"]
    each_step = round(sum(each.width // WORD for each in loads) / max(unroll, 1))
    layouts: list[tuple[Message, Callable[[int], Mover]]] = []
    rows: list[int] = []
    if at.opcode in MATRICES:
        apart = distance(at.lanes[:8] if at.width == MATRIX_ROW else at.lanes[::4])
        rows = [apart] if apart >= _SHORTEST_ROW else []
        words = phrase("pad each row of the tile by 16 bytes, which keeps the rows aligned")
        swizzle = phrase(
            "swizzle: XOR the index of each 16 bytes within a row with the row's index modulo 8"
        )
        layouts = [(words, lambda row: _padded(row, 4)), (swizzle, lambda row: _swizzled(row, 4))]
    elif apart > max(each_step, vector):
        rows = _rows(apart, loads)
        pad, words = 1, phrase("pad each row of the tile by 1")
        swizzle = phrase("XOR the index of the column with that of the row")
        if vector > 1:
            pad, words = 4, phrase("pad each row of the tile by 4, which keeps float4 aligned")
            swizzle = phrase(
                "XOR the index of the column's group of {values} values with that of the row",
                values=vector,
            )
        layouts.append((words, lambda row: _padded(row, pad)))
        layouts.append((swizzle, lambda row: _swizzled(row, vector)))
    for words, layout in layouts:
        yield from _for_rows(words, layout, rows, together, engine)
    if at.opcode == "LDS" and layouts and each_step > 1:
        words = phrase("let neighbouring threads take neighbouring rows of the tile")
        yield from _of_lanes(words, at, [_neighbours(at, row) for row in rows[1:]], engine)
    elif at.opcode == "LDS" and not layouts and apart > vector:
        moved = _neighbours(at, vector)
        yield from _of_lanes(_other_lanes(moved, vector), at, [moved], engine)


def _rows(apart: int, loads: Sequence[SharedAccess]) -> list[int]:
    """How long the tile's rows may be, the longest first: lanes are 1, 2, 4, … rows apart. What a
    load of the main loop takes without a gap lies in one row."""
    taken = [
        [word for word in each.lanes if word is not None]
        for each in loads
        if distance(each.lanes) <= each.width // WORD
    ]
    shortest = max([_SHORTEST_ROW, *(max(words) - min(words) for words in taken)])
    found = [apart >> halved for halved in range(8) if apart % (1 << halved) == 0]
    return [row for row in found if row >= shortest] or [apart]


def _for_rows(
    words: Message,
    layout: Callable[[int], Mover],
    rows: Sequence[int],
    together: Sequence[SharedAccess],
    engine: Engine,
) -> Iterator[Remedy]:
    """A layout, and how long rows must be for it where that matters."""
    left = []
    for row in rows:
        moved = [_moved(each, layout(row)) for each in together]
        left.append(_share_left(together, moved, engine))
    helps = list(takewhile(lambda share: share <= _ENOUGH, left))
    if rows and len(helps) >= len(rows) / 2:
        always = len(helps) == len(rows)
        if not always:
            least = phrase("it helps if its rows hold {least} or more values")
            words = clauses((words, least.given(least=rows[len(helps) - 1])))
        yield Remedy(words=words, kept=helps[0], always=always)


def _of_lanes(
    words: Message, at: SharedAccess, moved: Sequence[SharedAccess], engine: Engine
) -> Iterator[Remedy]:
    """``moved``: the access with other lanes, for each length that rows may have."""
    left = [_share_left([at], [each], engine) for each in moved]
    if left and max(left) <= _ENOUGH:
        yield Remedy(words=words, kept=left[-1], always=True)


def _other_lanes(moved: SharedAccess, vector: int) -> Message:
    values = len({word for word in moved.lanes if word is not None})
    return counted(
        "padding rows does not help, because these words lie in one row; let neighbouring threads "
        "take neighbouring groups of one value, and give each thread groups that are {apart} "
        "values apart instead of one long run",
        "padding rows does not help, because these words lie in one row; let neighbouring threads "
        "take neighbouring groups of {count} values, and give each thread groups that are {apart} "
        "values apart instead of one long run",
        vector,
        apart=values * vector,
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


def _moved(access: SharedAccess, move: Mover) -> SharedAccess:
    lanes = tuple(None if word is None else move(word) for word in access.lanes)
    return msgspec.structs.replace(access, lanes=lanes)


def _neighbours(access: SharedAccess, apart: int) -> SharedAccess:
    """The same access if the lanes' words lay ``apart``, in the same order."""
    words = sorted({word for word in access.lanes if word is not None})
    vector = access.width // WORD
    place = {word: words[0] // vector * vector + n * apart for n, word in enumerate(words)}
    return _moved(access, place.__getitem__)


def _share_left(
    before: Sequence[SharedAccess], after: Sequence[SharedAccess], engine: Engine
) -> float:
    """The share of extra wavefronts that is left; infinite where an access is misaligned, or where
    there were none."""
    if any(word is not None and word * WORD % a.width for a in after for word in a.lanes):
        return inf
    extra, left = (
        sum(each.requests * (_counted(each, engine) - each.ideal) for each in accesses)
        for accesses in (before, after)
    )
    return max(left, 0.0) / extra if extra > 0 else inf


def _counted(access: SharedAccess, engine: Engine) -> int:
    """Wavefronts of one request."""
    at = (ctypes.c_uint32 * 32)(*((word or 0) * WORD for word in access.lanes))
    mask = sum(1 << lane for lane, word in enumerate(access.lanes) if word is not None)
    return int(engine.library.sim_shared_wavefronts(at, mask, access.width))
