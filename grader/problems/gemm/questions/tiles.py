"""Coalescing and tiles: how a kernel divides the work, and what that saves."""

from __future__ import annotations

from collections.abc import Iterator

from grader.model import (
    NOTHING,
    Message,
    counted,
    phrase,
    sentences,
    size_text,
    verbatim,
)
from grader.problems.gemm.questions.kernel import (
    LANES,
    SECTOR,
    asked_of,
    card_of,
    executed,
    kernel_of,
    layout_of,
    loop_of,
    numbers_of,
    resident,
    uses_shared_memory,
)
from grader.problems.questions import Evidence

_FFMA_CYCLES = 4  # from one FFMA to the next that needs its result, Volta to Hopper
_LIMITS = {
    "registers": phrase("registers"),
    "shared memory": phrase("shared memory"),
    "warps": phrase("warps"),
    "blocks": phrase("blocks"),
}


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
    """What ncu says of the largest size that was profiled."""
    sizes = evidence.profile.sizes if evidence.profile else ()
    side = sizes[-1].side("own") if sizes else None
    if side is None or side.asked is None or side.from_l2 is None or side.from_dram is None:
        return NOTHING
    return phrase(
        "By ncu, of {asked:.4g} GB that it asks for at {size}, {l2:.4g} are read from the L2 and "
        "{dram:.4g} from DRAM.",
        asked=side.asked / 1e9,
        size=size_text(sizes[-1].size),
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
    loop, ffma = loop_of(evidence), executed(evidence.counts, "FFMA")
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
    shared = evidence.counts.shared_loads
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
    """What the blocks take, and how many of them a multiprocessor holds."""
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
        limit=_LIMITS.get(held.limited_by, verbatim(held.limited_by)),
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
