"""Engine events → findings in a student's words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from ptxsim.findings.sighting import Scene, Sighting
from ptxsim.frontend import Instruction, Module
from ptxsim.records import Event, Finding, Severity

(
    OUT_OF_BOUNDS,
    MISALIGNED,
    RACE,
    ASYNC_RACE,
    UNDEFINED_STORE,
    UNDEFINED_ADDRESS,
    UNDEFINED_BRANCH,
    DIVERGENT_BARRIER,
    DIVERGENT_WARP_OP,
    DEADLOCK,
    ENDLESS,
    TRAP,
    ASSERTION,
    BARRIER_UNINITIALISED,
    BARRIERS_MIXED,
) = Event


def finding(event: np.void, scene: Scene) -> Finding | None:
    """The finding that one event stands for; None for copies of one source-level barrier."""
    seen = Sighting(event, scene)
    if seen.kind == BARRIERS_MIXED and scene.place(seen.pc) == scene.place(seen.other_pc):
        return None
    rule = _RULES[Event(seen.kind)]
    place = scene.place(seen.pc)
    if rule.kind == "uninitialized-read":  # the read is to be mended, not where it did harm
        place = scene.place(seen.other_pc) or place
    return Finding(
        kind=rule.kind,
        severity=Severity.WARNING if _double_work(seen) else Severity.ERROR,
        message=rule.sentence(seen),
        file=place.file if place else None,
        line=place.line if place else None,
        block=seen.block,
        thread=seen.thread,
        count=seen.count,
    )


def merge(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """One finding per kind and line: the first, with the counts of all."""
    merged: dict[tuple[str, str | None, int | None], Finding] = {}
    for each in findings:
        key = (each.kind, each.file, each.line)
        if key in merged:
            first = merged[key]
            merged[key] = msgspec.structs.replace(first, count=first.count + each.count)
        else:
            merged[key] = each
    return tuple(merged.values())


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count} bytes"


def _out_of_bounds(s: Sighting) -> str:
    head = f"{s.space} {'write' if s.is_write else 'read'}: {s.who} {s.does} {_bytes(s.size)} at "
    what = s.accessed
    if not what.name and s.space != "parameter":
        nothing = "a null pointer" if s.address < 4096 else "no device memory"
        return f"{head}{s.address:#x}, which is {nothing}"
    end = what.start + what.size
    if s.address < what.start:
        where = f"{_bytes(what.start - s.address)} before the start of"
    elif s.address >= end:
        where = f"{_bytes(s.address - end)} past the end of"
    else:
        where = "across the end of"
    noun = {"shared": " array", "local": "", "parameter": ""}.get(s.space, " allocation")
    return f"{head}{s.element}, {where} the {what.size}-byte{noun} {what.name or 'parameters'}"


def _misaligned(s: Sighting) -> str:
    remedy = "; a float4 needs an index that is a multiple of 4" if s.size == 16 else ""
    return (
        f"{s.who} {s.does} {s.size} bytes at once at {s.element}, whose address is no multiple "
        f"of {s.size}{remedy}"
    )


def _double_work(s: Sighting) -> bool:
    between_blocks = s.block != s.other_block and s.space != "shared"
    return s.kind == RACE and between_blocks and s.is_write and s.same_value


def _race(s: Sighting) -> str:
    first, second = f"{s.does} {s.element} at {s.here}", f"{s.did} at {s.there}"
    if s.space == "shared":
        return (
            f"in shared memory {s.this_thread} {first}, which {s.that_thread} {second} with no "
            f"__syncthreads() (or, within a warp, __syncwarp()) between them {s.in_block}"
        )
    if s.block == s.other_block:
        return (
            f"in global memory {s.this_thread} {first}, which {s.that_thread} of the same block "
            f"{second} with no __syncthreads() between them"
        )
    if _double_work(s):
        return (
            f"double work: {s.who} {first} though {s.that_one} already wrote the same value; is "
            f"the grid too large?"
        )
    return (
        f"between blocks: {s.who} {first}, which {s.that_one} {second}; blocks run in any order, "
        f"use atomicAdd or a second kernel"
    )


def _async_race(s: Sighting) -> str:
    return (
        f"cp.async not waited for: {s.this_thread} {s.does} {s.element} at {s.here} while the "
        f"asynchronous copy that {s.that_thread} issued at {s.there} may still be under way "
        f"{s.in_block}; wait for its group, then __syncthreads()"
    )


def _undefined(use: str) -> Callable[[Sighting], str]:
    def sentence(s: Sighting) -> str:
        name = s.accessed.name
        what = f"{s.space} memory ({name})" if name and s.space else "memory"
        return f"{what}: what {s.who} read at {s.there} was never written, and it {use} at {s.here}"

    return sentence


def _divergent_barrier(s: Sighting) -> str:
    return (
        f"__syncthreads() under divergence: {s.arrived} of {s.expected} threads of a warp reach "
        f"the barrier at {s.here} ({s.who}), {s.that_thread} is at "
        f"{s.there}; every thread must reach the same barrier"
    )


def _divergent_warp_op(s: Sighting) -> str:
    return (
        f"warp operation under divergence: its mask names {s.expected} threads, {s.arrived} reach "
        f"{s.here} ({s.who}); {s.that_thread} is at {s.there}"
    )


def _deadlock(s: Sighting) -> str:
    return (
        f"deadlock: {s.arrived} of {s.expected} threads wait at the barrier at {s.here} "
        f"{s.in_block}, the others wait elsewhere and never come"
    )


def _endless(s: Sighting) -> str:
    return f"still running when the time was up: {s.who} was at {s.here}; does this loop end?"


def _trap(s: Sighting) -> str:
    return f"{s.who} stopped the kernel at {s.here} (trap, or calls nested too deep)"


def _assertion(s: Sighting) -> str:
    return f"assertion failed in {s.who} at {s.here}"


def _barrier_uninitialised(s: Sighting) -> str:
    return f"{s.who} uses an mbarrier that was never initialised, at {s.here}"


def _barriers_mixed(s: Sighting) -> str:
    return (
        f"different barriers meet: {s.this_thread} waits in the __syncthreads() at {s.here} while "
        f"others wait in the one at {s.there} {s.in_block}; all threads of a block must come to "
        f"the same one"
    )


class _Rule(NamedTuple):
    kind: str  # of the finding
    sentence: Callable[[Sighting], str]


_RULES = {
    OUT_OF_BOUNDS: _Rule("out-of-bounds", _out_of_bounds),
    MISALIGNED: _Rule("misaligned", _misaligned),
    RACE: _Rule("race", _race),
    ASYNC_RACE: _Rule("race", _async_race),
    UNDEFINED_STORE: _Rule("uninitialized-read", _undefined("goes into the result stored")),
    UNDEFINED_ADDRESS: _Rule("uninitialized-read", _undefined("is used as an address")),
    UNDEFINED_BRANCH: _Rule("uninitialized-read", _undefined("decides a branch")),
    DIVERGENT_BARRIER: _Rule("barrier-divergence", _divergent_barrier),
    DIVERGENT_WARP_OP: _Rule("barrier-divergence", _divergent_warp_op),
    DEADLOCK: _Rule("barrier-divergence", _deadlock),
    ENDLESS: _Rule("endless-loop", _endless),
    TRAP: _Rule("trap", _trap),
    ASSERTION: _Rule("trap", _assertion),
    BARRIER_UNINITIALISED: _Rule("uninitialized-read", _barrier_uninitialised),
    BARRIERS_MIXED: _Rule("barrier-divergence", _barriers_mixed),
}


def instruction_note(module: Module, kind: str, message: str, item: Instruction) -> Finding:
    """What stands in the text, whether or not it runs."""
    location = module.locations[item.loc] if item.loc >= 0 else None
    return Finding(
        kind=kind,
        severity=Severity.NOTE,
        message=message,
        file=location.file if location else None,
        line=location.line if location else None,
    )
