"""A plan run again on coded inputs, to learn what wrong elements hold, and which line read what."""

from collections.abc import Sequence
from typing import Any

import msgspec
from numpy.typing import NDArray

from grader.base import Finding, Kind
from grader.problems import (
    Problem,
    Suspect,
    describe_contents,
    look_into,
    poisoned,
    reader_words,
    suspect,
)
from grader.run.simulator.messages import Contents
from ptxsim import NotLinear, RefusedProgram, SimLimits, Simulator
from ptxsim.findings import FindingKind, Severity
from ptxsim.plan import Plan

_READING_SECONDS = 1.0


def measure(simulator: Simulator, problem: Problem, plan: Plan, seconds: float) -> Contents:
    """Look into wrong elements of one size. seconds: CPU time, of all runs."""
    rerun = _Rerun(simulator, problem, plan)
    try:
        found = look_into(problem, plan.size, rerun.outputs, seconds)
        if not found:
            return Contents()
        message, strips = describe_contents(found, plan)
        seen = suspect(found)
        hint = rerun.reader(seen) if seen else None
    except RefusedProgram:
        return Contents()
    return Contents(message=message, strips=strips, findings=(hint,) if hint else ())


class _Rerun:
    """A plan on other inputs than it ran on."""

    def __init__(self, simulator: Simulator, problem: Problem, plan: Plan) -> None:
        self._simulator, self._plan = simulator, plan
        self._operands = problem.operands(plan.size)
        self._last: Sequence[NDArray[Any]] = ()  # inputs

    def outputs(self, inputs: Sequence[NDArray[Any]], seconds: float) -> Sequence[NDArray[Any]]:
        """Raises NotLinear where it does not run to its end."""
        self._last = inputs
        arrays = self._arrays()
        buffers = {place: each.view("uint8") for place, each in enumerate(arrays)}
        outcome = self._simulator.run(self._plan, buffers, SimLimits(seconds=seconds))
        if outcome.stopped or any(each.severity is Severity.ERROR for each in outcome.findings):
            raise NotLinear("it does not run to its end")
        return arrays[sum(not each.written for each in self._operands) :]

    def reader(self, suspect: Suspect) -> Finding | None:
        """Name the line that reads an input: where its bytes belong to nobody, the simulator finds
        who does. None for the first of an operand, before which nothing is left."""
        number, size = self._operands.index(suspect.operand), suspect.operand.element.bytes
        whole, start = self._plan.allocations[number], suspect.place * size
        if not start:
            return None
        end = start + size
        allocations = [*self._plan.allocations]
        allocations[number] = msgspec.structs.replace(whole, size=start)
        arrays = [each.view("uint8") for each in self._arrays()]
        behind, arrays[number] = arrays[number][end:], arrays[number][:start]
        buffers = dict(enumerate(arrays))
        if behind.size:
            buffers[len(allocations)] = behind
            rest = {"address": whole.address + end, "size": behind.size}
            allocations.append(msgspec.structs.replace(whole, **rest))
        plan = msgspec.structs.replace(self._plan, allocations=tuple(allocations))
        known = [*range(plan.inputs), len(self._plan.allocations)]
        outcome = self._simulator.run(plan, buffers, SimLimits(seconds=_READING_SECONDS), known)
        reads = [
            each
            for each in outcome.findings
            if each.kind is FindingKind.OUT_OF_BOUNDS and each.access and not each.access.write
        ]
        if outcome.stopped and not reads:
            return None
        words = reader_words(suspect, read=bool(reads))
        return Finding.at(reads[0].place if reads else None, Kind.HINT, Severity.NOTE, words)

    def _arrays(self) -> list[NDArray[Any]]:
        new = (poisoned(each) for each in self._operands if not each.given)
        return [*(each.copy() for each in self._last), *new]
