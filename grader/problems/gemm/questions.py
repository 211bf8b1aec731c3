"""What the lab's report asks about a product of matrices, answered for one kernel. Pure.

A stored result names the layout and the numbers in the problem's title only, so they are read from
there.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping

from grader.hardware import gpus
from grader.hardware.gpus import MULTIPROCESSORS, PEAK_UNIT, Multiprocessor, occupancy
from grader.model import (
    NOTHING,
    KernelCounts,
    KernelInfo,
    Message,
    Occupancy,
    Record,
    SassLoop,
    counted,
    listed,
    phrase,
    sentences,
    size_text,
    verbatim,
)
from grader.model.names import kernel_name
from grader.problems.gemm.layout import Layout
from grader.problems.gemm.numbers import FORMATS, Numbers, tolerance
from grader.problems.questions import COUNTED, Evidence, Question, redundancy

_SECTOR, _LANES = 32, 32
_FFMA_CYCLES = 4  # from one FFMA to the next that needs its result, Volta to Hopper
# The first tutorials' card: a GeForce 8800 with the chip G80, and their figures.
_G80_GB_S, _G80_GFLOPS = 86.4, 346.5
_EDGE = 1024  # of the naive kernel's example
_TODAY = ("H200", "A100 80GB PCIe", "RTX 2080 Ti")
_CUTE = re.compile(r"\b(?:cute::)?(make_\w+|local_tile|local_partition|copy|gemm|Swizzle)\s*[<(]")


class _Asked(Record):
    """Loads from global memory, cp.async included, of all kernels."""

    requests: int
    sectors: int
    bytes: int  # if every lane were active

    @property
    def moved(self) -> int:
        return _SECTOR * self.sectors

    @property
    def lane(self) -> float:
        """Bytes that each lane asks for at a time."""
        return self.bytes / _LANES / self.requests


def _asked(evidence: Evidence) -> _Asked:
    kinds = [(each.global_loads, each.global_copies) for each in evidence.why.counts]
    loads = [load for pair in kinds for load in pair]
    return _Asked(
        requests=sum(each.requests for each in loads),
        sectors=sum(each.cost for each in loads),
        bytes=sum(each.bytes for each in loads),
    )


def _layout(evidence: Evidence) -> Layout:
    title = evidence.result.problem.title
    orders = itertools.product(("row", "col"), repeat=3)
    layouts = (Layout(A=a, B=b, C=c) for a, b, c in orders)  # type: ignore[arg-type]
    return next((each for each in layouts if title.endswith(f", {each}")), Layout())


def _numbers(evidence: Evidence) -> Numbers:
    title = evidence.result.problem.title
    found = (each for each in FORMATS.values() if f"in {each.words}," in title)
    return next(found, FORMATS["f32"])


def _loop(evidence: Evidence) -> SassLoop | None:
    kernels = evidence.why.kernels
    return next((each.loop for each in kernels if each.name == evidence.counts.name), None)


def _info(evidence: Evidence) -> KernelInfo | None:
    build = evidence.result.build
    kernels = build.kernels if build else ()
    return next((each for each in kernels if each.name == evidence.counts.name), None)


def _uses_shared_memory(evidence: Evidence) -> bool:
    info = _info(evidence)
    return bool(evidence.counts.shared_bytes or (info and info.shared_bytes))


def _executed(counts: KernelCounts, *kinds: str) -> int:
    return sum(each.count for each in counts.mix if each.kind.split(".")[0] in kinds)


# --- coalescing, tiling -----------------------------------------------------------------------


def _transposition(evidence: Evidence) -> Message:
    layout, element = _layout(evidence), _numbers(evidence).element.bytes
    said = [
        phrase(
            "A lies contiguous along {a}, B along {b}. Lanes that walk along that index read "
            "neighbours: {near} sectors of 32 bytes for a warp's request of {element} bytes a "
            "lane. Lanes that walk along the other index touch a sector each, 32 for a request. "
            "To transpose an operand in memory exchanges the two cases; to transpose a tile on its "
            "way into shared memory does so for one block.",
            a="K" if layout.A == "row" else "M",
            b="K" if layout.B == "col" else "N",
            near=element * _LANES // _SECTOR,
            element=element,
        )
    ]
    asked = _asked(evidence)
    if not asked.requests:
        said.append(phrase("This kernel's loads are bulk copies, which read whole lines."))
        return sentences(said)
    share = 100 * asked.bytes / asked.moved
    said += [
        phrase(
            "This kernel's loads touch {sectors:.3g} sectors for a request of {lane:.3g} bytes a "
            "lane; {needed:.3g} hold as many bytes.",
            sectors=asked.sectors / asked.requests,
            lane=asked.lane,
            needed=asked.lane * _LANES / _SECTOR,
        ),
        phrase("It uses {share:.0f} % of the bytes that move, since lanes share them.", share=share)
        if share > 100.5
        else phrase("It uses {share:.0f} % of the bytes that move.", share=share),
        phrase(
            "L1 and L2 move whole sectors of {elements} elements: what one request leaves unused "
            "is fetched for nothing, unless a later step reads it before it is replaced.",
            elements=_SECTOR // element,
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


def _tiling(evidence: Evidence) -> Message:
    why, element = evidence.why, _numbers(evidence).element.bytes
    moved = _asked(evidence).moved
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
    if not _uses_shared_memory(evidence):
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
    loop, ffma = _loop(evidence), _executed(evidence.counts, "FFMA")
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
        values = shared.bytes / element / _LANES / ffma
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


def _tile(evidence: Evidence) -> Message:
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
    counts, info = evidence.counts, _info(evidence)
    if info is None:
        return
    yield phrase(
        "A thread takes {registers} registers, a block {shared} bytes of shared memory.",
        registers=info.registers,
        shared=info.shared_bytes + counts.shared_bytes,
    )
    held = _resident(evidence)
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
    card = _card(evidence)
    if card is not None:
        blocks = counts.grid[0] * counts.grid[1] * counts.grid[2]
        yield phrase(
            "Its {blocks} blocks make {waves:.3g} waves on this {gpu}.",
            blocks=blocks,
            waves=blocks / (held.blocks * card.multiprocessors),
            gpu=card.name,
        )


_LIMITS = {
    "registers": phrase("registers"),
    "shared memory": phrase("shared memory"),
    "warps": phrase("warps"),
    "blocks": phrase("blocks"),
}


def _resident(evidence: Evidence) -> Occupancy | None:
    counts, info = evidence.counts, _info(evidence)
    sm = _multiprocessor(evidence)
    if info is None or sm is None:
        return None
    shared = info.shared_bytes + counts.shared_bytes
    return occupancy(sm, block=counts.block, registers=info.registers, shared_bytes=shared)


def _multiprocessor(evidence: Evidence) -> Multiprocessor | None:
    return MULTIPROCESSORS.get(int("".join(filter(str.isdigit, evidence.why.arch))))


def _card(evidence: Evidence) -> gpus.Gpu | None:
    info = evidence.result.environment.gpu
    return gpus.of(info) if info else None


# --- traffic ----------------------------------------------------------------------------------


def _tile_traffic(evidence: Evidence) -> Message:
    """By formula, by count and by ncu."""
    why, tile = evidence.why, evidence.why.tile
    said = []
    if tile and tile.rows and tile.columns and _uses_shared_memory(evidence):
        elements = why.operations / 2 * (1 / tile.rows + 1 / tile.columns)
        said.append(
            phrase(
                "By formula, M·N·K·(1/{rows} + 1/{columns}) = {elements:.4g} elements, "
                "{gb:.4g} GB.",
                rows=tile.rows,
                columns=tile.columns,
                elements=elements,
                gb=_numbers(evidence).element.bytes * elements / 1e9,
            )
        )
    said.append(
        phrase(
            "Counted: {counted:.4g} GB asked of the caches; every operand once is {once:.3g} GB.",
            counted=_asked(evidence).moved / 1e9,
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


def _naive(evidence: Evidence) -> Message:
    """Whether the naive kernel's traffic is redundant once caches are counted."""
    baseline = evidence.result.problem.baseline
    for size in evidence.profile.sizes if evidence.profile else ():
        first = size.side("first")
        said = redundancy(size, first) if first else NOTHING
        if said:
            own, theirs = (
                phrase(
                    "{name} asks for {asked:.4g} GB and takes {dram:.4g} GB from DRAM.",
                    name=name,
                    asked=side.asked / 1e9,
                    dram=side.from_dram / 1e9,
                )
                if side and side.asked is not None and side.from_dram is not None
                else NOTHING
                for name, side in (
                    (phrase("This kernel"), size.side("own")),
                    (verbatim(baseline), size.side("baseline")),
                )
            )
            there = phrase("At {size}: {said}", size=size_text(size.size), said=said)
            return sentences(each for each in (there, own, theirs) if each)
    element = _numbers(evidence).element.bytes
    return phrase(
        "At {edge}³ every element of C reads 2·K values: {asked:.3g} GB, {times} times the inputs "
        "({inputs:.3g} MB). How much of that the caches answer, only a profiler can tell: grade "
        "profile says it for the naive kernel, yours and {baseline} beside each other, on a "
        "machine with a GPU.",
        edge=_EDGE,
        asked=2 * _EDGE**3 * element / 1e9,
        times=_EDGE,
        inputs=2 * _EDGE**2 * element / 1e6,
        baseline=baseline,
    )


