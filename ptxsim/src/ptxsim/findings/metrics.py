"""Counts by source line under the names that ncu gives them.

They are of PTX: ptxas may merge, drop or repeat instructions, and the caches' own counters differ.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from ptxsim.findings.finding import RowCount
from ptxsim.findings.row_counts import Counters, row_counts
from ptxsim.frontend.records import PtxModule
from ptxsim.record import Record

_INSTRUCTIONS, _THREADS = "smsp__inst_executed.sum", "smsp__thread_inst_executed.sum"
_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"
_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
_SHARED = "smsp__sass_inst_executed_op_shared_{}.sum"
_WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
_OPERATIONS = {"st": "st", "stmatrix": "st", "atom": "atom", "red": "red"}  # others load


class LineMetrics(Record):
    """One source line. Metrics that are 0 are left out."""

    file: str
    line: int
    metrics: dict[str, int]
    mix: dict[str, int]  # warp instructions by PTX opcode


def line_metrics(runs: Sequence[Counters], module: PtxModule) -> tuple[LineMetrics, ...]:
    """Sums over all runs, by file and line; of line 0 what has no place."""
    items = {item.row: item for each in module.functions.values() for item in each.instructions}
    metrics: dict[tuple[str, int], Counter[str]] = {}
    mixes: dict[tuple[str, int], Counter[str]] = {}
    for row in (row for run in runs for row in row_counts(run, {}, 0) if row.warps):
        item = items[row.row]
        location = module.locations[item.loc] if item.loc >= 0 else None
        key = (location.file, location.line) if location else ("", 0)
        metrics.setdefault(key, Counter()).update(dict(_metrics(row, item.opcode)))
        mixes.setdefault(key, Counter())[item.opcode] += row.warps
    return tuple(
        LineMetrics(file=key[0], line=key[1], metrics=+metrics[key], mix=dict(mix.most_common()))
        for key, mix in sorted(mixes.items())
    )


def _metrics(row: RowCount, opcode: str) -> Iterator[tuple[str, int]]:
    operation = _OPERATIONS.get(opcode.split(".")[0], "ld")
    yield _INSTRUCTIONS, row.warps
    yield _THREADS, row.active
    if row.space == "global":
        yield _REQUESTS.format(operation), row.requests
        yield _SECTORS.format(operation), row.cost
    elif row.space == "shared" and row.source_requests:  # ncu counts what cp.async reads as loads
        yield _REQUESTS.format("ld"), row.source_requests
        yield _SECTORS.format("ld"), row.source_sectors
        yield _WAVEFRONTS.format("ldgsts"), row.cost
    elif row.space == "shared":
        yield _SHARED.format(operation), row.requests
        yield _WAVEFRONTS.format(operation), row.cost
