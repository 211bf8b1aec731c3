"""What the lab's report asks about a product of matrices, answered for one kernel. Pure.

A stored result names the layout and the numbers in the problem's title only, so they are read from
there.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping

from grader.hardware import gpus
from grader.hardware.gpus import MULTIPROCESSORS, PEAK_UNIT, occupancy
from grader.model import KernelCounts, KernelInfo, Record, SassLoop, size_text
from grader.model.names import kernel_name
from grader.problems.gemm.layout import Layout
from grader.problems.gemm.numbers import FORMATS, Numbers, tolerance
from grader.problems.questions import Evidence, Question, redundancy

_SECTOR, _LANES = 32, 32
_FFMA_CYCLES = 4  # from one FFMA to the next that needs its result, Volta to Hopper
# The first tutorials' card: a GeForce 8800 with the chip G80, and their figures.
_G80_GB_S, _G80_GFLOPS = 86.4, 346.5
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


def _transposition(evidence: Evidence) -> str:
    layout, element = _layout(evidence), _numbers(evidence).element.bytes
    along = {"A": "K" if layout.A == "row" else "M", "B": "K" if layout.B == "col" else "N"}
    asked = _asked(evidence)
    words = (
        f"A lies contiguous along {along['A']}, B along {along['B']}. Lanes that walk along that "
        f"index read neighbours: {element * _LANES // _SECTOR} sectors of {_SECTOR} bytes for a "
        f"warp's request of {element} bytes a lane. Lanes that walk along the other index touch a "
        "sector each, 32 for a request. To transpose an operand in memory exchanges the two cases; "
        "to transpose a tile on its way into shared memory does so for one block."
    )
    if not asked.requests:
        return f"{words} This kernel's loads are bulk copies, which read whole lines."
    needed = asked.lane * _LANES / _SECTOR
    share = 100 * asked.bytes / asked.moved
    return (
        f"{words} This kernel's loads touch {asked.sectors / asked.requests:.3g} sectors for a "
        f"request of {asked.lane:.3g} bytes a lane; {needed:.3g} hold as many bytes. It uses "
        f"{share:.0f} % of the bytes that move{', since lanes share them' if share > 100 else ''}. "
        f"L1 and L2 move whole sectors of {_SECTOR // element} elements: what one request leaves "
        "unused is fetched for nothing, unless a later step reads it before it is replaced."
        f"{_caches(evidence)}"
    )


def _caches(evidence: Evidence) -> str:
    """What ncu says of the largest size that was profiled."""
    sizes = evidence.profile.sizes if evidence.profile else ()
    side = sizes[-1].side("own") if sizes else None
    if side is None or side.asked is None or side.from_l2 is None or side.from_dram is None:
        return ""
    return (
        f" By ncu, of {side.asked / 1e9:.4g} GB that it asks for at {size_text(sizes[-1].size)}, "
        f"{side.from_l2 / 1e9:.4g} are read from the L2 and {side.from_dram / 1e9:.4g} from DRAM."
    )


def _tiling(evidence: Evidence) -> str:
    why, element = evidence.why, _numbers(evidence).element.bytes
    untiled = why.operations * element
    moved = _asked(evidence).moved
    if not moved:
        return ""
    words = (
        f"Traffic: without a tile, each element of C reads 2·K values, {untiled / 1e9:.4g} GB "
        f"together. This kernel asks for {moved / 1e9:.4g} GB"
    )
    tile = why.tile
    if not _uses_shared_memory(evidence):
        words += ": it keeps no tile in shared memory, so only registers and caches save traffic"
    elif tile and tile.rows and tile.columns:
        words += (
            f", {untiled / moved:.3g} times less: what a block keeps of A serves {tile.columns} "
            f"columns of C, and what it keeps of B {tile.rows} rows"
        )
    loop, ffma = _loop(evidence), _executed(evidence.counts, "FFMA")
    words += ". "
    if loop is not None and loop.accumulators:
        sums = loop.accumulators
        warps = -(-_FFMA_CYCLES // sums)
        words += (
            f"Instruction-level parallelism: a thread keeps {_sums(sums)}. Each FFMA of a sum "
            f"waits {_FFMA_CYCLES} cycles for the one before; those of different sums wait for "
            f"nothing. So a scheduler needs {warps} warp{'s' if warps > 1 else ''} to issue an "
            f"FFMA in every cycle; with one sum for each thread it needs {_FFMA_CYCLES}. "
        )
    shared = evidence.counts.shared_loads
    if ffma and shared.bytes:
        values = shared.bytes / element / _LANES / ffma
        words += f"For each FFMA a lane reads {values:.3g} values from shared memory. "
    return (
        words + "The two are apart: a tile with one element for each thread cuts the traffic with "
        "global memory and leaves one chain of FFMA and two values from shared memory for each; "
        "more elements for each thread cut these."
    )


def _sums(count: int) -> str:
    return f"{count} sums" if count > 1 else "one sum"


def _tile(evidence: Evidence) -> str:
    counts, why = evidence.counts, evidence.why
    grid = "×".join(map(str, counts.grid))
    block = "×".join(map(str, counts.block))
    words = f"Grid {grid}, blocks of {block} threads"
    if why.tile is not None:
        if why.tile.rows and why.tile.columns:
            words += f": a tile of {why.tile.rows}×{why.tile.columns}"
        words += f", {why.tile.elements:.4g} elements for each thread"
    return f"{words}. {_held(evidence)}".strip()


def _held(evidence: Evidence) -> str:
    """What the blocks take, and how many of them a multiprocessor holds."""
    counts, info = evidence.counts, _info(evidence)
    sm = MULTIPROCESSORS.get(int("".join(filter(str.isdigit, evidence.why.arch))))
    if info is None or sm is None:
        return ""
    shared = info.shared_bytes + counts.shared_bytes
    words = f"A thread takes {info.registers} registers, a block {shared} bytes of shared memory"
    held = occupancy(sm, block=counts.block, registers=info.registers, shared_bytes=shared)
    if held is None:
        return f"{words}."
    words += (
        f": a multiprocessor holds {held.blocks} blocks, {held.warps} of {held.of_warps} warps; "
        f"the limit is {held.limited_by} ({evidence.why.arch})"
    )
    card = _card(evidence)
    if card is None:
        return f"{words}."
    blocks = counts.grid[0] * counts.grid[1] * counts.grid[2]
    waves = blocks / (held.blocks * card.multiprocessors)
    return f"{words}. Its {blocks} blocks make {waves:.3g} waves on this {card.name}."


def _card(evidence: Evidence) -> gpus.Gpu | None:
    info = evidence.result.environment.gpu
    return gpus.of(info) if info else None


# --- traffic ----------------------------------------------------------------------------------


def _tile_traffic(evidence: Evidence) -> str:
    """By formula, by count and by ncu."""
    why, tile = evidence.why, evidence.why.tile
    words = ""
    if tile and tile.rows and tile.columns and _uses_shared_memory(evidence):
        element = _numbers(evidence).element.bytes
        elements = why.operations / 2 * (1 / tile.rows + 1 / tile.columns)
        words = (
            f"By formula, M·N·K·(1/{tile.rows} + 1/{tile.columns}) = {elements:.4g} elements, "
            f"{element * elements / 1e9:.4g} GB. "
        )
    words += f"Counted: {_asked(evidence).moved / 1e9:.4g} GB asked of the caches"
    size = evidence.profiled(why.size)
    side = size.side("own") if size else None
    if side and side.asked is not None:
        words += f"; by ncu {side.asked / 1e9:.4g} GB"
        if side.from_dram is not None:
            words += f", of which {side.from_dram / 1e9:.4g} GB come from DRAM"
    return f"{words}; every operand once is {why.bytes / 1e9:.3g} GB."


def _naive(evidence: Evidence) -> str:
    """Whether the naive kernel's traffic is redundant once caches are counted."""
    found = evidence.profile.sizes if evidence.profile else ()
    for size in found:
        first = size.side("first")
        said = list(redundancy(size, first)) if first else []
        if said:
            others = [
                f"{name} asks for {side.asked / 1e9:.4g} GB and takes {side.from_dram / 1e9:.4g} "
                "GB from DRAM."
                for name, side in (
                    ("This kernel", size.side("own")),
                    (evidence.result.problem.baseline, size.side("baseline")),
                )
                if side and side.asked is not None and side.from_dram is not None
            ]
            return f"At {size_text(size.size)}: {' '.join([*said, *others])}"
    edge, element = 1024, _numbers(evidence).element.bytes
    asked, inputs = 2 * edge**3 * element, 2 * edge**2 * element
    return (
        f"At {edge}³ every element of C reads 2·K values: {asked / 1e9:.3g} GB, {asked // inputs} "
        f"times the inputs ({inputs / 1e6:.3g} MB). How much of that the caches answer, only a "
        "profiler can tell: grade profile says it for the naive kernel, yours and "
        f"{evidence.result.problem.baseline} beside each other, on a machine with a GPU."
    )


