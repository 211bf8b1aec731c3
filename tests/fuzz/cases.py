"""One case: what it is, by its number, and how it ends."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np

from ptxsim.engine import Engine
from ptxsim.outcome import RefusedProgram, SimLimits
from ptxsim.records import Plan
from ptxsim.simulator import Simulator
from tests.fuzz.mutate import mutate_plan, mutate_ptx

SEEDS = Path(__file__).parent / "seeds"
_LIMITS = SimLimits(seconds=0.5, steps=20_000, bytes=64 << 20)


@dataclass(frozen=True)
class Case:
    name: str  # of the seed
    ptx: str
    plan: dict[str, Any]  # as JSON


@cache
def _seeds() -> tuple[Case, ...]:
    return tuple(
        Case(path.stem, path.read_text(), json.loads(path.with_suffix(".json").read_text()))
        for path in sorted(SEEDS.glob("*.ptx"))
    )


def make_case(seed: int, number: int) -> Case:
    """The first ones are the seeds as they are."""
    seeds = _seeds()
    if number < len(seeds):
        return seeds[number]
    random = Random(f"{seed}:{number}")
    origin = random.choice(seeds)
    ptx, plan = origin.ptx, copy.deepcopy(origin.plan)
    what = random.random()
    if what < 0.85:
        ptx = mutate_ptx(ptx, random)
    if what > 0.75:
        mutate_plan(plan, random)
    return Case(origin.name, ptx, plan)


def run_case(case: Case, engine: Engine) -> str:
    """How the case ended: refused, with a finding, or without. All else it raises is a failure."""
    try:
        plan = msgspec.convert(case.plan, Plan, strict=True)
    except msgspec.ValidationError:
        return "no plan"
    try:
        simulator = Simulator(case.ptx, Path("/nowhere"), engine)
        outcome = simulator.run(plan, _buffers(plan), _LIMITS)
    except RefusedProgram as refusal:
        return f"refused {refusal.reason.name}"
    except MemoryError:
        return "out of memory"
    outcome.printed.encode()
    return f"finding {outcome.findings[0].kind.value}" if outcome.findings else "ran"


def _buffers(plan: Plan) -> dict[int, np.ndarray]:
    """A, B and C, when the plan says of them what can be."""
    sizes = [allocation.size for allocation in plan.allocations[:3]]
    return {at: np.zeros(size, np.uint8) for at, size in enumerate(sizes) if 0 <= size < 1 << 20}
