"""Products on tensor cores: fragments, warp tiles, stages. ``warpgroups.py`` goes on with wgmma."""

import msgspec

from grader.base import gpus
from grader.model.accesses import MATRICES, MATRIX_ROW
from grader.model.banks import Conflict
from grader.model.facts import (
    Facts,
    KernelFacts,
    advice,
    at_once,
    describe_remedy,
    placed,
    say,
    scaled,
    work_while_loading,
)
from grader.model.loop_steps import LoopStep, Pipe
from grader.model.records import NO_TRAFFIC, Advice, TensorCount, Traffic
from ptxsim.text import Message, verbatim

_STEP = 16 * 16 * 16  # products of one wmma
_FRAGMENTS_NOTICED = 1.2  # matrices for each HMMA, where shared memory is the limit
_EXPOSED_NOTICED = 1.05  # gain; rungs that load fragments ahead still show less
_FAR_TOO_MANY = 2.0  # in any case; a warp tile of 64×32 needs 1.5
_NEAR = 1.1
_FRAGMENTS_LEFT = 1.0  # of a warp tile of 64×64
_CONFLICTS_NOTICED = 1.2
_HARDLY = 0.1  # edges may go another way
_FILLS = 0.02  # stores of 16 bytes for each HMMA; tiles of 256×256 need 0.06
_WHAT = {"LDSM": verbatim("ldmatrix"), "STSM": verbatim("stmatrix")}


def use_tensor_cores(facts: KernelFacts) -> Advice | None:
    """The estimate is that of the rung: fragments of 16×16, loaded from global memory."""
    types, parts = gpus.split_arithmetic(facts.work.arithmetic)
    kind, _, sums = types.partition(".")
    if not sums or parts > 1 or facts.counts.tensor:
        return None
    peak, tensor = facts.gpu.fp32_tflops, facts.gpu.tensor_tflops(kind, sums)
    products = facts.executed("FFMA", "HFMA2")
    if tensor is None or not products:
        return None
    figures = {"products": products, "peak": peak, "tensor": tensor}
    message = facts.say("use-tensor-cores", **figures, unit=gpus.PEAK_UNIT)
    steps = facts.work.operations // (2 * _STEP)
    loads = Traffic(requests=8 * steps, cost=64 * steps, lines=64 * steps, bytes=1024 * steps)
    by_warps = TensorCount(
        kind=kind,
        sums=sums,
        by_warpgroup=False,
        count=2 * steps,
        flops=facts.work.operations,
        shared_bytes=0,
    )
    gain = facts.gain(
        tensor=(by_warps,),
        floats=0,
        instructions=12 * steps,
        global_loads=loads,
        shared_loads=NO_TRAFFIC,
        warp_cycles=0.0,
        far_cycles=0.0,
    )
    return advice(facts, "wmma_global", message, "FFMA", "HFMA2", gain=gain)


