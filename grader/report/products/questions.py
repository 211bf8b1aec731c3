"""The questions of the product's labs, and their answers from code and counts."""

import math
import re
from collections import Counter

from grader.base import gpus, size_text
from grader.problems import catalogue, problem_class
from grader.report.products import tiles
from grader.report.questions import Evidence, redundancy
from ptxsim.findings import kernel_name
from ptxsim.plan import Size
from ptxsim.text import NOTHING, Message, listed, sentences, verbatim

EDGE = 1024  # of the naive kernel's example
# The first tutorials' card: a GeForce 8800 with the chip G80, and their figures.
_G80_GB_S = 86.4
_G80_GFLOPS = 346.5
_TODAY = ("H200", "A100 80GB PCIe", "RTX 2080 Ti")
_CUTE = re.compile(r"\b(?:cute::)?(make_\w+|local_tile|local_partition|copy|gemm|Swizzle)\s*[<(]")
_say = tiles.TABLE.say


def in_fp32(evidence: Evidence) -> bool:
    return evidence.result.problem.arithmetic == "f32"


def tensor_cores(evidence: Evidence) -> Message:
    """Whether it uses them; in FP32, which they do not take, also what that would cost."""
    used = sorted({opcode for kernel in evidence.why.kernels for opcode in kernel.tensor})
    if used:
        return _say("tensor-cores.used", opcodes=", ".join(used))
    if not in_fp32(evidence):
        return _say("tensor-cores.unused")
    if evidence.result.problem.name not in catalogue.names():  # nobody here knows its tolerance
        return _say("tensor-cores.ffma")
    size, problem = Size(dims=evidence.why.size), problem_class(evidence.result.problem.name)()
    cost = _say("tensor-cores.cost", rounding=2.0**-11, k=size["k"])
    return sentences([_say("tensor-cores.ffma"), cost.given(tolerance=problem.tolerance(size))])


def cp_async(evidence: Evidence) -> Message:
    """Only of kernels that use it."""
    copies = evidence.counts.global_copies
    if not copies.requests:
        return NOTHING
    lane = round(copies.bytes / tiles.LANES / copies.requests)
    fitting = max(1, lane // tiles.element_bytes(evidence))
    wide = _say("cp-async.wide", fitting=fitting) if fitting > 1 else _say("cp-async.single")
    said = [_say("cp-async.lane", lane=lane), wide, _say("cp-async.limits"), _stages(evidence)]
    return sentences(each for each in said if each)


def _stages(evidence: Evidence) -> Message:
    """How far ahead copies must be issued, by the latency of DRAM."""
    loop, held = tiles.loop_of(evidence), tiles.resident(evidence)
    sm = gpus.multiprocessor_of(evidence.why.arch)
    if loop is None or sm is None or held is None or not loop.ffma or not loop.unroll:
        return NOTHING
    ffma = loop.ffma / loop.unroll
    cycles = ffma * tiles.LANES * held.warps / sm.fp32_lanes
    steps = sm.dram_latency / cycles
    figures = {"ffma": ffma, "cycles": cycles, "latency": sm.dram_latency, "steps": steps}
    enough = max(1, math.ceil(steps))
    return _say("cp-async.stages", **figures, warps=held.warps, enough=enough)


def cute(evidence: Evidence) -> Message:
    """Only of kernels whose sources include it."""
    text = "\n".join(evidence.sources.values())
    names = Counter(match[1] for match in _CUTE.finditer(text))
    if not names or not re.search(r"#\s*include\s*<cute/|\bcute::", text):
        return NOTHING
    calls = _say("cute.calls", names=", ".join(f"{name} {n}×" for name, n in names.items()))
    loop = tiles.loop_of(evidence)
    if loop is None:
        return calls
    wide = [each for each in loop.mix if each.kind.startswith(("LDS", "LDGSTS", "LDG"))]
    mix = ", ".join([f"{loop.ffma} FFMA", *(f"{each.count} {each.kind}" for each in wide)])
    compiled = _say("cute.compiled", instructions=loop.instructions, mix=mix)
    return sentences([calls, compiled.given(kernel=kernel_name(evidence.counts.name))])


def naive_traffic(evidence: Evidence) -> Message:
    """Whether the naive kernel's traffic is redundant once caches are counted."""
    baseline = evidence.result.problem.baseline
    for size in evidence.profile.sizes if evidence.profile else ():
        first = size.side("first")
        said = redundancy(size, first) if first else NOTHING
        if not said:
            continue
        told = [_say("naive-traffic.at", size=size_text(size.size), said=said)]
        sides = (("own", _say("naive-traffic.own")), ("baseline", verbatim(baseline)))
        for role, name in sides:
            side = size.side(role)
            if side and side.asked is not None and side.from_dram is not None:
                asked, dram = side.asked / 1e9, side.from_dram / 1e9
                told.append(_say("naive-traffic.of", name=name, asked=asked, dram=dram))
        return sentences(told)
    element = tiles.element_bytes(evidence)
    asked, inputs = 2 * EDGE**3 * element / 1e9, 2 * EDGE**2 * element / 1e6
    formula = _say("naive-traffic.formula", edge=EDGE, asked=asked, times=EDGE, inputs=inputs)
    return formula.given(baseline=baseline)


def bandwidth_bound(evidence: Evidence) -> Message:
    """The bound of the old tutorials, then and today."""
    own = tiles.card_of(evidence)
    cards = [gpu for gpu in gpus.known() if gpu.name in _TODAY]
    if own is not None and own.name not in _TODAY:
        cards.insert(0, own)
    today = []
    for card in cards:
        bound, share = card.dram_gb_s / 4000, card.dram_gb_s / 40 / card.fp32_tflops
        words = _say("bandwidth-bound.card", gpu=card.name, bound=bound, share=share)
        today.append(words.given(peak=card.fp32_tflops, unit=gpus.PEAK_UNIT))
    g80 = {"bandwidth": _G80_GB_S, "bound": _G80_GB_S / 4, "peak": _G80_GFLOPS}
    said = [
        _say("bandwidth-bound.then", **g80, share=25 * _G80_GB_S / _G80_GFLOPS),
        _say("bandwidth-bound.today", cards=listed(today)),
    ]
    moved = tiles.asked_of(evidence).moved
    if moved:
        intensity, card = evidence.why.operations / moved, own or cards[0]
        bound = card.dram_gb_s * intensity / 1000
        words = _say("bandwidth-bound.own", intensity=intensity, gpu=card.name, bound=bound)
        said.append(words.given(unit=gpus.PEAK_UNIT))
    return sentences(said)


PRODUCT_QUESTIONS = tiles.TABLE.questions(
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
    }
)
