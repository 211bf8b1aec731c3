"""One multiprocessor, cycle by cycle: the resident warps run the main loop together.

Every scheduler issues at most one instruction per cycle, from the warp that issued last or, if that
warp must wait, from the oldest warp that is ready. (Huerta et al., "Analyzing Modern NVIDIA GPU
Cores", 2025, found this greedy policy; the order of the other warps makes little difference.)
docs/explain.md lists what a warp waits for. No queue is ever full, and everything not listed there
takes no time. The result is an estimate, not a bound: another order of the warps can be several per
cent faster. ``issue_model.cpp`` does the work.
"""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_double, c_int, c_int32, c_int64
from enum import IntEnum
from functools import cache, lru_cache
from pathlib import Path

from grader.base import MachineError, Native, gpus
from grader.model.blocks import OTHER_LATENCY
from grader.model.calibration import Calibration
from grader.model.loop_steps import LoopStep, MainLoop
from grader.model.records import Waiting
from ptxsim.plan import Record
from ptxsim.text import phrase

_FLAGS = ("-std=c++20", "-O2")
_SECTOR_CYCLES = 0.5  # 64 bytes from the L2 reach a multiprocessor in a cycle, at the full rate
# H200, 2026-11-21, python -m benchmarks.calibration.latencies_h200: a lone warp loads 32 times 4 or
# 8 bytes every 4.1 cycles; w warps pass a barrier every 12 + 2·w.
_ACCESS_CYCLES = 4
_ARRIVAL_CYCLES, _RELEASE_CYCLES = 2, 12
_WARM, _ROUNDS = 8, 40
_ISSUES = 1_200_000  # at most: less than a tenth of a second
_MOST = 2  # warps may be this many times as far as the slowest, on average


class Why(IntEnum):
    """Cause for which a warp waits."""

    STALL = 0  # stall counts, results of arithmetic, pipes other than these
    PIPE = 1  # the FP32 pipe or the tensor core, which is busy
    BANKS = 2  # registers, all in one bank
    SHARED = 3  # loads from shared memory
    GLOBAL = 4  # loads from global memory
    BARRIER = 5  # other warps of its block


class SteadyState(Record):
    """The steady state."""

    cycles: float  # for each round of all resident warps
    issued: float  # share of the schedulers' cycles in which they issue
    idle: tuple[float, ...]  # the other cycles, by what the next warp to become ready waits for
    waited: tuple[float, ...]  # share of the warps' time, by ``Why``


class _Step(ctypes.Structure):
    _fields_ = (
        *((name, c_int32) for name in ("unit", "stall", "waits", "sets", "frees", "latency")),
        *((name, c_int32) for name in ("even", "odd", "copies", "fence", "board", "left")),
        *((name, c_double) for name in ("work", "sectors")),
    )


class _Machine(ctypes.Structure):
    _fields_ = (
        *((name, c_int32) for name in ("warps", "blocks", "schedulers", "fp32_cycles")),
        *((name, c_int32) for name in ("integer_cycles", "access_cycles", "arrival_cycles")),
        *((name, c_int32) for name in ("release_cycles", "read_cycles", "far_latency", "apart")),
        ("sector_cycles", c_double),
    )


class _Totals(ctypes.Structure):
    _fields_ = (
        *(("cycles", c_int64), ("issued", c_int64)),
        *(("idle", c_int64 * len(Why)), ("waited", c_int64 * len(Why))),
    )


def model_library(flags: tuple[str, ...] = _FLAGS) -> Native:
    """The model's C++, to be compiled."""
    source = Path(__file__).with_name("issue_model.cpp")
    return Native(name="issue_model", sources=(source,), shared=True, flags=flags)


@cache
def _library() -> ctypes.CDLL:
    """Compiled on first use. Raises ToolchainError."""
    library = ctypes.CDLL(str(model_library().compiled()))
    library.run_loop.argtypes = [
        *(POINTER(_Step), c_int, POINTER(_Machine), c_int64, c_int64, c_int64),
        *(POINTER(_Totals), POINTER(_Totals)),
    ]
    library.run_loop.restype = None
    if library.step_bytes() != ctypes.sizeof(_Step):
        raise MachineError(
            phrase("the issue model's library and its Python side disagree: reinstall")
        )
    return library


