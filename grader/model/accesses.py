"""The traffic that the machine's memory instructions cause, and what it costs.

Each instruction has the lanes' addresses of its PTX instruction, at its own width.
"""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from grader.build import SassFunction, SassInstruction
from grader.model.records import AccessMap, Traffic
from ptxsim.findings import RowCount
from ptxsim.plan import Record

MATRICES = ("LDSM", "STSM")  # of 8 rows of 16 bytes; lanes hold the rows' addresses
MATRIX_ROW = 16  # bytes
WORD = 4  # bytes
SECTOR = 32  # bytes
_BULK = ("UTMALDG", "UTMASTG", "UBLKCP")
_OF_SHARED = ("LDS", "STS", "LDGSTS", *MATRICES)
_ATOMIC = ("ATOMS", "ATOMG", "REDG")
_MOVING = ("LDG", "STG", *_OF_SHARED, *_BULK, *_ATOMIC)
# Their addresses say which memory they access: the names in global and in shared memory.
_GENERIC = {
    "LD": ("LDG", "LDS"),
    "ST": ("STG", "STS"),
    "ATOM": ("ATOMG", "ATOMS"),
    "RED": ("REDG", "ATOMS"),
}
_LANES = 32
_WAVEFRONT = 128  # bytes
_MOST = 3  # accesses that are drawn

Lanes = tuple[int | None, ...]


class MemoryAccess(Record):
    """A memory instruction in the sampled blocks."""

    item: SassInstruction
    row: RowCount  # of the PTX instruction it was made from
    requests: float  # executions by a warp with at least one lane on

    @property
    def base(self) -> str:
        """The opcode without modifiers, of a generic one the one that accesses the same memory."""
        return _base(self.item, self.row)

    @property
    def sectors(self) -> tuple[float, float]:
        """Count sectors of global memory for a request, and the least that hold what its lanes
        move; (0, 0) of other memory."""
        row = self.row
        if not row.lines or not row.requests:
            return 0.0, 0.0
        return row.cost / row.requests, max(row.active / row.warps * row.width / SECTOR, 1.0)


def _base(item: SassInstruction, row: RowCount) -> str:
    in_global, in_shared = _GENERIC.get(item.base, (item.base, item.base))
    return in_global if row.lines else in_shared


def accesses(
    function: SassFunction, rows: Mapping[int, RowCount], runs: Sequence[float]
) -> Iterator[MemoryAccess]:
    """rows: by line of the PTX. runs: executions of every block of ``function``.

    Instructions made from one PTX instruction share its requests as they share its executions. If
    ptxas replaced a branch with a predicate, the machine executes more than it requests. If one
    load of 16 bytes serves four iterations of a loop, it executes less than the PTX requests.
    """
    made: dict[tuple[str, int], list[tuple[SassInstruction, float]]] = {}
    for index, times in enumerate(runs):
        for item in function.of_block(index):
            row = rows.get(item.ptx_line or 0)
            if row is None or not row.width or item.never:
                continue
            if (base := _base(item, row)) in _MOVING:
                made.setdefault((base, row.row), []).append((item, times))
    for (_, line), copies in made.items():
        total = sum(times for _, times in copies)
        on = min(1.0, _asked(rows[line]) / total) if total else 0.0
        for item, times in copies:
            yield MemoryAccess(item=item, row=rows[line], requests=times * on)


def _asked(row: RowCount) -> int:
    """Executions that moved something. A bulk copy may reach several blocks."""
    return row.source_requests if row.source_bytes and not row.source_lines else row.requests


def traffic(of: Iterable[MemoryAccess], factor: float) -> dict[str, Traffic]:
    """Sums for each opcode, times ``factor``; "copied" is the shared side of LDGSTS, "bulk" that of
    bulk copies, which are "UTMALDG" and "UTMASTG" without tensor maps, too."""
    names = ("requests", "cost", "passes", "lines", "bytes")
    sums = {kind: [0.0] * len(names) for kind in (*_MOVING, "copied", "bulk")}
    for each in of:
        if not _asked(each.row):
            continue
        share = each.requests / _asked(each.row) * factor
        for kind, numbers in _parts(each.item, each.row):
            for at, number in enumerate(numbers):
                sums[kind][at] += number * share
    return {
        kind: Traffic(**dict(zip(names, map(round, numbers), strict=True)))
        for kind, numbers in sums.items()
    }


