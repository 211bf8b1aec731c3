"""Coalescing, tiles and traffic: how a kernel lies over its operands, and what that saves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from grader import base
from grader.model import SassLoop
from grader.report.questions import Evidence, QuestionTable, limit_words
from ptxsim.plan import Record
from ptxsim.text import NOTHING, Message, sentences

SECTOR = 32  # bytes
LANES = 32
TABLE = QuestionTable(Path(__file__).with_name("questions.toml"))
_say = TABLE.say
_FFMA_CYCLES = 4  # from one FFMA to the next that needs its result, Volta to Hopper


class Asked(Record):
    """Reads of global memory, of all kernels."""

    requests: int  # of loads and cp.async
    sectors: int  # of loads and cp.async
    bytes: int  # of loads and cp.async, if every lane were active
    bulk_sectors: int  # of bulk copies, which belong to no lane

    @property
    def moved(self) -> int:
        """Bytes, bulk copies included."""
        return SECTOR * (self.sectors + self.bulk_sectors)

    @property
    def used(self) -> float:
        """Bytes that lanes ask for, over those that move for them."""
        return self.bytes / (SECTOR * self.sectors)

    @property
    def lane(self) -> float:
        """Bytes that each lane asks for at a time."""
        return self.bytes / LANES / self.requests


def asked_of(evidence: Evidence) -> Asked:
    kinds = [(each.global_loads, each.global_copies) for each in evidence.why.counts]
    loads = [load for pair in kinds for load in pair]
    return Asked(
        requests=sum(each.requests for each in loads),
        sectors=sum(each.cost for each in loads),
        bytes=sum(each.bytes for each in loads),
        bulk_sectors=sum(each.bulk_loads.cost for each in evidence.why.counts),
    )


def by_rows(evidence: Evidence, matrix: str) -> bool:
    """Whether it lies in memory row by row; titles end with all orders."""
    title = evidence.result.problem.title
    return title.endswith("all row-major") or f"{matrix} row-major" in title


def element_bytes(evidence: Evidence) -> int:
    """Size of an input: 4 for "f32", 2 for "bf16.f32"; parts for tensor cores come from FP32."""
    types, parts = base.gpus.split_arithmetic(evidence.result.problem.arithmetic)
    return 2 if parts == 1 and types.partition(".")[0].endswith("16") else 4


def loop_of(evidence: Evidence) -> SassLoop | None:
    kernels = evidence.why.kernels
    return next((each.loop for each in kernels if each.name == evidence.counts.name), None)


def kernel_of(evidence: Evidence) -> base.KernelInfo | None:
    build = evidence.result.build
    kernels = build.kernels if build else ()
    return next((each for each in kernels if each.name == evidence.counts.name), None)


def uses_shared_memory(evidence: Evidence) -> bool:
    info = kernel_of(evidence)
    return bool(evidence.counts.shared_bytes or (info and info.shared_bytes))


def resident(evidence: Evidence) -> base.gpus.Occupancy | None:
    info, sm = kernel_of(evidence), base.gpus.multiprocessor_of(evidence.why.arch)
    return base.gpus.occupancy(sm, info, evidence.counts) if info and sm else None


def card_of(evidence: Evidence) -> base.gpus.Gpu | None:
    info = evidence.result.environment.gpu
    return base.gpus.of(info) if info else None


# --- answers -----------------------------------------------------------------------------------


def transposition(evidence: Evidence) -> Message:
    element = element_bytes(evidence)
    along = {
        "a": "K" if by_rows(evidence, "A") else "M",
        "b": "N" if by_rows(evidence, "B") else "K",
    }
    near = element * LANES // SECTOR
    said = [_say("transposition.layout", **along, near=near, element=element)]
    asked = asked_of(evidence)
    if not asked.requests:
        return sentences([*said, _say("transposition.bulk")])
    lane, sectors = asked.lane, asked.sectors / asked.requests
    needed, share = lane * LANES / SECTOR, 100 * asked.used
    said += [
        _say("transposition.loads", sectors=sectors, lane=lane, needed=needed),
        _say("transposition.shared" if share > 100.5 else "transposition.used", share=share),
        _say("transposition.sectors", elements=SECTOR // element),
        _caches(evidence),
    ]
    return sentences(each for each in said if each)


def _caches(evidence: Evidence) -> Message:
    """Quote ncu's cache figures of the largest profiled size."""
    sizes = evidence.profile.sizes if evidence.profile else ()
    side = sizes[-1].side("own") if sizes else None
    if side is None or side.asked is None or side.from_l2 is None or side.from_dram is None:
        return NOTHING
    asked, l2, dram = side.asked / 1e9, side.from_l2 / 1e9, side.from_dram / 1e9
    size = base.size_text(sizes[-1].size)
    return _say("transposition.caches", asked=asked, size=size, l2=l2, dram=dram)