def fragments_from_global(facts: Facts) -> Advice | None:
    loads, hmma = facts.executed("LDG"), facts.products
    if not hmma or facts.executed("LDS", "LDSM") > _HARDLY * loads:
        return None
    each = loads / hmma
    lines = facts.counts.global_loads.lines / max(facts.counts.global_loads.requests, 1)
    message = facts.say("fragments-from-global", each=each, lines=lines)
    # With tiles of 64×64: each HMMA of 16×8×16 takes 6 matrices, and 1/32 of what the tile reads.
    tiled = Traffic(requests=hmma // 4, cost=4 * hmma, lines=2 * hmma, bytes=128 * hmma)
    matrices = Traffic(requests=2 * hmma, cost=6 * hmma, lines=0, bytes=768 * hmma, passes=6 * hmma)
    gain = facts.gain(global_loads=tiled, matrix_loads=matrices, warp_cycles=0.0, far_cycles=0.0)
    return advice(facts, "wmma_shared", message, "LDG", gain=gain)


def matrix_conflicts(facts: Facts) -> Advice | None:
    """Find bank conflicts of ldmatrix and stmatrix, and of the stores that fill their tiles."""
    conflict, counts = facts.conflict, facts.counts
    loads = counts.matrix_loads
    if conflict is None or not facts.products or not loads.requests:
        return None
    at = conflict.at
    # ptxas made the ldmatrix of a fragment whose PTX accesses less than its rows.
    of_wmma = at.opcode in MATRICES and at.width < MATRIX_ROW
    found = say(
        "rule.matrix-conflicts",
        what=_WHAT.get(at.opcode, say("access.any")),
        found=loads.cost / loads.requests if at.opcode == "LDSM" else at.wavefronts,
        ideal=loads.passes / loads.requests if at.opcode == "LDSM" else at.ideal,
        **conflict.figures,
        remedy=_remedy(conflict, of_wmma=of_wmma),
    )
    gain = None
    if at.opcode == "LDSM" and loads.cost > _CONFLICTS_NOTICED * loads.passes:
        kept = conflict.remedy.kept if conflict.remedy else 1.0
        left = loads.passes + round((loads.cost - loads.passes) * kept)
        gain = facts.gain(matrix_loads=msgspec.structs.replace(loads, cost=left))
    idea = "mma_ldmatrix" if of_wmma else "swizzled"
    return placed(advice(facts, idea, found, at.opcode, gain=gain), at)


def _remedy(conflict: Conflict, *, of_wmma: bool) -> Message:
    if of_wmma:
        return say("remedy.wmma")
    if conflict.remedy is None:
        return say("remedy.rows")
    return describe_remedy(conflict.remedy)


def small_warp_tile(facts: Facts) -> Advice | None:
    """A fragment of A serves as many HMMA as the warp tile has fragments of B, and vice versa."""
    loads, hmma, speeds = facts.counts.matrix_loads, facts.products, facts.speeds()
    if not hmma or not loads.passes or not speeds:  # no speeds: a block does not fit this GPU
        return None
    each = loads.passes / hmma
    slow = speeds["shared memory"] < _NEAR * speeds["tensor cores"]
    if each < (_FRAGMENTS_NOTICED if slow else _FAR_TOO_MANY):
        return None
    sums = 32 * facts.loop.accumulators
    message = facts.say("small-warp-tile", each=each, sums=sums, left=_FRAGMENTS_LEFT)
    kept = _FRAGMENTS_LEFT / each
    saved = facts.executed("LDSM") * (1 - kept)
    gain = facts.gain(
        matrix_loads=scaled(loads, kept), instructions=round(facts.counts.instructions - saved)
    )
    return advice(facts, "register_buffer", message, "LDSM", gain=gain)


def tiles_through_registers(facts: Facts) -> Advice | None:
    stores, hmma = facts.executed("STS"), facts.products
    if not hmma or stores < _FILLS * hmma or facts.gpu.capability < 80:
        return None
    between = work_while_loading(facts.code, lambda item: item.tensor)
    between = len(facts.code) if between is None else between
    message = facts.say_waits("tiles-through-registers", between=between)
    return advice(facts, "cp_async", message, "LDG", gain=facts.gain_if(at_once))


def few_stages(facts: Facts) -> Advice | None:
    """``cp.async.wait_group 0`` in the main loop: no copy may be under way behind it."""
    waits = [
        index
        for index, item in enumerate(facts.code)
        if item.base == "DEPBAR" and len(item.operands) > 1 and int(item.operands[1], 0) == 0
    ]
    if not facts.products or not waits or not any(i.base == "LDGSTS" for i in facts.code):
        return None
    # Tensor-core instructions between the last commit of copies before the wait and the wait.
    turned = [*facts.code[waits[0] :], *facts.code[: waits[0]]]
    commits = [index for index, item in enumerate(turned) if item.base == "LDGDEPBAR"]
    during = sum(item.tensor for item in turned[commits[-1] :]) if commits else 0
    overlap = say("stages.none") if not during else say("stages.some", during=during)
    message = say("rule.few-stages", overlap=overlap)
    said = advice(facts, "stages", message, "LDGSTS", gain=facts.gain_if(at_once))
    at = facts.code[waits[0]]
    return placed(said, at) if at.file else said


def exposed_fragments(facts: Facts) -> Advice | None:
    """Tensor cores that wait for ldmatrix, and would do more if the next HMMA's had come before.
    Where a warp tile loads far too much, that comes first."""
    waited, hmma = facts.waiting, facts.products
    if not hmma or facts.conflict is not None or waited is None:
        return None
    if facts.counts.matrix_loads.passes >= _FAR_TOO_MANY * hmma:
        return None
    if work_while_loading(facts.code, lambda item: item.tensor, "LDSM"):
        return None

    def ahead(step: LoopStep) -> LoopStep:
        return msgspec.structs.replace(step, sets=None) if step.unit is Pipe.SHARED else step

    gain = facts.gain_if(ahead)
    if not gain or gain < _EXPOSED_NOTICED:
        return None
    message = facts.say("exposed-fragments", share=100 * waited.shared_loads)
    return advice(facts, "register_buffer", message, "LDSM", gain=gain)
