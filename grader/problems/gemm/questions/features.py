"""What a kernel uses: tensor cores, cp.async, CuTe."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from grader.model import (
    NOTHING,
    Message,
    phrase,
    sentences,
)
from grader.model.names import kernel_name
from grader.problems.gemm.numbers import tolerance
from grader.problems.gemm.questions.kernel import (
    EDGE,
    LANES,
    loop_of,
    multiprocessor,
    numbers_of,
    resident,
)
from grader.problems.questions import Evidence

_CUTE = re.compile(r"\b(?:cute::)?(make_\w+|local_tile|local_partition|copy|gemm|Swizzle)\s*[<(]")


def on_tensor_cores(evidence: Evidence) -> Message:
    """Of formats that tensor cores take as they are."""
    if evidence.result.problem.arithmetic == "f32":
        return NOTHING
    used = _opcodes(evidence)
    if used:
        return phrase("It does use them: {opcodes} in its machine code.", opcodes=", ".join(used))
    return phrase("It does not use them yet: its machine code multiplies on CUDA cores.")


def _opcodes(evidence: Evidence) -> list[str]:
    return sorted({opcode for kernel in evidence.why.kernels for opcode in kernel.tensor})


def tensor_cores(evidence: Evidence) -> Message:
    """Of FP32, which they do not take."""
    if evidence.result.problem.arithmetic != "f32":
        return NOTHING
    used = _opcodes(evidence)
    if used:
        return phrase("It does use them: {opcodes} in its machine code.", opcodes=", ".join(used))
    k = evidence.why.size.get("k", EDGE)
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


def cp_async(evidence: Evidence) -> Message:
    """Only of kernels that use it."""
    copies = evidence.counts.global_copies
    if not copies.requests:
        return NOTHING
    lane = round(copies.bytes / LANES / copies.requests)
    fitting = max(1, lane // numbers_of(evidence).element.bytes)
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
    loop, held, sm = loop_of(evidence), resident(evidence), multiprocessor(evidence)
    if loop is None or sm is None or held is None or not loop.ffma or not loop.unroll:
        return NOTHING
    ffma = loop.ffma / loop.unroll
    cycles = ffma * LANES * held.warps / sm.fp32_lanes
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
    loop = loop_of(evidence)
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
