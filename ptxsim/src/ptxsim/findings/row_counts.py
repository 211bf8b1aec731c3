"""Engine counters → what every source line, and every PTX instruction, did."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ptxsim.findings.finding import LineCount, RowCount
from ptxsim.frontend.records import Location
from ptxsim.lowering.operation import GENERIC, GLOBAL, SHARED
from ptxsim.lowering.program import EngineProgram


@dataclass(frozen=True)
class Counters:
    """Counts of one run of one program, per instruction (see engine_header.py)."""

    program: EngineProgram
    blocks: np.ndarray
    guarded: np.ndarray
    memory: np.ndarray
    source: np.ndarray  # the global side of cp.async
    patterns: np.ndarray  # addresses, of shared accesses and of global ones; empty unless sampled


def line_counts(
    runs: Iterable[Counters], locations: Sequence[Location | None]
) -> tuple[LineCount, ...]:
    """Sums over all runs, ordered by file and line; instructions without a place are left out."""
    totals: dict[tuple[str, int], np.ndarray] = {}
    for run in runs:
        table = _per_instruction(run)
        for index, place in enumerate(run.program.locations):
            location = locations[place] if place >= 0 else None
            if location is None or not location.inside or not table[index].any():
                continue
            key = (location.file, location.line)
            totals[key] = totals.get(key, 0) + table[index]
    return tuple(
        LineCount(file=file, line=line, **dict(zip(_COLUMNS, map(int, sums), strict=True)))
        for (file, line), sums in sorted(totals.items(), key=lambda item: item[0])
    )


_COLUMNS = (
    "instructions",
    "flops",
    *("global_requests", "global_sectors", "global_bytes"),
    *("shared_requests", "shared_wavefronts", "shared_bytes"),
)


def _per_instruction(run: Counters) -> np.ndarray:
    """One row per instruction, columns as in ``_COLUMNS``."""
    program = run.program
    warps = run.blocks["warps"][program.head].astype(np.int64)
    warps[program.head == np.arange(program.length)] = 0  # block heads are ours, not the program's
    memory, source = (
        np.stack([side[f] for f in ("requests", "cost", "bytes")], axis=1)
        for side in (run.memory, run.source)
    )
    in_global = np.isin(program.spaces, (GLOBAL, GENERIC))[:, None]
    in_shared = (program.spaces == SHARED)[:, None]
    columns = (
        warps[:, None],
        (_lanes(run) * program.flops)[:, None],
        memory * in_global + source,
        memory * in_shared,
    )
    return np.concatenate([c.astype(np.int64) for c in columns], axis=1)


def _lanes(run: Counters) -> np.ndarray:
    """Executions of each instruction by a lane."""
    lanes = run.blocks["lanes"][run.program.head]
    return np.where(run.program.guarded, run.guarded["lanes"], lanes).astype(np.int64)


def count_flops(run: Counters) -> int:
    """Count the floating-point operations of a run."""
    return int((_lanes(run) * run.program.flops).sum())


_SUMS = ("requests", "cost", "cost8", "cost16", "passes8", "passes16", "lines")
_SPAN = 1 << 31  # bytes of global memory that the lanes of one access may span
_PATTERNS = 1024  # instructions of a kernel whose addresses are kept


def row_counts(
    counters: Counters, inside: Mapping[int, int], dynamic_bytes: int
) -> Iterator[RowCount]:
    """Sums over the operations that came from one PTX instruction. ``inside``: by block head, the
    branch that split the warps."""
    program, memory, source = counters.program, counters.memory, counters.source
    warps, lanes = counters.blocks["warps"][program.head], _lanes(counters)
    first = np.zeros(program.length, np.int64)  # PTX line of each basic block's first instruction
    for index, head in enumerate(program.head):
        if program.rows[index] and not first[head]:
            first[head] = program.rows[index]
    own = program.head != np.arange(program.length)  # block heads are ours, not the program's
    by_row: dict[int, list[int]] = {}
    for each in np.flatnonzero(own & (program.rows > 0)):
        by_row.setdefault(int(program.rows[each]), []).append(int(each))
    kept = 0
    for row, indices in sorted(by_row.items()):
        moving = [i for i in indices if program.spaces[i] >= 0]
        made = [i for i in moving if memory["requests"][i]]
        access = (*made, *moving, indices[0])[0]
        array, array_bytes, touched = _pattern(counters, access, dynamic_bytes, kept < _PATTERNS)
        of_global = (_lanes_at(counters, program.length + i) for i in moving if kept < _PATTERNS)
        if not touched and (touched := next(filter(None, of_global), ())):
            array_bytes = _SPAN
        kept += bool(touched)
        space = {SHARED: "shared", GLOBAL: "global", GENERIC: "global"}
        yield RowCount(
            row=row,
            head=int(first[program.head[indices[0]]]),
            warps=int(max(warps[i] for i in indices)),
            flops=int(sum(lanes[i] * program.flops[i] for i in indices)),
            space=space.get(int(program.spaces[access]), ""),
            width=int(program.widths[access]),
            **{name: _sum(memory[name], moving) for name in _SUMS},
            source_requests=_sum(source["requests"], moving),
            source_sectors=_sum(source["cost"], moving),
            source_lines=_sum(source["lines"], moving),
            source_zeros=_sum(source["zeros"], moving),
            lanes=touched,
            array=array,
            array_bytes=array_bytes,
            active=int(max(lanes[i] for i in indices)),
            branch=inside.get(int(program.head[indices[0]]), 0),
            source_bytes=_sum(source["bytes"], moving),
            parts=max(len(made), 1),
            span=_span(counters, moving),
        )


def _sum(column: np.ndarray, indices: Sequence[int]) -> int:
    return sum(int(column[index]) for index in indices)


def _span(counters: Counters, indices: Sequence[int]) -> int:
    if not len(counters.patterns):
        return 0
    kept = counters.patterns[counters.program.length + np.asarray(indices, np.int64)]
    kept = kept[kept["high"] > 0]
    return int(kept["high"].max() - kept["low"].min()) if len(kept) else 0


def _pattern(
    counters: Counters, index: int, dynamic_bytes: int, wanted: bool
) -> tuple[int, int, tuple[int | None, ...]]:
    """The array that an instruction's lanes access, its size, and where in it. Nothing if they
    access several arrays, or if the pattern is not ``wanted``."""
    if not wanted:
        return 0, 0, ()
    arrays = counters.program.arrays
    for number, array in enumerate(arrays):
        size = array.size if number + 1 < len(arrays) else dynamic_bytes
        lanes = _lanes_at(counters, index, array.start)
        if lanes and all(0 <= lane < size for lane in lanes if lane is not None):
            return number, size, lanes
    return 0, 0, ()


def _lanes_at(counters: Counters, place: int, start: int = 0) -> tuple[int | None, ...]:
    """Return what is kept at this place, from an address on; () if nothing is."""
    if not len(counters.patterns):
        return ()
    pattern = counters.patterns[place]
    mask, at = int(pattern["mask"]), pattern["at"].tolist()
    lanes = (to - start if mask >> lane & 1 else None for lane, to in enumerate(at))
    return tuple(lanes) if mask else ()
