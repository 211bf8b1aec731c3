"""A warp's path through one iteration of a kernel's main loop, with the loops inside it."""

from collections import defaultdict
from collections.abc import Sequence
from enum import IntEnum

import msgspec

from grader.base import gpus
from grader.build import Loop, Product, SassFunction, SassInstruction
from grader.model.accesses import MemoryAccess, accesses, traffic
from grader.model.blocks import FENCE_CYCLES, LATENCY, OTHER_LATENCY, flows
from grader.model.join import executions
from grader.model.main_loop import busiest_loop, ffma_reads, loop_code, main_loop
from ptxsim.findings import LaunchSample
from ptxsim.plan import Record

_LONGEST = 8000  # instructions of one round; a loop over tiles of C is far longer


def round_trip(
    function: SassFunction, runs: Sequence[float]
) -> tuple[Loop, tuple[SassInstruction, ...]] | None:
    """The loop along K, and one iteration of it; None without a loop that computes.

    It is the innermost loop with a barrier that encloses the loop with the most FFMA. If there is
    none, or its iteration is too long for one step along K, it is the loop with the most FFMA.
    runs: executions of every block.
    """
    # A kernel that multiplies nothing in a loop adds there.
    inner = main_loop(function) or busiest_loop(function, lambda item: item.base == "FADD")
    if inner is None:
        return None
    around = (
        loop
        for loop in function.loops
        if set(inner.blocks) <= set(loop.blocks)
        and any(item.base == "BAR" for item in loop_code(function, loop))
    )
    with_barrier = min(around, key=lambda loop: len(loop.blocks), default=inner)
    for loop in (with_barrier, inner):
        if path := _path(function, loop, runs):
            return loop, tuple(path)
    return None


def _path(function: SassFunction, loop: Loop, runs: Sequence[float]) -> list[SassInstruction]:
    """One round; [] when it is too long. Every branch is taken as often as its share says: a loop
    within goes round until it is more than half due to end."""
    flow = flows(function, runs)
    owed: defaultdict[tuple[int, int], float] = defaultdict(float)
    found: list[SassInstruction] = []
    at = loop.head
    while len(found) <= _LONGEST:
        found += function.of_block(at)
        edges = [(at, after) for after in function.blocks[at].successors if after in loop.blocks]
        total = sum(flow[edge] for edge in edges)
        if not edges:
            return found
        share = {edge: flow[edge] / total if total else 1 / len(edges) for edge in edges}
        for edge in edges:
            owed[edge] += share[edge]
        due = [edge for edge in edges if owed[edge] + share[edge] / 2 >= 1]
        taken = min(due, key=share.__getitem__) if due else max(edges, key=share.__getitem__)
        owed[taken] -= 1
        at = taken[1]
        if at == loop.head:
            return found
    return []


# --- loop steps --------------------------------------------------------------------------------

_SECTOR = 32  # bytes
# A load of 16 bytes a lane in two wavefronts takes 26 cycles on an H200, where 4 bytes take 23:
# 2026-11-21, python -m benchmarks.calibration.latencies_h200.
_WIDE_CYCLES = 2


class Pipe(IntEnum):
    """The unit that executes an instruction, apart from its scheduler."""

    NONE = 0
    FP32 = 1
    INTEGER = 2
    SHARED = 3  # the multiprocessor's path to and from shared memory
    LINES = 4  # its lookup of lines of global memory
    BARRIER = 5
    MULTIPLY = 6  # of integers
    TENSOR = 7


_MEMORY_UNITS = {
    **dict.fromkeys(("LDS", "STS", "LDSM", "STSM", "SHFL"), Pipe.SHARED),
    **dict.fromkeys(("LDG", "LDGSTS", "LDL", "STL"), Pipe.LINES),
}


class LoopStep(Record):
    """One instruction of a warp."""

    unit: Pipe
    stall: int  # cycles before the warp's next instruction
    waits: tuple[int, ...] = ()  # scoreboards that must be free before it issues
    sets: int | None = None  # scoreboard freed when the result is there
    frees: int | None = None  # scoreboard freed when the operands are read
    work: float = 0.0  # cycles of its unit: wavefronts, lines; of tensor cores: set by ``on``
    sectors: float = 0.0  # that come from beyond the L1
    latency: int = OTHER_LATENCY  # cycles to the result if its unit is idle and all data in the L1
    reads: tuple[int, int] = (0, 0)  # registers that an FFMA takes from the even and the odd bank
    copies: bool = False  # cp.async: a fence says when it has finished
    fence: bool = False  # its scoreboard is freed when all copies so far have finished
    drains: tuple[int, int] | None = None  # waits until a scoreboard counts at most so many
    product: Product | None = None  # of a tensor-core instruction


