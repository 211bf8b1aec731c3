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
from ptxsim import NotLinear, RefusedProgram, SimLimits, SimOutcome, Simulator
from ptxsim.findings import FindingKind, Severity
from ptxsim.plan import Plan, Write

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
        findings = (rerun.reader(seen),) if seen else ()
    except RefusedProgram:
        return Contents()
    return Contents(message=message, strips=strips, findings=findings)


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
        outcome = self._run(self._plan, arrays, seconds, range(self._plan.inputs))
        if outcome.stopped or any(each.severity is Severity.ERROR for each in outcome.findings):
            raise NotLinear("it does not run to its end")
        return arrays[sum(not each.written for each in self._operands) :]

    def reader(self, suspect: Suspect) -> Finding:
        """Name the line that reads an input: where nothing has defined just that, the simulator
        finds who does."""
        number = self._operands.index(suspect.operand)
        arrays, size = self._arrays(), suspect.operand.element.bytes
        contents, start = arrays[number].tobytes(), suspect.place * size
        others = ((0, contents[:start]), (start + size, contents[start + size :]))
        writes = (Write(allocation=number, delta=at, data=data) for at, data in others if data)
        plan = msgspec.structs.replace(self._plan, operations=(*writes, *self._plan.operations))
        known = [each for each in range(self._plan.inputs) if each != number]
        found = self._run(plan, arrays, _READING_SECONDS, known).findings
        reads = (each for each in found if each.kind is FindingKind.UNINITIALIZED_READ)
        first = next(reads, None)
        words = reader_words(suspect, read=first is not None)
        return Finding.at(first.place if first else None, Kind.HINT, Severity.NOTE, words)

    def _arrays(self) -> list[NDArray[Any]]:
        new = (poisoned(each) for each in self._operands if not each.given)
        return [*(each.copy() for each in self._last), *new]

    def _run(
        self, plan: Plan, arrays: Sequence[NDArray[Any]], seconds: float, known: Sequence[int]
    ) -> SimOutcome:
        buffers = {place: each.view("uint8") for place, each in enumerate(arrays)}
        return self._simulator.run(plan, buffers, SimLimits(seconds=seconds), known)
