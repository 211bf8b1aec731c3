"""Coalescing, tiles and traffic: how a kernel lies over its operands, and what that saves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from grader import base
from grader.problems.gemm.layout import FORMATS, Layout, Numbers
from grader.problems.questions import Evidence, limit_words
from ptxsim.message import NOTHING, Message, counted, phrase, sentences
from ptxsim.records import Record

SECTOR = 32  # bytes
LANES = 32
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


def layout_of(evidence: Evidence) -> Layout:
    title = evidence.result.problem.title
    orders = itertools.product(("row", "col"), repeat=3)
    layouts = (Layout(A=a, B=b, C=c) for a, b, c in orders)  # type: ignore[arg-type]
    return next((each for each in layouts if title.endswith(f", {each}")), Layout())


def numbers_of(evidence: Evidence) -> Numbers:
    kind = evidence.result.problem.arithmetic.partition(".")[0]
    return next((FORMATS[name] for name in FORMATS if name == kind), FORMATS["f32"])


def loop_of(evidence: Evidence) -> base.SassLoop | None:
    kernels = evidence.why.kernels
    return next((each.loop for each in kernels if each.name == evidence.counts.name), None)


def kernel_of(evidence: Evidence) -> base.KernelInfo | None:
    build = evidence.result.build
    kernels = build.kernels if build else ()
    return next((each for each in kernels if each.name == evidence.counts.name), None)


def uses_shared_memory(evidence: Evidence) -> bool:
    info = kernel_of(evidence)
    return bool(evidence.counts.shared_bytes or (info and info.shared_bytes))


def resident(evidence: Evidence) -> base.Occupancy | None:
    counts, info = evidence.counts, kernel_of(evidence)
    sm = multiprocessor(evidence)
    if info is None or sm is None:
        return None
    shared = info.shared_bytes + counts.shared_bytes
    return base.occupancy(sm, block=counts.block, registers=info.registers, shared_bytes=shared)


def multiprocessor(evidence: Evidence) -> base.Multiprocessor | None:
    return base.MULTIPROCESSORS.get(int("".join(filter(str.isdigit, evidence.why.arch))))


def card_of(evidence: Evidence) -> base.gpus.Gpu | None:
    info = evidence.result.environment.gpu
    return base.gpus.of(info) if info else None


# --- answers -----------------------------------------------------------------------------------


def transposition(evidence: Evidence) -> Message:
    layout, element = layout_of(evidence), numbers_of(evidence).element.bytes
    said = [
        phrase(
            "A lies contiguous along {a}, B along {b}. Lanes that walk along that index read "
            "neighbours: {near} sectors of 32 bytes for a warp's request of {element} bytes a "
            "lane. Lanes that walk along the other index touch a sector each, 32 for a request. "
            "To transpose an operand in memory exchanges the two cases; to transpose a tile on its "
            "way into shared memory does so for one block.",
            a="K" if layout.A == "row" else "M",
            b="K" if layout.B == "col" else "N",
            near=element * LANES // SECTOR,
            element=element,
        )
    ]
    asked = asked_of(evidence)
    if not asked.requests:
        said.append(phrase("This kernel's loads are bulk copies, which read whole lines."))
        return sentences(said)
    share = 100 * asked.used
    said += [
        phrase(
            "This kernel's loads touch {sectors:.3g} sectors for a request of {lane:.3g} bytes a "
            "lane; {needed:.3g} hold as many bytes.",
            sectors=asked.sectors / asked.requests,
            lane=asked.lane,
            needed=asked.lane * LANES / SECTOR,
        ),
        phrase("It uses {share:.0f} % of the bytes that move, since lanes share them.", share=share)
        if share > 100.5
        else phrase("It uses {share:.0f} % of the bytes that move.", share=share),
        phrase(
            "L1 and L2 move whole sectors of {elements} elements: what one request leaves unused "
            "is fetched for nothing, unless a later step reads it before it is replaced.",
            elements=SECTOR // element,
        ),
        _caches(evidence),
    ]
    return sentences(each for each in said if each)


def _caches(evidence: Evidence) -> Message:
    """Quote ncu's cache figures of the largest profiled size."""
    sizes = evidence.profile.sizes if evidence.profile else ()
    side = sizes[-1].side("own") if sizes else None
    if side is None or side.asked is None or side.from_l2 is None or side.from_dram is None:
        return NOTHING
    return phrase(
        "By ncu, of {asked:.4g} GB that it asks for at {size}, {l2:.4g} are read from the L2 and "
        "{dram:.4g} from DRAM.",
        asked=side.asked / 1e9,
        size=base.size_text(sizes[-1].size),
        l2=side.from_l2 / 1e9,
        dram=side.from_dram / 1e9,
    )