def _bandwidth(evidence: Evidence) -> str:
    """The bound of the old tutorials, then and today."""
    element = _numbers(evidence).element.bytes
    words = (
        "The first tutorials count two loads of 4 bytes for each fused multiply-add, 1/4 FLOP for "
        f"a byte: the {_G80_GB_S} GB/s of a G80 allow {_G80_GB_S / 4:.3g} of its {_G80_GFLOPS} "
        f"GFLOPS, {100 * _G80_GB_S / 4 / _G80_GFLOPS:.1f} %. Today"
    )
    cards = [gpu for gpu in gpus.known() if gpu.name in _TODAY]
    own = _card(evidence)
    if own is not None and own.name not in _TODAY:
        cards.insert(0, own)
    words += ": " + ", ".join(
        f"{card.name} {card.dram_gb_s / 4000:.3g} of {card.fp32_tflops:.3g} {PEAK_UNIT} "
        f"({25 * card.dram_gb_s / 1000 / card.fp32_tflops:.1f} %)"
        for card in cards
    )
    words += (
        ". The share has fallen: arithmetic grew faster than memory. The bound takes every load to "
        "go to DRAM; caches break it, and tiles more so."
    )
    moved = _asked(evidence).moved
    if not moved or not cards:
        return words
    intensity = evidence.why.operations / moved
    card = own or cards[0]
    return (
        f"{words} This kernel does {intensity:.3g} FLOP for each byte that it asks of the caches, "
        f"{intensity * element:.3g} times as many as two loads for each multiply-add: without "
        f"caches, {card.name} would allow {card.dram_gb_s * intensity / 1000:.3g} {PEAK_UNIT}."
    )


