"""The kernel that does most of a submission's work, in the figures that a report shows."""

from __future__ import annotations

from collections.abc import Sequence

from grader.model import Message, Record, Result, Tile
from grader.model.names import kernel_name
from grader.report.kernels import KernelRow, kernel_rows


class Kernel(Record):
    name: str  # as the source writes it
    registers: int
    shared_bytes: int  # static and dynamic
    spill_bytes: int
    block: str  # "16×16"; "" when it is not known
    tile: str  # of the output for each block; "" when the grid does not show it
    resident: Message  # warps on a multiprocessor, and what limits them; empty: not known


def main_kernel(result: Result) -> Kernel | None:
    rows = kernel_rows(result)
    why = result.explanation
    most = max(why.counts, key=lambda each: each.flops).name if why and why.counts else None
    row = next((row for row in rows if row.kernel.name == most), None) or _largest(rows)
    if row is None:
        return None
    return Kernel(
        name=kernel_name(row.kernel.name),
        registers=row.kernel.registers,
        shared_bytes=row.shared_bytes,
        spill_bytes=row.kernel.spill_bytes,
        block=row.block,
        tile=_tile(why.tile) if why and most == row.kernel.name else "",
        resident=row.resident,
    )


def _largest(rows: Sequence[KernelRow]) -> KernelRow | None:
    """Without counts, the launched kernel with most registers stands for the work."""
    launched = [row for row in rows if row.launch] or rows
    return max(launched, key=lambda row: row.kernel.registers, default=None)


def _tile(tile: Tile | None) -> str:
    return f"{tile.rows}×{tile.columns}" if tile and tile.rows and tile.columns else ""