def tiling(evidence: Evidence) -> Message:
    why, element = evidence.why, numbers_of(evidence).element.bytes
    moved = asked_of(evidence).moved
    if not moved:
        return NOTHING
    said = [
        phrase(
            "Traffic: without a tile, each element of C reads 2·K values, {untiled:.4g} GB "
            "together. This kernel asks for {asked:.4g} GB.",
            untiled=why.operations * element / 1e9,
            asked=moved / 1e9,
        )
    ]
    tile = why.tile
    if not uses_shared_memory(evidence):
        said.append(
            phrase("It keeps no tile in shared memory: only registers and caches save traffic.")
        )
    elif tile and tile.rows and tile.columns:
        said.append(
            phrase(
                "That is {times:.3g} times less: what a block keeps of A serves {columns} columns "
                "of C, and what it keeps of B {rows} rows.",
                times=why.operations * element / moved,
                columns=tile.columns,
                rows=tile.rows,
            )
        )
    loop = loop_of(evidence)
    if loop is not None and loop.accumulators:
        said += [
            counted(
                "Instruction-level parallelism: a thread keeps one sum.",
                "Instruction-level parallelism: a thread keeps {count} sums.",
                loop.accumulators,
            ),
            counted(
                "Each FFMA of a sum waits {cycles} cycles for the one before; those of different "
                "sums wait for nothing. So a scheduler needs one warp to issue an FFMA in every "
                "cycle; with one sum for each thread it needs {cycles}.",
                "Each FFMA of a sum waits {cycles} cycles for the one before; those of different "
                "sums wait for nothing. So a scheduler needs {count} warps to issue an FFMA in "
                "every cycle; with one sum for each thread it needs {cycles}.",
                -(-_FFMA_CYCLES // loop.accumulators),
                cycles=_FFMA_CYCLES,
            ),
        ]
    mix, shared = evidence.counts.mix, evidence.counts.shared_loads
    ffma = sum(each.count for each in mix if each.kind.split(".")[0] == "FFMA")
    if ffma and shared.bytes:
        values = shared.bytes / element / LANES / ffma
        said.append(
            phrase(
                "For each FFMA a lane reads {values:.3g} values from shared memory.", values=values
            )
        )
    said.append(
        phrase(
            "The two are apart: a tile with one element for each thread cuts the traffic with "
            "global memory and leaves one chain of FFMA and two values from shared memory for "
            "each; more elements for each thread cut these."
        )
    )
    return sentences(said)


def block_tile(evidence: Evidence) -> Message:
    counts, tile = evidence.counts, evidence.why.tile
    words = phrase(
        "Grid {grid}, blocks of {block} threads",
        grid="×".join(map(str, counts.grid)),
        block="×".join(map(str, counts.block)),
    )
    if tile is None:
        words = phrase("{launch}.", launch=words)
    else:
        if tile.rows and tile.columns:
            words = phrase(
                "{launch}: a tile of {rows}×{columns}",
                launch=words,
                rows=tile.rows,
                columns=tile.columns,
            )
        words = phrase(
            "{launch}, {elements:.4g} elements for each thread.",
            launch=words,
            elements=tile.elements,
        )
    return sentences(each for each in (words, *_held(evidence)) if each)


def _held(evidence: Evidence) -> Iterator[Message]:
    """Yield the blocks' resources, and how many blocks fit on a multiprocessor."""
    counts, info = evidence.counts, kernel_of(evidence)
    if info is None:
        return
    yield phrase(
        "A thread takes {registers} registers, a block {shared} bytes of shared memory.",
        registers=info.registers,
        shared=info.shared_bytes + counts.shared_bytes,
    )
    held = resident(evidence)
    if held is None:
        return
    yield phrase(
        "A multiprocessor holds {blocks} blocks, {warps} of {most} warps; the limit: {limit} "
        "({arch}).",
        blocks=held.blocks,
        warps=held.warps,
        most=held.of_warps,
        limit=limit_words(held),
        arch=evidence.why.arch,
    )
    card = card_of(evidence)
    if card is not None:
        blocks = counts.grid[0] * counts.grid[1] * counts.grid[2]
        yield phrase(
            "Its {blocks} blocks make {waves:.3g} waves on this {gpu}.",
            blocks=blocks,
            waves=blocks / (held.blocks * card.multiprocessors),
            gpu=card.name,
        )


def tile_traffic(evidence: Evidence) -> Message:
    """Answer by formula, by count and by ncu."""
    why, tile = evidence.why, evidence.why.tile
    said = []
    if tile and tile.rows and tile.columns and uses_shared_memory(evidence):
        elements = why.operations / 2 * (1 / tile.rows + 1 / tile.columns)
        said.append(
            phrase(
                "By formula, M·N·K·(1/{rows} + 1/{columns}) = {elements:.4g} elements, "
                "{gb:.4g} GB.",
                rows=tile.rows,
                columns=tile.columns,
                elements=elements,
                gb=numbers_of(evidence).element.bytes * elements / 1e9,
            )
        )
    said.append(
        phrase(
            "Counted: {counted:.4g} GB asked of the caches; every operand once is {once:.3g} GB.",
            counted=asked_of(evidence).moved / 1e9,
            once=why.bytes / 1e9,
        )
    )
    size = evidence.profiled(why.size)
    side = size.side("own") if size else None
    if side and side.asked is not None and side.from_dram is not None:
        said.append(
            phrase(
                "By ncu: {asked:.4g} GB, of which {dram:.4g} GB come from DRAM.",
                asked=side.asked / 1e9,
                dram=side.from_dram / 1e9,
            )
        )
    return sentences(said)