# --- the hardware's help ----------------------------------------------------------------------


def _tensor_cores(evidence: Evidence) -> str:
    used = sorted({opcode for kernel in evidence.why.kernels for opcode in kernel.tensor})
    if used:
        return f"It does use them: {', '.join(used)} in its machine code."
    numbers = _numbers(evidence)
    if numbers.element.bytes < 4:
        return (
            f"Its machine code has no tensor-core instruction. They take {numbers.words} as it is: "
            "a kernel without them reaches a fraction of the speed that this lab asks for."
        )
    k = evidence.why.size.get("k", 8192)
    return (
        "Its machine code multiplies with FFMA only. Tensor cores take FP32 inputs as TF32, with "
        "10 bits of mantissa instead of 23: faster, but not the product this lab asks for. "
        f"Rounding an input changes it by up to 2⁻¹¹ = {2.0**-11:.2g} of itself, and this does not "
        f"average out of a product; the tolerance at K = {k} is {tolerance(k):.2g} of the typical "
        "sum. Three products of split inputs (3×TF32) come near FP32, and the lab's rule refuses "
        "them like the rest."
    )


def _cp_async(evidence: Evidence) -> str:
    """Only of kernels that use it."""
    copies = evidence.counts.global_copies
    if not copies.requests:
        return ""
    lane = round(copies.bytes / _LANES / copies.requests)
    fitting = max(1, lane // _numbers(evidence).element.bytes)
    words = (
        f"A cp.async copies 4, 8 or 16 bytes for each lane; this kernel's copies have {lane}. "
        "Source and target must be aligned to that. "
    )
    words += (
        f"So rows along K fit only if K is a multiple of {fitting}: every other K needs another "
        "way. Such a copy keeps neighbours together, so it cannot transpose. "
        if fitting > 1
        else "One element at a time fits every K and may go anywhere, so it can transpose; copies "
        "of 16 bytes would be a quarter as many, and cannot. "
    )
    words += "It cannot convert; outside of the matrix it can write zeros (src-size). "
    return f"{words}{_stages(evidence)}".strip()


def _stages(evidence: Evidence) -> str:
    """How far ahead copies must be issued, by the latency of DRAM."""
    counts, info, loop = evidence.counts, _info(evidence), _loop(evidence)
    sm = MULTIPROCESSORS.get(int("".join(filter(str.isdigit, evidence.why.arch))))
    if loop is None or sm is None or info is None or not loop.ffma or not loop.unroll:
        return ""
    held = occupancy(
        sm,
        block=counts.block,
        registers=info.registers,
        shared_bytes=info.shared_bytes + counts.shared_bytes,
    )
    if held is None:
        return ""
    cycles = loop.ffma / loop.unroll * _LANES * held.warps / sm.fp32_lanes
    steps = sm.dram_latency / cycles
    return (
        f"Stages: one step along K is {loop.ffma / loop.unroll:.3g} FFMA for each warp, at least "
        f"{cycles:.0f} cycles for the {held.warps} warps of a multiprocessor. DRAM answers after "
        f"{sm.dram_latency} cycles or more, {steps:.2g} steps: stages of S steps must be "
        f"1 + ⌈{steps:.2g} / S⌉ at least, two if S ≥ {max(1, math.ceil(steps))}. More of them "
        "cover a busy memory, and cost shared memory."
    )


def _cute(evidence: Evidence) -> str:
    """Only of kernels that use it."""
    names = _cute_names(evidence.sources)
    if not names:
        return ""
    several = ", ".join(f"{name} {count}×" for name, count in names.items())
    words = (
        f"The source calls {several}. A layout is a function from coordinates to an offset, and a "
        "tensor is a pointer with one; partitions give each thread its part of it. "
    )
    loop, counts = _loop(evidence), evidence.counts
    if loop is None:
        return words.strip()
    wide = [each for each in loop.mix if each.kind.startswith(("LDS", "LDSM", "LDGSTS", "LDG"))]
    loads = ", ".join(f"{each.count} {each.kind}" for each in wide)
    return (
        f"{words}All of it is worked out by the compiler: the main loop of "
        f"{kernel_name(counts.name)} has {loop.instructions} instructions, {loop.ffma} of them "
        f"FFMA{f', and {loads}' if loads else ''}. What is left of the layouts is the addresses."
    )


def _cute_names(sources: Mapping[str, str]) -> dict[str, int]:
    """The functions of CuTe that the sources call, by how often, if they include it."""
    text = "\n".join(sources.values())
    if not re.search(r"#\s*include\s*<cute/|\bcute::", text):
        return {}
    names: dict[str, int] = {}
    for match in _CUTE.finditer(text):
        names[match[1]] = names.get(match[1], 0) + 1
    return names


_COUNTS = (
    "nvdisasm's machine code, each instruction times its executions in a few simulated blocks, "
    "scaled to the whole grid"
)
QUESTIONS: Mapping[str, Question] = {
    "transposition": Question(
        text="What would transposing an operand do to coalescing and to the L2?",
        method=f"sectors for each request: {_COUNTS}; the layout is the lab's",
        answer=_transposition,
    ),
    "tiling": Question(
        text="Why does tiling help, by traffic and by instruction-level parallelism apart?",
        method=f"2·M·N·K elements against the sectors asked for ({_COUNTS}); sums of a thread: "
        "chains of dependent FFMA in the main loop",
        answer=_tiling,
    ),
    "tile": Question(
        text="Which part of {output} does a block compute?",
        method="grid and block as launched; the tile is C divided by the grid; registers and "
        "shared memory from the cubin, occupancy by NVIDIA's rules",
        answer=_tile,
    ),
    "tile-traffic": Question(
        text="How much does it read from global memory?",
        method=f"the formula for whole tiles; {_COUNTS}; ncu after grade profile at this size",
        answer=_tile_traffic,
    ),
    "naive-traffic": Question(
        text="Is the naive kernel's global traffic redundant, once caches are counted?",
        method="ncu: l1tex sectors of global loads, lts sectors read, dram bytes read",
        answer=_naive,
    ),
    "bandwidth-bound": Question(
        text="What does the bandwidth bound of the old tutorials say?",
        method="bandwidth × FLOP for each byte; data sheets; the G80's figures are the tutorials'",
        answer=_bandwidth,
    ),
    "tensor-cores": Question(
        text="Why no tensor cores?",
        method="search for HMMA, IMMA and their like in the machine code; docs/verification.md "
        "derives the tolerance",
        answer=_tensor_cores,
    ),
    "cp-async": Question(
        text="What are the limits of cp.async here: sizes, alignment, stages?",
        method=f"bytes of each copy: {_COUNTS}; stages: the least latency of DRAM by published "
        "measurements over the FP32 pipe's time for one iteration",
        answer=_cp_async,
    ),
    "cute": Question(
        text="What does CuTe do here?",
        method="its names in the source, and the main loop that the compiler makes of them",
        answer=_cute,
    ),
}
