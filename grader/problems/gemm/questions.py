"""The questions of the product's labs, and their answers from code and counts."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

from grader.base import PEAK_UNIT, gpus, size_text
from grader.problems.gemm import tiles
from grader.problems.gemm.layout import tolerance
from grader.problems.questions import Evidence, read_questions, redundancy
from ptxsim.findings.names import kernel_name
from ptxsim.message import NOTHING, Message, listed, phrase, sentences, verbatim

EDGE = 1024  # of the naive kernel's example
# The first tutorials' card: a GeForce 8800 with the chip G80, and their figures.
_G80_GB_S = 86.4
_G80_GFLOPS = 346.5
_TODAY = ("H200", "A100 80GB PCIe", "RTX 2080 Ti")
_CUTE = re.compile(r"\b(?:cute::)?(make_\w+|local_tile|local_partition|copy|gemm|Swizzle)\s*[<(]")


def in_fp32(evidence: Evidence) -> bool:
    return evidence.result.problem.arithmetic == "f32"


def tensor_cores(evidence: Evidence) -> Message:
    """Whether it uses them; in FP32, which they do not take, also what that would cost."""
    used = sorted({opcode for kernel in evidence.why.kernels for opcode in kernel.tensor})
    if used:
        return phrase("It does use them: {opcodes} in its machine code.", opcodes=", ".join(used))
    if not in_fp32(evidence):
        return phrase("It does not use them yet: its machine code multiplies on CUDA cores.")
    k = evidence.why.size.get("k", EDGE)
    ffma = phrase(
        "Its machine code multiplies with FFMA only. Tensor cores take FP32 inputs as TF32, with "
        "10 bits of mantissa instead of 23: faster, but not the product this lab asks for."
    )
    cost = phrase(
        "Rounding changes an input by up to 2⁻¹¹ = {rounding:.2g} of itself; the tolerance at "
        "K = {k} is {tolerance:.2g} of the typical sum. Three products of split inputs (3×TF32) "
        "come near FP32.",
        rounding=2.0**-11,
        k=k,
        tolerance=tolerance(k),
    )
    return sentences([ffma, cost])


def cp_async(evidence: Evidence) -> Message:
    """Only of kernels that use it."""
    copies = evidence.counts.global_copies
    if not copies.requests:
        return NOTHING
    lane = round(copies.bytes / tiles.LANES / copies.requests)
    fitting = max(1, lane // tiles.numbers_of(evidence).element.bytes)
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
    loop, held, sm = (
        tiles.loop_of(evidence),
        tiles.resident(evidence),
        tiles.multiprocessor(evidence),
    )
    if loop is None or sm is None or held is None or not loop.ffma or not loop.unroll:
        return NOTHING
    ffma = loop.ffma / loop.unroll
    cycles = ffma * tiles.LANES * held.warps / sm.fp32_lanes
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


def cute(evidence: Evidence) -> Message:
    """Only of kernels whose sources include it."""
    text = "\n".join(evidence.sources.values())
    if not re.search(r"#\s*include\s*<cute/|\bcute::", text):
        return NOTHING
    names = Counter(match[1] for match in _CUTE.finditer(text))
    if not names:
        return NOTHING
    calls = phrase(
        "The source calls {names}. A layout is a function from coordinates to an offset, and a "
        "tensor is a pointer with one; partitions give each thread its part of it.",
        names=", ".join(f"{name} {count}×" for name, count in names.items()),
    )
    loop = tiles.loop_of(evidence)
    if loop is None:
        return sentences([calls])
    wide = [each for each in loop.mix if each.kind.startswith(("LDS", "LDGSTS", "LDG"))]
    compiled = phrase(
        "All of it is worked out by the compiler: the main loop of {kernel} has {instructions} "
        "instructions, among them {mix}. What is left of the layouts is the addresses.",
        kernel=kernel_name(evidence.counts.name),
        instructions=loop.instructions,
        mix=", ".join([f"{loop.ffma} FFMA", *(f"{each.count} {each.kind}" for each in wide)]),
    )
    return sentences([calls, compiled])


def naive_traffic(evidence: Evidence) -> Message:
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
    element = tiles.numbers_of(evidence).element.bytes
    return phrase(
        "At {edge}³ every element of C reads 2·K values: {asked:.3g} GB, {times} times the inputs "
        "({inputs:.3g} MB). How much of that the caches answer, only a profiler can tell: grade "
        "profile says it for the naive kernel, yours and {baseline} beside each other, on a "
        "machine with a GPU.",
        edge=EDGE,
        asked=2 * EDGE**3 * element / 1e9,
        times=EDGE,
        inputs=2 * EDGE**2 * element / 1e6,
        baseline=baseline,
    )


def bandwidth_bound(evidence: Evidence) -> Message:
    """The bound of the old tutorials, then and today."""
    own = tiles.card_of(evidence)
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
    moved = tiles.asked_of(evidence).moved
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


QUESTIONS = read_questions(
    Path(__file__).with_suffix(".toml"),
    {
        "transposition": tiles.transposition,
        "tiling": tiles.tiling,
        "tile": tiles.block_tile,
        "tile-traffic": tiles.tile_traffic,
        "naive-traffic": naive_traffic,
        "bandwidth-bound": bandwidth_bound,
        "tensor-cores": lambda evidence: tensor_cores(evidence) if in_fp32(evidence) else NOTHING,
        "on-tensor-cores": lambda evidence: (
            NOTHING if in_fp32(evidence) else tensor_cores(evidence)
        ),
        "cp-async": cp_async,
        "cute": cute,
    },
)
