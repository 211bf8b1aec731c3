"""The traffic that the machine's memory instructions cause, and what it costs.

Each instruction has the lanes' addresses of its PTX instruction, at its own width.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from grader.model import Record, Traffic
from grader.performance.sass import Function, Instruction
from ptxsim.findings.row_counts import RowCount

_BULK = ("UTMALDG", "UTMASTG", "UBLKCP")
_MOVING = ("LDG", "STG", "LDS", "STS", "LDGSTS", "LDSM", "STSM", *_BULK)
_LANES = 32
_MATRIX_ROW = 16  # bytes
_WAVEFRONT = 128  # bytes


class Access(Record):
    """A memory instruction in the sampled blocks."""

    item: Instruction
    row: RowCount  # of the PTX instruction it was made from
    requests: float  # executions by a warp with at least one lane on


def accesses(
    function: Function, rows: Mapping[int, RowCount], runs: Sequence[float]
) -> Iterator[Access]:
    """rows: by line of the PTX. runs: executions of every block of ``function``.

    Instructions made from one PTX instruction share its requests as they share its executions. If
    ptxas replaced a branch with a predicate, the machine executes more than it requests. If one
    load of 16 bytes serves four iterations of a loop, it executes less than the PTX requests.
    """
    made: dict[tuple[str, int], list[tuple[Instruction, float]]] = {}
    for index, times in enumerate(runs):
        for item in function.of_block(index):
            line = item.ptx_line
            if item.base not in _MOVING or item.never or line is None:
                continue
            if line in rows and rows[line].width:
                made.setdefault((item.base, line), []).append((item, times))
    for (_, line), copies in made.items():
        total = sum(times for _, times in copies)
        on = min(1.0, _asked(rows[line]) / total) if total else 0.0
        for item, times in copies:
            yield Access(item=item, row=rows[line], requests=times * on)


def _asked(row: RowCount) -> int:
    """Executions that moved something. A bulk copy may reach several blocks."""
    return row.source_requests if row.source_bytes and not row.source_lines else row.requests


def traffic(of: Iterable[Access], factor: float) -> dict[str, Traffic]:
    """Sums for each opcode, times ``factor``; "copied" is the shared side of LDGSTS, "bulk" that of
    bulk copies, which are "UTMALDG" and "UTMASTG" without tensor maps, too."""
    sums = {kind: [0.0] * 5 for kind in (*_MOVING, "copied", "bulk")}
    for each in of:
        if not _asked(each.row):
            continue
        share = each.requests / _asked(each.row) * factor
        for kind, numbers in _parts(each.item, each.row):
            for at, number in enumerate(numbers):
                sums[kind][at] += number * share
    return {kind: _traffic(*map(round, numbers)) for kind, numbers in sums.items()}


def _parts(item: Instruction, row: RowCount) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Requests, cost, passes, lines and bytes, as if ``item`` made all requests of the row."""
    width = item.bits // 8
    if item.base in _BULK:
        to_global = item.base == "UTMASTG" or item.opcode.startswith("UBLKCP.G")
        asked = (row.source_requests, row.source_sectors, 0, 0, row.source_bytes)
        yield ("UTMASTG" if to_global else "UTMALDG"), asked
        yield "bulk", (row.requests, row.cost, row.cost, 0, row.cost * _WAVEFRONT)
        return
    if item.base in ("LDSM", "STSM"):
        # Where ptxas made it of a wmma fragment, the PTX is modelled as accesses of 4 or 8 bytes.
        merged = width / row.width if row.width < _MATRIX_ROW else 1
        moved = (row.requests, row.cost * merged, row.requests * width * _LANES / _WAVEFRONT)
        yield item.base, (*moved, 0, row.requests * width * _LANES)
        return
    if item.base == "LDGSTS":
        brought, warp = row.source_requests, row.width * _LANES
        lines = row.source_lines
        yield "LDGSTS", (brought, row.source_sectors, 0, lines, brought * warp)
        # Each line is written to shared memory separately, and zeros after the lines, in as many
        # wavefronts as if all lanes wrote them. This takes no time if the copy bypasses the L1:
        # otherwise the fixture cp_async_ptx would exceed its bound.
        waves = max(row.cost, lines + row.source_zeros)
        passes = row.cost if ".BYPASS" in item.opcode else waves
        yield "copied", (row.requests, waves, passes, 0, row.requests * warp)
        return
    wide = max(width, row.width)
    cost = row.cost if width <= row.width else row.cost8 if width == 8 else row.cost16
    passes = 0
    if item.base in ("LDS", "STS"):
        passes = row.requests if wide <= 4 else row.passes8 if wide == 8 else row.passes16
    yield item.base, (row.requests, cost, passes, row.lines, row.requests * width * _LANES)


def _traffic(requests: int, cost: int, passes: int, lines: int, size: int) -> Traffic:
    return Traffic(requests=requests, cost=cost, passes=passes, lines=lines, bytes=size)
