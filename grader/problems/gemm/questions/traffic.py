"""What a kernel reads: by formula, by count, by ncu, and by the bound of the old tutorials."""

from __future__ import annotations

from grader.hardware import gpus
from grader.hardware.gpus import PEAK_UNIT
from grader.model import (
    NOTHING,
    Message,
    listed,
    phrase,
    sentences,
    size_text,
    verbatim,
)
from grader.problems.gemm.questions.kernel import (
    EDGE,
    asked_of,
    card_of,
    numbers_of,
    uses_shared_memory,
)
from grader.problems.questions import Evidence, redundancy

# The first tutorials' card: a GeForce 8800 with the chip G80, and their figures.
_G80_GB_S = 86.4
_G80_GFLOPS = 346.5
_TODAY = ("H200", "A100 80GB PCIe", "RTX 2080 Ti")


def tile_traffic(evidence: Evidence) -> Message:
    """By formula, by count and by ncu."""
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
    element = numbers_of(evidence).element.bytes
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
    own = card_of(evidence)
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
    moved = asked_of(evidence).moved
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
