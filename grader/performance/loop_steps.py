"""The main loop as the issue model sees it: the resources that each instruction needs.

Latencies are the lowest that anybody reported, so the model does not overestimate the time that a
result takes.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from grader.hardware.gpus import Gpu
from grader.model import Record
from grader.performance.accesses import Access, accesses, traffic
from grader.performance.join import executions, scale
from grader.performance.route import round_trip
from grader.performance.sass import Function, Instruction, Product, ffma_reads
from grader.performance.serial import LATENCY, OTHER_LATENCY
from grader.problems.work import Work
from ptxsim.sampling import LaunchSample

_SECTOR = 32  # bytes
# A load of 16 bytes a lane in two wavefronts takes 26 cycles on an H200, where 4 bytes take 23:
# 2026-11-21, python -m benchmarks.calibration.latencies_h200.
_WIDE_CYCLES = 2


class Unit(IntEnum):
    """The unit that executes an instruction, apart from its scheduler."""

    NONE = 0
    FP32 = 1
    INTEGER = 2
    SHARED = 3  # the multiprocessor's path to and from shared memory
    LINES = 4  # its lookup of lines of global memory
    BARRIER = 5
    MULTIPLY = 6  # of integers
    TENSOR = 7


class Step(Record):
    """One instruction of a warp."""

    unit: Unit
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

    steps: tuple[Step, ...]
    rounds: float  # of each warp of a launch

    def on(self, gpu: Gpu) -> tuple[Step, ...]:
        """The steps with the time that this GPU's tensor cores take."""
        return tuple(
            msgspec.structs.replace(step, work=_tensor_cycles(step.product, gpu))
            if step.product
            else step
            for step in self.steps
        )


def _tensor_cycles(product: Product, gpu: Gpu) -> float:
    """Of a scheduler's tensor core."""
    by_warps = not product.by_warpgroup
    rate = gpu.tensor_rate(product.kind, product.sums, by_warps=by_warps)
    return product.flops / 2 * gpu.multiprocessor.schedulers / rate if rate else 0.0


def main_loop_steps(function: Function, sample: LaunchSample, work: Work) -> MainLoop | None:
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
    through_shared = any(item.base in ("STS", "LDGSTS", "STSM") for item in code)
    warps = sample.warps * sample.all_blocks * sample.times
    return MainLoop(
        steps=tuple(
            _step(item, reads, moving.get(item.address), times[item.address], through_shared)
            for item, reads in zip(code, ffma_reads(code), strict=True)
        ),
        rounds=runs[loop.head] * scale(sample, work) / warps,
    )


def _step(
    item: Instruction,
    reads: tuple[int, int],
    access: Access | None,
    times: float,
    through_shared: bool,
) -> Step:
    """``access``: what all its ``times`` executions move."""
    control = item.control
    assert control is not None
    work, sectors, latency = 0.0, 0.0, LATENCY.get(item.base, OTHER_LATENCY)
    if access is not None and times:
        moved = traffic([access], 1.0)[item.base]
        work = (moved.lines or moved.cost) / times
        if item.base == "LDS" and item.bits == 128:
            latency += _WIDE_CYCLES
        # A tile that goes to shared memory is loaded once, so an earlier request cannot have
        # brought sectors that this request uses whole.
        if item.base in ("LDG", "LDGSTS"):
            latency = LATENCY["LDG"]
            if through_shared and moved.bytes >= moved.cost * _SECTOR:
                sectors = moved.cost / times
    return Step(
        unit=_unit(item),
        stall=max(control.stall, 1),
        waits=control.waits,
        sets=control.write_barrier,
        frees=control.read_barrier,
        work=work,
        sectors=sectors,
        latency=latency,
        reads=reads,
        copies=item.base == "LDGSTS",
        fence=item.base == "LDGDEPBAR",
        drains=_drains(item),
        product=item.product,
    )


def _unit(item: Instruction) -> Unit:
    if item.base in ("FFMA", "FADD", "FMUL"):
        return Unit.FP32
    if item.never:
        return Unit.NONE
    if item.product is not None:
        return Unit.TENSOR
    if item.base in ("LDS", "STS", "LDSM", "STSM"):
        return Unit.SHARED
    if item.base in ("LDG", "LDGSTS"):
        return Unit.LINES
    if item.base == "BAR" and ".ARV" not in item.opcode and len(item.operands) == 1:
        return Unit.BARRIER  # with a count, only some warps of the block come to it
    if item.base.startswith("IMAD"):
        return Unit.MULTIPLY
    if item.kind == "integer" and not item.base.startswith("U"):
        return Unit.INTEGER
    return Unit.NONE


def _drains(item: Instruction) -> tuple[int, int] | None:
    """``DEPBAR.LE SB0, 0x1``: (0, 1)."""
    if item.base != "DEPBAR" or len(item.operands) < 2 or not item.operands[0].startswith("SB"):
        return None
    return int(item.operands[0][2:]), int(item.operands[1], 0)
