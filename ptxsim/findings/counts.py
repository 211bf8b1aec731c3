"""Engine counters → what every source line did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ptxsim.findings.finding import LineCount
from ptxsim.frontend import Location
from ptxsim.lowering.operation import GENERIC, GLOBAL, SHARED
from ptxsim.lowering.program import Program


@dataclass(frozen=True)
class Counters:
    """What one run of one program counted, per instruction (see counts.hpp)."""

    program: Program
    blocks: np.ndarray
    guarded: np.ndarray
    memory: np.ndarray
    source: np.ndarray  # the global side of cp.async
    patterns: np.ndarray  # addresses of shared accesses; empty unless sampled


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
    return tuple(_line(key, totals[key]) for key in sorted(totals))


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
    lanes = run.blocks["lanes"][program.head].astype(np.int64)
    lanes = np.where(program.guarded, run.guarded["lanes"], lanes)
    warps[program.head == np.arange(program.length)] = 0  # block heads are ours, not the program's
    memory = np.stack([run.memory[f] for f in ("requests", "cost", "bytes")], axis=1)
    source = np.stack([run.source[f] for f in ("requests", "cost", "bytes")], axis=1)
    in_global = np.isin(program.spaces, (GLOBAL, GENERIC))[:, None]
    in_shared = (program.spaces == SHARED)[:, None]
    columns = (
        warps[:, None],
        (lanes * program.flops)[:, None],
        memory * in_global + source,
        memory * in_shared,
    )
    return np.concatenate([c.astype(np.int64) for c in columns], axis=1)


def _line(key: tuple[str, int], sums: np.ndarray) -> LineCount:
    counts = {name: int(value) for name, value in zip(_COLUMNS, sums, strict=True)}
    return LineCount(file=key[0], line=key[1], **counts)
