"""One multiprocessor, cycle by cycle: the resident warps run the main loop together.

Every scheduler issues at most one instruction per cycle, from the warp that issued last or, if that
warp must wait, from the oldest warp that is ready. (Huerta et al., "Analyzing Modern NVIDIA GPU
Cores", 2025, found this greedy policy; the order of the other warps makes little difference.) A
warp waits for

    stall counts and scoreboards of its machine code
    the other warps of its block, at a barrier
    the FP32, integer and integer multiply pipes and the tensor core of its scheduler
    register banks: each delivers one register of a warp per cycle and may fall behind by one
    the multiprocessor's paths to shared memory, to lines of global memory, to the L2
    its own accesses to memory: one every four cycles

No queue is ever full, and everything not listed here takes no time. Blocks that start together and
blocks that start one after the other share these resources differently; the faster start counts.
The result is an estimate, not a bound: another order of the warps can be several per cent faster.
``issue_model.cpp`` does the work.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_double, c_int, c_int32, c_int64
from enum import IntEnum
from functools import cache, lru_cache
from pathlib import Path

from grader.errors import MachineError
from grader.hardware.gpus import Multiprocessor
from grader.model import Record, phrase
from grader.performance.loop_steps import Step
from grader.performance.serial import OTHER_LATENCY
from grader.toolchain.native import Native

_FLAGS = ("-std=c++20", "-O2")
_SECTOR_CYCLES = 0.5  # 64 bytes from the L2 reach a multiprocessor in a cycle
# H200, 2026-11-21, python -m benchmarks.calibration.latencies_h200: a lone warp loads 32 times 4 or
# 8 bytes every 4.1 cycles; w warps pass a barrier every 12 + 2·w.
_ACCESS_CYCLES = 4
_ARRIVAL_CYCLES, _RELEASE_CYCLES = 2, 12
_WARM, _ROUNDS = 8, 40
_ISSUES = 1_200_000  # at most: less than a tenth of a second
_MOST = 2  # warps may be this many times as far as the slowest, on average


class Why(IntEnum):
    """What a warp waits for."""

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
    steps: tuple[Step, ...], warps: int, blocks: int, sm: Multiprocessor, *, latency: int
) -> SteadyState | None:
    """``blocks`` of ``warps`` each, resident at a time. ``latency``: cycles until the first sector
    from beyond the L1 arrives. None when an iteration is too long for the model."""
    each = len(steps) * warps * blocks
    rounds = min(_ROUNDS, _ISSUES // (_MOST * each))
    if rounds < 2:
        return None
    together = _run(steps, rounds, _machine(warps, blocks, sm, latency, apart=0))
    if blocks == 1:
        return together
    apart = len(steps) * warps // sm.schedulers  # issue slots of one block's round
    staggered = _run(steps, rounds, _machine(warps, blocks, sm, latency, apart=apart))
    return min(together, staggered, key=lambda found: found.cycles)


def _machine(warps: int, blocks: int, sm: Multiprocessor, latency: int, *, apart: int) -> _Machine:
    return _Machine(
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
        sector_cycles=_SECTOR_CYCLES,
    )


def _run(steps: Sequence[Step], rounds: int, machine: _Machine) -> SteadyState:
    packed = (_Step * len(steps))(*map(_packed, steps))
    begun, ended = _Totals(), _Totals()
    warm = min(_WARM, rounds // 2)
    _library().run_loop(packed, len(steps), machine, warm, rounds, _MOST, begun, ended)
    cycles, issued = ended.cycles - begun.cycles, ended.issued - begun.issued
    warps = machine.warps * machine.blocks
    slots = cycles * min(machine.schedulers, warps)
    return SteadyState(
        cycles=cycles * len(steps) * warps / issued,
        issued=issued / slots,
        idle=_shares(begun.idle, ended.idle, slots),
        waited=_shares(begun.waited, ended.waited, cycles * warps),
    )


def _shares(begun: Sequence[int], ended: Sequence[int], whole: float) -> tuple[float, ...]:
    return tuple((last - first) / whole for first, last in zip(begun, ended, strict=True))


def _packed(step: Step) -> _Step:
    board, left = step.drains or (-1, 0)
    return _Step(
        unit=step.unit,
        stall=step.stall,
        waits=sum(1 << board for board in step.waits),
        sets=-1 if step.sets is None else step.sets,
        frees=-1 if step.frees is None else step.frees,
        latency=step.latency,
        even=step.reads[0],
        odd=step.reads[1],
        copies=step.copies,
        fence=step.fence,
        board=board,
        left=left,
        work=step.work,
        sectors=step.sectors,
    )