def tiling(evidence: Evidence) -> Message:
    why, element = evidence.why, element_bytes(evidence)
    untiled, moved = why.operations * element, asked_of(evidence).moved
    if not moved:
        return NOTHING
    said = [_say("tiling.traffic", untiled=untiled / 1e9, asked=moved / 1e9)]
    tile = why.tile
    if not uses_shared_memory(evidence):
        said.append(_say("tiling.none"))
    elif tile and tile.rows and tile.columns:
        times = untiled / moved
        said.append(_say("tiling.saved", times=times, columns=tile.columns, rows=tile.rows))
    loop = loop_of(evidence)
    if loop is not None and loop.accumulators:
        warps = -(-_FFMA_CYCLES // loop.accumulators)
        said.append(_say("tiling.sums", count=loop.accumulators))
        said.append(_say("tiling.warps", count=warps, cycles=_FFMA_CYCLES))
    mix, shared = evidence.counts.mix, evidence.counts.shared_loads
    ffma = sum(each.count for each in mix if each.kind.split(".")[0] == "FFMA")
    if ffma and shared.bytes:
        said.append(_say("tiling.shared", values=shared.bytes / element / LANES / ffma))
    return sentences([*said, _say("tiling.apart")])


def block_tile(evidence: Evidence) -> Message:
    counts, tile = evidence.counts, evidence.why.tile
    grid, block = ("×".join(map(str, each)) for each in (counts.grid, counts.block))
    words = _say("tile.grid", grid=grid, block=block)
    if tile and tile.rows and tile.columns:
        words = _say("tile.tile", launch=words, rows=tile.rows, columns=tile.columns)
    end = _say("tile.elements", elements=tile.elements) if tile else _say("tile.end")
    return sentences([end.given(launch=words), *_held(evidence)])


def _held(evidence: Evidence) -> Iterator[Message]:
    """Yield the blocks' resources, and how many blocks fit on a multiprocessor."""
    counts, info = evidence.counts, kernel_of(evidence)
    if info is None:
        return
    shared = info.shared_bytes + counts.shared_bytes
    yield _say("tile.thread", registers=info.registers, shared=shared)
    held, card = resident(evidence), card_of(evidence)
    if held is None:
        return
    figures = {"blocks": held.blocks, "warps": held.warps, "most": held.of_warps}
    yield _say("tile.resident", **figures, limit=limit_words(held), arch=evidence.why.arch)
    if card is not None:
        blocks = math.prod(counts.grid)
        waves = blocks / (held.blocks * card.multiprocessors)
        yield _say("tile.waves", blocks=blocks, waves=waves, gpu=card.name)


def tile_traffic(evidence: Evidence) -> Message:
    """Answer by formula, by count and by ncu."""
    why, tile = evidence.why, evidence.why.tile
    said = []
    if tile and tile.rows and tile.columns and uses_shared_memory(evidence):
        elements = why.operations / 2 * (1 / tile.rows + 1 / tile.columns)
        gb = element_bytes(evidence) * elements / 1e9
        edges = {"rows": tile.rows, "columns": tile.columns}
        said.append(_say("tile-traffic.formula", **edges, elements=elements, gb=gb))
    moved, once = asked_of(evidence).moved / 1e9, why.bytes / 1e9
    said.append(_say("tile-traffic.counted", counted=moved, once=once))
    size = evidence.profiled(why.size)
    side = size.side("own") if size else None
    if side and side.asked is not None and side.from_dram is not None:
        asked, dram = side.asked / 1e9, side.from_dram / 1e9
        said.append(_say("tile-traffic.ncu", asked=asked, dram=dram))
    return sentences(said)