def _bandwidth(evidence: Evidence) -> Message:
    """The bound of the old tutorials, then and today."""
    own = _card(evidence)
    cards = [gpu for gpu in gpus.known() if gpu.name in _TODAY]
    if own is not None and own.name not in _TODAY:
        cards.insert(0, own)
    today = listed(
        phrase(
            "{gpu} {bound:.3g} of {peak:.3g} {unit} ({share:.1f} %)",
            gpu=card.name,
            bound=card.dram_gb_s / 4000,
            peak=card.fp32_tflops,
            unit=PEAK_UNIT,
            share=card.dram_gb_s / 40 / card.fp32_tflops,
        )
        for card in cards
    )
    said = [
        phrase(
            "The first tutorials count two loads of 4 bytes for each fused multiply-add, 1/4 FLOP "
            "for a byte: the {bandwidth} GB/s of a G80 allow {bound:.3g} of its {peak} GFLOPS, "
            "{share:.1f} %.",
            bandwidth=_G80_GB_S,
            bound=_G80_GB_S / 4,
            peak=_G80_GFLOPS,
            share=25 * _G80_GB_S / _G80_GFLOPS,
        ),
        phrase(
            "Today: {cards}. The share has fallen: arithmetic grew faster than memory. The bound "
            "takes every load to go to DRAM; caches break it, and tiles more so.",
            cards=today,
        ),
    ]
    moved = _asked(evidence).moved
    if moved:
        intensity, card = evidence.why.operations / moved, own or cards[0]
        said.append(
            phrase(
                "This kernel does {intensity:.3g} FLOP for each byte that it asks of the caches: "
                "without caches, {gpu} would allow {bound:.3g} {unit}.",
                intensity=intensity,
                gpu=card.name,
                bound=card.dram_gb_s * intensity / 1000,
                unit=PEAK_UNIT,
            )
        )
    return sentences(said)