def _parts(item: SassInstruction, row: RowCount) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Requests, cost, passes, lines and bytes, as if ``item`` made all requests of the row."""
    width, base = item.bits // 8, _base(item, row)
    if base in _BULK:
        to_global = base == "UTMASTG" or item.opcode.startswith("UBLKCP.G")
        asked = (row.source_requests, row.source_sectors, 0, 0, row.source_bytes)
        yield ("UTMASTG" if to_global else "UTMALDG"), asked
        yield "bulk", (row.requests, row.cost, row.cost, 0, row.cost * _WAVEFRONT)
    elif base in MATRICES:
        # Where ptxas made it of a wmma fragment, the PTX is modelled as accesses of 4 or 8 bytes.
        merged = width / row.width if row.width < MATRIX_ROW else 1
        moved = row.requests * width * _LANES
        yield base, (row.requests, row.cost * merged, moved / _WAVEFRONT, 0, moved)
    elif base in _ATOMIC:
        # To add FP32 in shared memory is a loop in which one lane after the other changes a word;
        # whole numbers are added at once.
        in_shared, turns = base == "ATOMS", max(Counter(row.lanes).values(), default=1)
        cost = turns * row.requests * (".CAS" in item.opcode) if in_shared else row.cost
        passes = row.cost if in_shared else row.requests * turns_in_l2(row)
        asked = (row.requests, cost, passes, row.lines, changes(item, row) * row.width)
        yield "ATOMS" if in_shared else "REDG", asked
    elif base == "LDGSTS":
        brought, warp, lines = row.source_requests, row.width * _LANES, row.source_lines
        yield "LDGSTS", (brought, row.source_sectors, 0, lines, brought * warp)
        # Each line is written to shared memory separately, and zeros after the lines, in as many
        # wavefronts as if all lanes wrote them. This takes no time if the copy bypasses the L1:
        # otherwise the fixture cp_async_ptx would exceed its bound.
        waves = max(row.cost, lines + row.source_zeros)
        passes = row.cost if ".BYPASS" in item.opcode else waves
        yield "copied", (row.requests, waves, passes, 0, row.requests * warp)
    else:
        cost = row.cost if width <= row.width else row.cost8 if width == 8 else row.cost16
        passes = _ideal(row, max(width, row.width)) if base in ("LDS", "STS") else 0
        yield base, (row.requests, cost, passes, row.lines, row.requests * width * _LANES)


def turns_in_l2(row: RowCount) -> int:
    """Return how many turns a request of atomics takes: in each sector, one lane after another
    changes the same word."""
    sectors: dict[int, Counter[int]] = {}
    for at in row.lanes:
        if at is not None:
            sectors.setdefault(at // SECTOR, Counter())[at] += 1
    return sum(max(words.values()) for words in sectors.values())


def added_up(item: SassInstruction, row: RowCount) -> bool:
    """Whether one lane of a warp changes a word for all. Where all lanes add integers to one word,
    ptxas lets one lane add their sum."""
    together = len({at for at in row.lanes if at is not None}) == 1
    floats = any(part[:1] == "F" and part[1:].isdigit() for part in item.opcode.split("."))
    return together and item.guard is not None and not floats


def changes(item: SassInstruction, row: RowCount) -> int:
    """Return how often all requests of an atomic change a word."""
    return row.requests if added_up(item, row) else row.active


def _ideal(row: RowCount, width: int) -> int:
    """The wavefronts of all requests without bank conflicts, if a lane moves ``width`` bytes."""
    return {8: row.passes8, 16: row.passes16}.get(width, row.requests)


# --- shared accesses ---------------------------------------------------------------------------


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


def shared_accesses(
    of: Iterable[MemoryAccess], loop: Sequence[SassInstruction]
) -> tuple[SharedAccess, ...]:
    """Accesses whose addresses are known, in the order of the PTX. loop: the main loop's code."""
    inside = {item.address for item in loop}
    found = []
    for each in of:
        item, row = each.item, each.row
        if each.base not in _OF_SHARED or not row.lanes or not row.requests:
            continue
        width = max(item.bits // 8, row.width)
        if item.base in MATRICES:
            # ptxas makes them of wmma fragments, too, whose PTX is modelled as accesses of 4 bytes.
            width = min(row.width, MATRIX_ROW)
        cost = row.cost if width == row.width else row.cost8 if width == 8 else row.cost16
        found.append(
            SharedAccess(
                opcode=item.base,
                file=item.file,
                line=item.line,
                row=row.row,
                in_loop=item.address in inside,
                requests=each.requests * row.parts,
                wavefronts=cost / row.requests,
                ideal=_ideal(row, width) / row.requests,
                width=width,
                array=row.array,
                lanes=tuple(
                    None if at is None else at // width * width // WORD for at in row.lanes
                ),
            )
        )
    return tuple(sorted(found, key=lambda access: access.row))


_Drawn = tuple[float, Lanes, int, float, float]  # bytes moved; the rest as in ``AccessMap``


def most_moving(of: Sequence[MemoryAccess]) -> Iterator[AccessMap]:
    """Yield, of each of the lines that move most bytes, the access that moves most."""
    lines: defaultdict[tuple[str | None, int | None, bool], list[_Drawn]] = defaultdict(list)
    for one in shared_accesses(of, ()):
        moved, width = one.requests * one.wavefronts * _WAVEFRONT, one.width // WORD or 1
        drawn = (moved, one.lanes, width, one.wavefronts, one.ideal)
        lines[one.file, one.line, False].append(drawn)
    for each in of:
        if each.row.space == "global" and each.row.lanes and each.requests:
            lines[each.item.file, each.item.line, True].append(_sectors(each))
    sums = {line: sum(drawn[0] for drawn in accesses) for line, accesses in lines.items()}
    for line in heapq.nlargest(_MOST, sums, key=lambda line: sums[line]):
        _, lanes, width, cost, least = max(lines[line], key=lambda drawn: drawn[0])
        yield AccessMap(
            file=line[0],
            line=line[1],
            in_global=line[2],
            lanes=lanes,
            width=width,
            cost=cost,
            least=least,
            share=sums[line] / sum(sums.values()),
        )


def _sectors(each: MemoryAccess) -> _Drawn:
    _, (requests, sectors, *_) = next(_parts(each.item, each.row))
    asked = {at for at in each.row.lanes if at is not None}
    touched = sorted({at // SECTOR for at in asked})
    lanes = (None if at is None else touched.index(at // SECTOR) for at in each.row.lanes)
    least = math.ceil(len(asked) * max(each.item.bits // 8, each.row.width) / SECTOR)
    cost = sectors / requests
    return each.requests * cost * SECTOR, tuple(lanes), 1, cost, least


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


def distance(lanes: Lanes) -> int:
    """The least distance between words that different lanes access; 0 if all access one word."""
    words = sorted({word for word in lanes if word is not None})
    return min((b - a for a, b in pairwise(words)), default=0)
