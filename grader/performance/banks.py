"""Bank conflicts of shared accesses, and remedies that were tried on the addresses.

The sampler tells where the 32 lanes of each access go. A remedy moves every access to the same
array; the engine counts the wavefronts again. A remedy helps if at least half of the extra
wavefronts go and every access stays aligned.

The length of a tile's rows is not in the machine code. Lanes may be one row apart, or two, four and
so on; a remedy that helps for long rows only says so.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

import msgspec

from grader.model import Message, Record, counted, phrase
from grader.performance.shared_accesses import (
    MATRICES,
    WORD,
    SharedAccess,
    distance,
    rows_apart,
)
from ptxsim.engine import Engine

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
        remedy=_best(at, together, unroll, engine),
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


def _best(
    at: SharedAccess, together: Sequence[SharedAccess], unroll: int, engine: Engine
) -> Remedy | None:
    """The simplest that helps, one that always does if there is any. ``together``: all accesses to
    the array that ``at`` accesses. ``unroll``: steps along K in one iteration."""
    found = list(_remedies(at, together, unroll, engine))
    return next((each for each in found if each.always), next(iter(found), None))


def _remedies(
    at: SharedAccess, together: Sequence[SharedAccess], unroll: int, engine: Engine
) -> Iterator[Remedy]:
    """Those that help, the simplest first. ``together``: all accesses to the same array.

    Lanes that are no further apart than the words that a thread reads in one step along K lie in
    one row of the tile.
    """
    apart, vector = rows_apart(at), max(each.width for each in together) // WORD
    loads = [each for each in together if each.in_loop and each.opcode == "LDS"]
    each_step = round(sum(each.width // WORD for each in loads) / max(unroll, 1))
    if at.opcode in MATRICES:
        rows = [apart] if apart >= _SHORTEST_ROW else []
        words = phrase("pad each row of the tile by 16 bytes, which keeps the rows aligned")
        yield from _for_rows(words, lambda row: _padded(row, 4), rows, together, engine)
        words = phrase(
            "swizzle: XOR the index of each 16 bytes within a row with the row's index modulo 8"
        )
        yield from _for_rows(words, lambda row: _swizzled(row, 4), rows, together, engine)
    elif apart > max(each_step, vector):
        rows = _rows(apart, loads)
        swizzle = phrase("XOR the index of the column with that of the row")
        if vector == 1:
            words = phrase("pad each row of the tile by 1")
            yield from _for_rows(words, lambda row: _padded(row, 1), rows, together, engine)
        else:
            swizzle = phrase(
                "XOR the index of the column's group of {values} values with that of the row",
                values=vector,
            )
        words = phrase("pad each row of the tile by 4, which keeps float4 aligned")
        yield from _for_rows(words, lambda row: _padded(row, 4), rows, together, engine)
        yield from _for_rows(swizzle, lambda row: _swizzled(row, vector), rows, together, engine)
        if at.opcode == "LDS" and each_step > 1:
            words = phrase("let neighbouring threads take neighbouring rows of the tile")
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
        if distance(each.lanes) <= each.width // WORD
    ]
    shortest = max([_SHORTEST_ROW, *spans])
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
    left = [_left(together, layout(row), engine) for row in rows]
    if not left:
        return
    helps = list(takewhile(lambda share: share is not None and share <= _ENOUGH, left))
    if len(helps) >= len(rows) / 2:
        shortest = rows[len(helps) - 1]
        always = len(helps) == len(rows)
        if not always:
            words = phrase(
                "{remedy}, if its rows hold {shortest} or more values",
                remedy=words,
                shortest=shortest,
            )
        yield Remedy(words=words, kept=helps[0] or 0.0, always=always)


def _of_lanes(
    words: Message, at: SharedAccess, moved: Sequence[SharedAccess], engine: Engine
) -> Iterator[Remedy]:
    """``moved``: the access with other lanes, for each length that rows may have."""
    left = [_share([at], [each], engine) for each in moved]
    if left and all(share is not None and share <= _ENOUGH for share in left):
        yield Remedy(words=words, kept=left[-1] or 0.0, always=True)


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


def _neighbours(access: SharedAccess, apart: int) -> SharedAccess:
    """The same access if the lanes' words lay ``apart``, in the same order."""
    words = sorted({word for word in access.lanes if word is not None})
    vector = access.width // WORD
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
        if any(word is not None and word * WORD % each.width for word in each.lanes):
            return None
    extra = sum(each.requests * (_counted(each, engine) - each.ideal) for each in before)
    left = sum(each.requests * (_counted(each, engine) - each.ideal) for each in after)
    return max(left, 0.0) / extra if extra > 0 else None


def _counted(access: SharedAccess, engine: Engine) -> int:
    """Wavefronts of one request."""
    at = (ctypes.c_uint32 * 32)(*((word or 0) * WORD for word in access.lanes))
    mask = sum(1 << lane for lane, word in enumerate(access.lanes) if word is not None)
    return int(engine.library.sim_shared_wavefronts(at, mask, access.width))