class MainLoop(Record):
    """The steps of a warp in one iteration of the loop along K."""

    steps: tuple[LoopStep, ...]
    rounds: float  # of each warp of a launch

    def on(self, gpu: gpus.Gpu) -> tuple[LoopStep, ...]:
        """The steps with the time that this GPU's tensor cores take, one for each scheduler."""

        def timed(step: LoopStep) -> LoopStep:
            if (product := step.product) is None:
                return step
            by_warps = not product.by_warpgroup
            rate = gpu.tensor_rate(product.kind, product.sums, by_warps=by_warps)
            work = product.flops / 2 * gpu.multiprocessor.schedulers / rate if rate else 0.0
            return msgspec.structs.replace(step, work=work)

        return tuple(map(timed, self.steps))


def main_loop_steps(function: SassFunction, sample: LaunchSample, factor: float) -> MainLoop | None:
    """None without a loop that computes, or when control bits are not known. What wgmma and the
    warps that wait for it do at the same time is not modelled: None."""
    rows = {row.row: row for row in sample.rows}
    runs = executions(function, rows)
    found = round_trip(function, runs)
    if found is None:
        return None
    loop, code = found
    code = tuple(item for item in code if item.base != "NOP")
    if any(item.control is None or item.base == "HGMMA" for item in code):
        return None
    moving = {each.item.address: each for each in accesses(function, rows, runs)}
    times = {
        item.address: runs[index] for index in loop.blocks for item in function.of_block(index)
    }
    # A tile that goes to shared memory, and what a sum adds, is loaded once.
    once = main_loop(function) is None
    once = once or any(item.base in ("STS", "LDGSTS", "STSM") for item in code)
    return MainLoop(
        steps=tuple(
            _step(item, reads, moving.get(item.address), times[item.address], once)
            for item, reads in zip(code, ffma_reads(code), strict=True)
        ),
        rounds=runs[loop.head] * factor / sample.all_warps,
    )


def _step(
    item: SassInstruction,
    reads: tuple[int, int],
    access: MemoryAccess | None,
    times: float,
    once: bool,
) -> LoopStep:
    """``access``: what all its ``times`` executions move."""
    control = item.control
    assert control is not None
    base = access.base if access is not None else item.base
    work, sectors, latency = 0.0, 0.0, LATENCY.get(base, OTHER_LATENCY)
    if base in ("SHFL", "LDL", "STL"):
        work = item.bits / 32 if base != "SHFL" else 1.0
    if access is not None and times:
        moved = traffic([access], 1.0)[base]
        work = (moved.lines or moved.cost) / times
        if base == "LDS" and item.bits == 128:
            latency += _WIDE_CYCLES
        # An earlier request cannot have brought sectors that this request uses whole.
        if base in ("LDG", "LDGSTS"):
            latency = LATENCY["LDG"]
            if once and moved.bytes >= moved.cost * _SECTOR:
                sectors = moved.cost / times
    drains = None
    if item.base == "DEPBAR" and len(item.operands) > 1 and item.operands[0].startswith("SB"):
        drains = int(item.operands[0][2:]), int(item.operands[1], 0)  # ``DEPBAR.LE SB0, 0x1``
    return LoopStep(
        unit=_unit(item, base),
        stall=FENCE_CYCLES if item.base == "MEMBAR" else max(control.stall, 1),
        waits=control.waits,
        sets=control.write_barrier,
        frees=control.read_barrier,
        work=work,
        sectors=sectors,
        latency=latency,
        reads=reads,
        copies=item.base == "LDGSTS",
        fence=item.base == "LDGDEPBAR",
        drains=drains,
        product=item.product,
    )


def _unit(item: SassInstruction, base: str) -> Pipe:
    if item.base in ("FFMA", "FADD", "FMUL"):
        return Pipe.FP32
    if item.never:
        return Pipe.NONE
    if item.product is not None:
        return Pipe.TENSOR
    if item.base == "BAR" and ".ARV" not in item.opcode and len(item.operands) == 1:
        return Pipe.BARRIER  # with a count, only some warps of the block come to it
    if item.base.startswith("IMAD"):
        return Pipe.MULTIPLY
    if item.kind == "integer" and not item.base.startswith("U"):
        return Pipe.INTEGER
    return _MEMORY_UNITS.get(base, Pipe.NONE)