@lru_cache(maxsize=64)  # bounds and advice ask for the same
def run_loop(
    steps: tuple[LoopStep, ...],
    warps: int,
    blocks: int,
    sm: gpus.Multiprocessor,
    *,
    latency: int,
    sector_cycles: float,
) -> SteadyState | None:
    """``blocks`` of ``warps`` each, resident at a time. ``latency``: cycles until the first sector
    from beyond the L1 arrives; ``sector_cycles``: until the next one does. None when an iteration
    is too long for the model."""
    rounds = min(_ROUNDS, _ISSUES // (_MOST * len(steps) * warps * blocks))
    if rounds < 2:
        return None

    def run(apart: int) -> SteadyState:
        machine = _Machine(
            warps=warps,
            blocks=blocks,
            schedulers=sm.schedulers,
            fp32_cycles=32 * sm.schedulers // sm.fp32_lanes,
            integer_cycles=32 * sm.schedulers // sm.integer_lanes,
            access_cycles=_ACCESS_CYCLES,
            arrival_cycles=_ARRIVAL_CYCLES,
            release_cycles=_RELEASE_CYCLES,
            read_cycles=OTHER_LATENCY,
            far_latency=latency,
            apart=apart,
            sector_cycles=sector_cycles,
        )
        return _run(steps, rounds, machine)

    # A block starts with the others, or the issue slots of one block's round after the one before.
    starts = (0, len(steps) * warps // sm.schedulers) if blocks > 1 else (0,)
    return min(map(run, starts), key=lambda found: found.cycles)


def _run(steps: Sequence[LoopStep], rounds: int, machine: _Machine) -> SteadyState:
    packed = (_Step * len(steps))(*map(_packed, steps))
    first, last = _Totals(), _Totals()
    warm = min(_WARM, rounds // 2)
    _library().run_loop(packed, len(steps), machine, warm, rounds, _MOST, first, last)
    cycles, issued = last.cycles - first.cycles, last.issued - first.issued
    warps = machine.warps * machine.blocks
    slots = cycles * min(machine.schedulers, warps)
    return SteadyState(
        cycles=cycles * len(steps) * warps / issued,
        issued=issued / slots,
        idle=tuple((last.idle[why] - first.idle[why]) / slots for why in Why),
        waited=tuple((last.waited[why] - first.waited[why]) / (cycles * warps) for why in Why),
    )


def _packed(step: LoopStep) -> _Step:
    board, left = step.drains or (-1, 0)
    even, odd = step.reads
    same = ("unit", "stall", "latency", "copies", "fence", "work", "sectors")
    return _Step(
        **{name: getattr(step, name) for name in same},
        waits=sum(1 << board for board in step.waits),
        sets=-1 if step.sets is None else step.sets,
        frees=-1 if step.frees is None else step.frees,
        even=even,
        odd=odd,
        board=board,
        left=left,
    )


# --- waiting -----------------------------------------------------------------------------------

# Sectors: DRAM gives 64 bytes at a time (H200, benchmarks/calibration/latencies_h200.py).
_FETCHED = 2


class Wave(Record):
    """The blocks that the busiest multiprocessor holds at a time."""

    blocks: int
    warps: int  # of each block
    times: float  # such waves one after the other, in all launches of the kind
    shared_bytes: int  # of each block
    local_bytes: int = 0  # of each block


def waited(
    loop: MainLoop, wave: Wave, gpu: gpus.Gpu, constants: Calibration
) -> tuple[float, Waiting] | None:
    """Seconds, and how they divide. None when an iteration is too long for the issue model."""
    sm, steps = gpu.multiprocessor, loop.on(gpu)
    # Blocks that run together ask for the same tiles at the same time: all wait for the DRAM.
    per_line = (step.sectors / step.work for step in steps if step.sectors and step.work)
    far = min(1.0, max(per_line, default=0.0) / _FETCHED)
    latency = far * sm.dram_latency * constants.dram_loaded
    latency += (1 - far) * sm.l2_latency * constants.l2_loaded
    sectors = _SECTOR_CYCLES * constants.slower["L2"]
    shape = (wave.warps, wave.blocks, sm)
    found = run_loop(steps, *shape, latency=round(latency), sector_cycles=sectors)
    if found is None:
        return None
    said = Waiting(
        cycles=found.cycles,
        issued=found.issued,
        stalls=found.idle[Why.STALL],
        fp32=found.idle[Why.PIPE],
        banks=found.idle[Why.BANKS],
        shared_loads=found.idle[Why.SHARED],
        global_loads=found.idle[Why.GLOBAL],
        barriers=found.idle[Why.BARRIER],
        warp_global_loads=found.waited[Why.GLOBAL],
        warp_barriers=found.waited[Why.BARRIER],
    )
    return said.cycles * loop.rounds * wave.times / (gpu.clock_mhz * 1e6), said