# --- the hardware's help ----------------------------------------------------------------------


def _tensor_cores(evidence: Evidence) -> Message:
    used = sorted({opcode for kernel in evidence.why.kernels for opcode in kernel.tensor})
    if used:
        return phrase("It does use them: {opcodes} in its machine code.", opcodes=", ".join(used))
    numbers = _numbers(evidence)
    if numbers.element.bytes < 4:
        return phrase(
            "Its machine code has no tensor-core instruction. They take {format} as it is: without "
            "them a kernel has only a fraction of the peak.",
            format=numbers.words,
        )
    k = evidence.why.size.get("k", _EDGE)
    return sentences(
        [
            phrase(
                "Its machine code multiplies with FFMA only. Tensor cores take FP32 inputs as "
                "TF32, with 10 bits of mantissa instead of 23: faster, but not the product this "
                "lab asks for."
            ),
            phrase(
                "Rounding changes an input by up to 2⁻¹¹ = {rounding:.2g} of itself; the tolerance "
                "at K = {k} is {tolerance:.2g} of the typical sum. Three products of split inputs "
                "(3×TF32) come near FP32.",
                rounding=2.0**-11,
                k=k,
                tolerance=tolerance(k),
            ),
        ]
    )


def _cp_async(evidence: Evidence) -> Message:
    """Only of kernels that use it."""
    copies = evidence.counts.global_copies
    if not copies.requests:
        return NOTHING
    lane = round(copies.bytes / _LANES / copies.requests)
    fitting = max(1, lane // _numbers(evidence).element.bytes)
    said = [
        phrase(
            "A cp.async copies 4, 8 or 16 bytes for each lane; this kernel's copies have {lane}. "
            "Source and target must be aligned to that.",
            lane=lane,
        ),
        phrase(
            "So rows along K fit only if K is a multiple of {fitting}: every other K needs another "
            "way. Such a copy keeps neighbours together, so it cannot transpose.",
            fitting=fitting,
        )
        if fitting > 1
        else phrase(
            "One element at a time fits every K and may go anywhere, so it can transpose; copies "
            "of 16 bytes would be fewer, and cannot."
        ),
        phrase("It cannot convert; outside of the matrix it can write zeros (src-size)."),
        _stages(evidence),
    ]
    return sentences(each for each in said if each)


def _stages(evidence: Evidence) -> Message:
    """How far ahead copies must be issued, by the latency of DRAM."""
    loop, held, sm = _loop(evidence), _resident(evidence), _multiprocessor(evidence)
    if loop is None or sm is None or held is None or not loop.ffma or not loop.unroll:
        return NOTHING
    ffma = loop.ffma / loop.unroll
    cycles = ffma * _LANES * held.warps / sm.fp32_lanes
    steps = sm.dram_latency / cycles
    return phrase(
        "Stages: one step along K is {ffma:.3g} FFMA for each warp, at least {cycles:.0f} cycles "
        "for the {warps} warps of a multiprocessor. DRAM answers after {latency} cycles or more, "
        "{steps:.2g} steps: with S steps in a stage, there must be 1 + ⌈{steps:.2g} / S⌉ stages at "
        "least, two if S ≥ {enough}. More of them cover a busy memory, and cost shared memory.",
        ffma=ffma,
        cycles=cycles,
        warps=held.warps,
        latency=sm.dram_latency,
        steps=steps,
        enough=max(1, math.ceil(steps)),
    )


def _cute(evidence: Evidence) -> Message:
    """Only of kernels that use it."""
    names = _cute_names(evidence.sources)
    if not names:
        return NOTHING
    said = [
        phrase(
            "The source calls {names}. A layout is a function from coordinates to an offset, and a "
            "tensor is a pointer with one; partitions give each thread its part of it.",
            names=", ".join(f"{name} {count}×" for name, count in names.items()),
        )
    ]
    loop = _loop(evidence)
    if loop is not None:
        wide = [each for each in loop.mix if each.kind.startswith(("LDS", "LDGSTS", "LDG"))]
        said.append(
            phrase(
                "All of it is worked out by the compiler: the main loop of {kernel} has "
                "{instructions} instructions, among them {mix}. What is left of the layouts is the "
                "addresses.",
                kernel=kernel_name(evidence.counts.name),
                instructions=loop.instructions,
                mix=", ".join(
                    [f"{loop.ffma} FFMA", *(f"{each.count} {each.kind}" for each in wide)]
                ),
            )
        )
    return sentences(said)


def _cute_names(sources: Mapping[str, str]) -> dict[str, int]:
    """The functions of CuTe that the sources call, by how often, if they include it."""
    text = "\n".join(sources.values())
    if not re.search(r"#\s*include\s*<cute/|\bcute::", text):
        return {}
    names: dict[str, int] = {}
    for match in _CUTE.finditer(text):
        names[match[1]] = names.get(match[1], 0) + 1
    return names


QUESTIONS: Mapping[str, Question] = {
    "transposition": Question(
        text=phrase("What would transposing an operand do to coalescing and to the L2?"),
        method=phrase(
            "sectors for each request: {counts}; the layout is the lab's", counts=COUNTED
        ),
        answer=_transposition,
    ),
    "tiling": Question(
        text=phrase("Why does tiling help, by traffic and by instruction-level parallelism apart?"),
        method=phrase(
            "2·M·N·K elements against the sectors asked for ({counts}); sums of a thread: chains "
            "of dependent FFMA in the main loop",
            counts=COUNTED,
        ),
        answer=_tiling,
    ),
    "tile": Question(
        text=phrase("Which part of {output} does a block compute?"),
        method=phrase(
            "grid and block as launched; the tile is C divided by the grid; registers and shared "
            "memory from the cubin, occupancy by NVIDIA's rules"
        ),
        answer=_tile,
    ),
    "tile-traffic": Question(
        text=phrase("How much does it read from global memory?"),
        method=phrase(
            "the formula for whole tiles; {counts}; ncu where grade profile ran", counts=COUNTED
        ),
        answer=_tile_traffic,
    ),
    "naive-traffic": Question(
        text=phrase("Is the naive kernel's global traffic redundant, once caches are counted?"),
        method=phrase("ncu: l1tex sectors of global loads, lts sectors read, dram bytes read"),
        answer=_naive,
    ),
    "bandwidth-bound": Question(
        text=phrase("What does the bandwidth bound of the old tutorials say?"),
        method=phrase(
            "bandwidth × FLOP for each byte; data sheets; the G80's figures are the tutorials'"
        ),
        answer=_bandwidth,
    ),
    "tensor-cores": Question(
        text=phrase("Why no tensor cores?"),
        method=phrase(
            "search for HMMA, IMMA and their like in the machine code; docs/verification.md "
            "derives the tolerance"
        ),
        answer=_tensor_cores,
    ),
    "cp-async": Question(
        text=phrase("What are the limits of cp.async here: sizes, alignment, stages?"),
        method=phrase(
            "bytes of each copy: {counts}; stages: the least latency of DRAM by published "
            "measurements over the FP32 pipe's time for one step",
            counts=COUNTED,
        ),
        answer=_cp_async,
    ),
    "cute": Question(
        text=phrase("What does CuTe do here?"),
        method=phrase("its names in the source, and the main loop that the compiler makes of them"),
        answer=_cute,
    ),
}
