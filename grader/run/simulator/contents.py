"""A plan run again on coded inputs, to learn what wrong elements hold."""

import time
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from grader.problems import Problem, describe, look_into, poisoned
from grader.run.simulator.messages import Contents
from ptxsim import NotLinear, RefusedProgram, SimLimits, Simulator
from ptxsim.findings import Severity
from ptxsim.plan import Plan


def measure(simulator: Simulator, problem: Problem, plan: Plan, seconds: float) -> Contents:
    """Look into wrong elements of one size. seconds: CPU time, of all runs."""
    begun, operands = time.thread_time(), problem.operands(plan.size)
    first = sum(not each.written for each in operands)

    def run(inputs: Sequence[NDArray[Any]]) -> Sequence[NDArray[Any]]:
        new = (poisoned(each) for each in operands if not each.given)
        arrays = [*(each.copy() for each in inputs), *new]
        buffers = {place: each.view("uint8") for place, each in enumerate(arrays)}
        left = seconds - (time.thread_time() - begun)
        outcome = simulator.run(plan, buffers, SimLimits(seconds=left))
        if left <= 0 or outcome.stopped or _fails(outcome.findings):
            raise NotLinear("it does not run to its end")
        return arrays[first:]

    try:
        found = look_into(problem, plan.size, run)
    except (NotLinear, RefusedProgram):
        return Contents()
    words, strips = describe(found, plan)
    return Contents(message=words, strips=strips)


def _fails(findings: Sequence[Any]) -> bool:
    return any(each.severity is Severity.ERROR for each in findings)
